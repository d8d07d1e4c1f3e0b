"""Tests of retrieval by search code."""
