"""What belongs here asks a knowledge graph through SPARQL: over HTTP, politely, and never with text as code."""
