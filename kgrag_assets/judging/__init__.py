"""This room holds what belongs to deciding whether a pair of attributes corresponds."""
