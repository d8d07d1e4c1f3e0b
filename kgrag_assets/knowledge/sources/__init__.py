"""What belongs here reads one format of knowledge graph each, in units that can be read apart from one another."""
