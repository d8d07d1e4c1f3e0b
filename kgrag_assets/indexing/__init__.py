"""This room holds what belongs to embedding rows and the vector indexes over them."""
