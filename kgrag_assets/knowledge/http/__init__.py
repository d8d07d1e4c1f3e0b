"""What belongs here asks other sites over HTTP, whatever they are asked: politely, within bounds, and nobody else."""
