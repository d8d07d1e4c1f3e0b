"""Tests of the blocking room."""
