"""Tests of the mapping room."""
