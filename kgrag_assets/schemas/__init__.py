"""This room holds what belongs to reading the two schemas and the reference of a task."""
