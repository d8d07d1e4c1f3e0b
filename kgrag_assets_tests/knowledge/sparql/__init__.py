"""Tests of asking a graph through SPARQL, against a real engine on loopback."""
