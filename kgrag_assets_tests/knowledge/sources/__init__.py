"""Tests of the formats of knowledge graphs."""
