"""This room holds what belongs to reading knowledge graphs and walking them."""
