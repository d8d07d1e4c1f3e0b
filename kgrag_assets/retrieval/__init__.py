"""This room holds what belongs to finding the subgraph that speaks about a pair."""
