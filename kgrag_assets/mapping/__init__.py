"""This room holds what belongs to turning many judgments into one mapping."""
