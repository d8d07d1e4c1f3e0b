"""Tests of the schemas room."""
