"""From texts to token numbers, fast: each different word is cut into tokens once."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from kgrag_assets.models.endpoints import storable

# Words remembered; some 150 bytes each. A graph of millions of names has more, and the frequent ones come back soon.
MAX_WORDS = 1_000_000


class TokenIds:
    """Cuts texts into the numbers of a tokenizer's tokens, without special and unknown ones.

    A BERT tokenizer looks at each space-separated word by itself, so the tokens of a text are those of its words,
    and the words repeat: remembering them makes it several times as fast as cutting every text. Other tokenizers
    cut whole texts.
    """

    def __init__(self, tokenizer: Any, max_words: int = MAX_WORDS) -> None:  # noqa: ANN401 - ships no types
        """Take a ``tokenizers.Tokenizer``; its truncation and padding are switched off."""
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        described = json.loads(tokenizer.to_str())
        model = described["model"]
        name = model.get("unk_token")
        self._unknown = tokenizer.token_to_id(name) if isinstance(name, str) else model.get("unk_id")
        self._by_word = _cuts_by_word(described)
        self._max_words = max_words
        self._lock = threading.Lock()
        self._forget()

    def of(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return all tokens one after the other (int32), and the bounds of each text's (int64, one more than texts).

        A lone surrogate is read as ``?``. Safe to call from several threads.
        """
        if not self._by_word:
            return _ragged(self._cut([storable(text) for text in texts]))
        with self._lock:
            words = " ".join(texts).split(" ") if texts else []
            places = list(map(self._places.get, words))
            if None in places:
                self._learn(words, places)
                places = [self._places[word] for word in words]
            starts, pieces = self._starts, self._pieces
            chosen = np.asarray(places, dtype=np.int64)
        per_text = np.fromiter((text.count(" ") + 1 for text in texts), dtype=np.int64, count=len(texts))
        begin, lengths = starts[chosen], starts[chosen + 1] - starts[chosen]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        tokens = pieces[np.repeat(begin - ends[:-1], lengths) + np.arange(ends[-1])]
        return tokens, ends[np.concatenate([[0], np.cumsum(per_text)])]

    def _forget(self) -> None:
        self._places: dict[str, int] = {}
        self._starts = np.zeros(1, dtype=np.int64)
        self._pieces = np.zeros(0, dtype=np.int32)

    def _learn(self, words: list[str], places: Sequence[int | None]) -> None:
        fresh = list(dict.fromkeys(word for word, place in zip(words, places, strict=True) if place is None))
        if len(self._places) + len(fresh) > self._max_words:
            self._forget()
            fresh = list(dict.fromkeys(words))
        tokens, bounds = _ragged(self._cut([storable(word) for word in fresh]))
        known = len(self._places)
        self._starts = np.concatenate([self._starts, bounds[1:] + self._starts[-1]])
        self._pieces = np.concatenate([self._pieces, tokens])
        self._places.update(zip(fresh, range(known, known + len(fresh)), strict=True))

    def _cut(self, texts: list[str]) -> list[list[int]]:
        unknown = self._unknown
        cut = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return [[token for token in one.ids if token != unknown] for one in cut]


def _cuts_by_word(described: dict[str, Any]) -> bool:
    """Say whether the tokenizer treats each space-separated word by itself."""
    normalizer, splitter = described.get("normalizer") or {}, described.get("pre_tokenizer") or {}
    spaced = any(" " in str(token.get("content", "")) for token in described.get("added_tokens") or [])
    return (
        described["model"].get("type") == "WordPiece"
        and splitter.get("type") == "BertPreTokenizer"
        and normalizer.get("type", "BertNormalizer") == "BertNormalizer"
        and not spaced
    )


def _ragged(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    bounds = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=bounds[1:])
    flat = np.fromiter((token for row in rows for token in row), dtype=np.int32, count=int(bounds[-1]))
    return flat, bounds
