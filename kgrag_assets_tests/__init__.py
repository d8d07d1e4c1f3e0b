"""Tests, laid out as the rooms are."""
