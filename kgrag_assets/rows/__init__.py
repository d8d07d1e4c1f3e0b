"""The tables between the rooms: one module per stage, each column with its type and meaning."""
