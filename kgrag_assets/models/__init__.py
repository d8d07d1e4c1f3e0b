"""This room holds what belongs to talking to models: embedders, chat models and the ledger of answered calls."""
