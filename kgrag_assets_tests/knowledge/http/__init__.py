"""Tests of asking other sites politely, whatever they are asked."""
