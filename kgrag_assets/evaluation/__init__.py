"""This room holds what belongs to measuring a mapping against a reference."""
