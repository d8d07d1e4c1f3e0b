"""Tests of the lake room."""
