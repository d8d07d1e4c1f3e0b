"""This room holds what belongs to choosing the few facts of a subgraph that are worth showing."""
