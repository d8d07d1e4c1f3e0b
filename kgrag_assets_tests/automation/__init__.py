"""Tests of the automation room."""
