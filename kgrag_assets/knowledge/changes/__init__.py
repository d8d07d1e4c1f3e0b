"""What changed at Wikidata since a graph was loaded: the feed of changes, the entities it names, the next dump."""
