"""Tests of learning what changed at Wikidata."""
