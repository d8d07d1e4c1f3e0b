"""This room holds what belongs to choosing the attribute pairs that are worth judging."""
