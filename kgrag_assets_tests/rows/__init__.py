"""Tests of the rows room."""
