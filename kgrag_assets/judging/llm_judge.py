"""The judge that asks a language model, pair by pair, through the ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue

from kgrag_assets.judging.parsing import ParsedAnswer, parse_answer
from kgrag_assets.judging.prompt import ANSWER_SCHEMA, build_messages, fact_labels, prompt_template
from kgrag_assets.judging.protocol import JudgePair, Judgment
from kgrag_assets.models.chat import REPLIED_STATUSES, ChatModel, ChatReply, ChatRequest, Message
from kgrag_assets.models.errors import ModelUnavailableError
from kgrag_assets.models.ledger import CallLedger, ask_once
from kgrag_assets.rows.keys import key_of
from kgrag_assets.settings import JudgingSettings

# Part of the key: answers read by other rules are judged anew (from the ledger, without a call).
PARSER_VERSION = 1

# So many failures in a row, each after its own retries, say that the server is down.
MOST_FAILURES_IN_A_ROW = 20

# The main thread looks up this often: with polars in the process, whose signal handler restarts system
# calls, Ctrl-C does not end a wait that has no end of its own.
_GLANCE_S = 0.25


class LlmJudge:
    """Asks a chat model about each pair, several at a time.

    Each answered call is in the ledger before anybody is told of it. ``score`` is the probability of a
    match: the model's confidence if it says match, else one minus it; an answer without a confidence
    counts as 0.75 or 0.25.
    """

    def __init__(self, chat_model: ChatModel, ledger: CallLedger, settings: JudgingSettings, name: str) -> None:
        self._chat_model = chat_model
        self._ledger = ledger
        self._settings = settings
        self._name = name

    @property
    def name(self) -> str:
        """The provider: openai or ollama."""
        return self._name

    @property
    def model(self) -> str:
        """The model's name."""
        return self._chat_model.model

    @property
    def prompt_version(self) -> str:
        """The template's name with a hash of its text."""
        return prompt_template().version

    def key(self, pair: JudgePair) -> str:
        """Hash the pair, its context, the question as asked, the model and its parameters."""
        return key_of(
            "judgment",
            pair.task,
            pair.pair_id,
            pair.context_key,
            self._name,
            self.prompt_version,
            PARSER_VERSION,
            self._request(pair).request_hash,
        )

    def judge(self, pairs: Sequence[JudgePair], on_done: Callable[[Judgment], None] | None = None) -> list[Judgment]:
        """Judge pairs; returns their judgments in order.

        Args:
            pairs: the pairs.
            on_done: called after each, in the order in which answers come, from the calling thread.

        Raises:
            ModelUnavailableError: the model cannot be asked, or the server has failed many times in a row.
                What was answered before is in the ledger, and a rerun asks only for the rest.
            LakeError: the ledger cannot be written.
        """
        self._chat_model.pause.reset()
        executor = ThreadPoolExecutor(self._settings.concurrency, thread_name_prefix="judge")
        futures: list[Future[Judgment]] = []
        done: SimpleQueue[Future[Judgment]] = SimpleQueue()
        failures = 0
        try:
            for pair in pairs:
                future = executor.submit(self._judge_one, pair)
                futures.append(future)
                future.add_done_callback(done.put)
            for _ in futures:
                judgment = _next(done).result()
                if on_done is not None:
                    on_done(judgment)
                failures = failures + 1 if judgment.parse_status in ("timeout", "rate_limited", "error") else 0
                if failures >= MOST_FAILURES_IN_A_ROW:
                    raise ModelUnavailableError(
                        f"{self._name} model {self.model} failed {failures} calls in a row, the last one with: "
                        f"{judgment.reason}; answered calls are kept, run again when the server is well"
                    )
        finally:
            # Also on Ctrl-C: what waits gives up, what is under way ends and is kept, the rest is dropped.
            self._chat_model.pause.interrupt()
            executor.shutdown(wait=False, cancel_futures=True)
            while wait([future for future in futures if not future.done()], timeout=_GLANCE_S).not_done:
                pass
            self._chat_model.pause.reset()
        return [future.result() for future in futures]

    def _request(self, pair: JudgePair) -> ChatRequest:
        return ChatRequest(
            provider=self._name,
            model=self._chat_model.model,
            messages=tuple(Message(message["role"], message["content"]) for message in build_messages(pair)),
            temperature=self._settings.temperature,
            max_tokens=self._settings.max_tokens,
            json_schema=None if self._settings.structured == "none" else ANSWER_SCHEMA,
        )

    def _judge_one(self, pair: JudgePair) -> Judgment:
        request = self._request(pair)
        reply, _ = ask_once(self._chat_model, self._ledger, pair.task, request)
        labels = fact_labels(pair)
        parsed = _read(reply, list(labels))
        return Judgment(
            pair_id=pair.pair_id,
            parse_status=parsed.status,
            answer=parsed.answer,
            score=parsed.score,
            reason=parsed.reason,
            cited_facts=tuple(labels[label] for label in parsed.cited_facts),
            request_hash=request.request_hash,
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
            cost_usd=reply.cost_usd,
        )


def _next(done: SimpleQueue[Future[Judgment]]) -> Future[Judgment]:
    while True:
        try:
            return done.get(timeout=_GLANCE_S)
        except Empty:
            continue


def _read(reply: ChatReply, labels: list[str]) -> ParsedAnswer:
    if reply.status in REPLIED_STATUSES:
        return parse_answer(reply.text, labels, reply.status)
    return ParsedAnswer(reply.status, reason=reply.error)
