"""Asking a chat model many questions at a time, through the ledger, so that an interruption loses nothing paid for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue

from kgrag_assets.models.chat import ChatModel, ChatReply, ChatRequest
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.ledger import CallLedger, ask_once
from kgrag_assets.rows.llm_judgments import FAILED_STATUSES

# So many failures in a row, each after its own retries, say that the server is down.
MOST_FAILURES_IN_A_ROW = 20

# The main thread looks up this often: with polars in the process, whose signal handler restarts system
# calls, Ctrl-C does not end a wait that has no end of its own.
_GLANCE_S = 0.25


def ask_many(
    model: ChatModel,
    ledger: CallLedger,
    task: str,
    requests: Sequence[ChatRequest],
    *,
    concurrency: int,
    on_done: Callable[[int, ChatReply], None] | None = None,
) -> list[ChatReply]:
    """Answer requests from the ledger, or ask and keep each answer before anybody is told of it.

    Equal requests are asked once.

    Args:
        model: whom to ask.
        ledger: where replies are kept.
        task: the task that asks.
        requests: the questions.
        concurrency: calls at a time.
        on_done: called with the place of a request and its reply, in the order in which replies come, from the
            calling thread.

    Returns:
        The replies, in the order of the requests.

    Raises:
        ModelUnavailableError: the model cannot be asked, a budget is spent, or the server has failed many times in
            a row. What was answered before is in the ledger, and a rerun asks only for the rest.
        LakeError: the ledger cannot be written.
    """
    places: dict[str, list[int]] = {}
    for place, request in enumerate(requests):
        places.setdefault(request.request_hash, []).append(place)
    model.pause.reset()
    executor = ThreadPoolExecutor(concurrency, thread_name_prefix="ask")
    futures: dict[Future[tuple[ChatReply, bool]], str] = {}
    done: SimpleQueue[Future[tuple[ChatReply, bool]]] = SimpleQueue()
    replies: dict[int, ChatReply] = {}
    failures = 0
    try:
        for request_hash, mine in places.items():
            future = executor.submit(ask_once, model, ledger, task, requests[mine[0]])
            futures[future] = request_hash
            future.add_done_callback(done.put)
        for _ in places:
            future = _next(done)
            reply, kept = future.result()
            for place in places[futures[future]]:
                replies[place] = reply
                if on_done is not None:
                    on_done(place, reply)
            failures = failures + 1 if reply.status in FAILED_STATUSES and not kept else 0
            if failures >= MOST_FAILURES_IN_A_ROW:
                raise ModelUnavailableError(
                    f"{model.provider} model {model.model} failed {failures} calls in a row, the last one with: "
                    f"{reply.error}; answered calls are kept, run again when the server is well"
                )
    finally:
        # Also on Ctrl-C: what waits gives up, what is under way ends and is kept, the rest is dropped.
        model.pause.interrupt()
        executor.shutdown(wait=False, cancel_futures=True)
        while wait([future for future in futures if not future.done()], timeout=_GLANCE_S).not_done:
            pass
        model.pause.reset()
    return [replies[place] for place in range(len(requests))]


def _next(done: SimpleQueue[Future[tuple[ChatReply, bool]]]) -> Future[tuple[ChatReply, bool]]:
    while True:
        try:
            return done.get(timeout=_GLANCE_S)
        except Empty:
            continue
