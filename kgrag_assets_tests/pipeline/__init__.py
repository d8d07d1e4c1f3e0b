"""Tests of the whole: from files to the snapshot, through Dagster."""
