"""Counting tokens and cutting texts by them, with the tokenizer of the packaged model."""

from __future__ import annotations

import threading
from functools import cache
from typing import Any

from kgrag_assets.models.endpoints import storable
from kgrag_assets.models.model_folder import find_model
from kgrag_assets.models.prompt_text import CUT

# A WordPiece tokenizer for English. Each model counts in its own way: these numbers are near to a provider's and not
# equal to them, but they are the same on every machine, which a limit that is part of a prompt's key must be.
TOKENIZER = "packaged:all-MiniLM-L6-v2"

_lock = threading.Lock()


def count_tokens(text: str) -> int:
    """Count the tokens of a text."""
    return len(_encoded(text).ids)


def cut_to_tokens(text: str, limit: int, mark: str = CUT) -> str:
    """Return a text of at most ``limit`` tokens; a cut is made between tokens, and ``mark`` shows it.

    Raises:
        ValueError: the limit leaves no room for the mark.
    """
    offsets = _encoded(text).offsets
    if len(offsets) <= limit:
        return text
    room = limit - count_tokens(mark)
    if room < 0:
        raise ValueError(f"{limit} tokens leave no room for the mark {mark!r}")
    kept = storable(text)[: offsets[room - 1][1]].rstrip() if room else ""
    return kept + mark


def _encoded(text: str) -> Any:  # noqa: ANN401 - the library ships no types
    with _lock:
        return _tokenizer().encode(storable(text), add_special_tokens=False)


@cache
def _tokenizer() -> Any:  # noqa: ANN401 - as above
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(find_model(TOKENIZER).path / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
