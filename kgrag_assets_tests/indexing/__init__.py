"""Tests of the indexing room."""
