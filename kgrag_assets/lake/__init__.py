"""Where files lie and how they are written: paths, atomic Parquet writes, locks, the published snapshot."""
