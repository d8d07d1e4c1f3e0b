"""From a call to a reply: what every adapter does around its own client."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from kgrag_assets.models.chat import ChatReply
from kgrag_assets.models.endpoints import storable, without_secrets
from kgrag_assets.models.errors import PermanentFailure, TransientFailure
from kgrag_assets.models.prices import Price


def asked(call: Callable[[], ChatReply], price: Price | None, key: str = "") -> ChatReply:
    """Run a call and return its reply, with latency and cost; failures become replies with their status.

    Args:
        call: returns a reply, or raises ``TransientFailure`` or ``PermanentFailure``.
        price: None where none is known; the cost is then None.
        key: what must not appear in an error text.
    """
    started = time.monotonic()
    try:
        reply = call()
    except TransientFailure as failure:
        reply = ChatReply("", failure.status, failure.message)
    except PermanentFailure as failure:
        reply = ChatReply("", "error", str(failure))
    return replace(
        reply,
        text=storable(reply.text),
        error=without_secrets(reply.error, key),
        latency_s=time.monotonic() - started,
        cost_usd=None if price is None else price.of(reply.tokens_in, reply.tokens_out),
    )
