"""The error of this room: an input that cannot be used, said so that a person can mend it."""

from __future__ import annotations


class SchemaError(ValueError):
    """A task folder or one of its inputs cannot be used; the message names the file and what to do."""
