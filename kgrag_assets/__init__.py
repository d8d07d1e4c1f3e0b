"""kgrag_assets turns two schemas into a mapping with the evidence for each decision beside it."""

__version__ = "0.2.0"
