"""A chat model that answers from the ledger alone: no server, no key, nothing to pay."""

from __future__ import annotations

from collections.abc import Sequence

from kgrag_assets.models.chat import ChatReply, ChatRequest
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.models.retrying import Pause


class LedgerOnlyChat:
    """Stands for a model in a replay: whoever asks looks into the ledger first, so it is asked what is not there."""

    def __init__(self, provider: str, model: str) -> None:
        self.provider = provider
        self.model = model
        self.pause = Pause()

    def ask(self, request: ChatRequest) -> ChatReply:
        """Refuse: the answer is not in the ledger.

        Raises:
            ModelUnavailableError: always.
        """
        raise ModelUnavailableError(
            f"the ledger has no answer of {self.model} to the request {request.request_hash}: it was never asked, or "
            "prompt, facts or parameters have changed since; run the task first"
        )


def missing_answers(ledger: CallLedger, requests: Sequence[ChatRequest]) -> list[ChatRequest]:
    """Return the requests, each once, to which the ledger has no answer."""
    distinct = {request.request_hash: request for request in requests}
    return [request for request_hash, request in distinct.items() if ledger.find(request_hash) is None]
