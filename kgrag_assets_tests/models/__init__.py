"""Tests of the models room."""
