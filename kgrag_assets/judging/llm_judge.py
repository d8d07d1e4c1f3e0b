"""The judge that asks a language model, through the ledger, in the form of prompt that the settings name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from kgrag_assets.judging.parsing import ParsedAnswer
from kgrag_assets.judging.prompt import PromptForm, Question
from kgrag_assets.judging.protocol import JudgePair, Judgment
from kgrag_assets.judging.voting import Share, judgment_of, shares_of, with_second
from kgrag_assets.models.asking_many import ask_many
from kgrag_assets.models.chat import REPLIED_STATUSES, ChatModel, ChatReply, ChatRequest
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.rows.keys import key_of
from kgrag_assets.settings import JudgingSettings

# Part of the key: answers read by other rules are judged anew (from the ledger, without a call).
PARSER_VERSION = 2
# Several answers to one question differ only where the model may choose: at temperature 0 they would be one.
VOTING_TEMPERATURE = 0.7


class LlmJudge:
    """Asks a chat model about pairs, several calls at a time.

    Each answered call is in the ledger before anybody is told of it. ``score`` is the probability of a match: the
    model's confidence if it says match, else one minus it; an answer without a confidence counts as 0.75 or 0.25.
    """

    def __init__(
        self,
        chat_model: ChatModel,
        ledger: CallLedger,
        settings: JudgingSettings,
        name: str,
        form: PromptForm,
        second: LlmJudge | None = None,
    ) -> None:
        """Take model, ledger and prompt.

        Args:
            chat_model: whom to ask.
            ledger: where answers are kept.
            settings: parameters.
            name: the provider.
            form: how it is asked.
            second: another judge whose word is set beside this one's.
        """
        self._chat_model = chat_model
        self._ledger = ledger
        self._settings = settings
        self._name = name
        self._form = form
        self._second = second

    @property
    def name(self) -> str:
        """The provider: openai or ollama."""
        return self._name

    @property
    def model(self) -> str:
        """The model's name."""
        return self._chat_model.model

    @property
    def second(self) -> LlmJudge | None:
        """The judge whose word is set beside this one's, where there is one."""
        return self._second

    @property
    def prompt_version(self) -> str:
        """The template's name with a hash of its text."""
        return self._form.version

    def questions(self, pairs: Sequence[JudgePair]) -> list[tuple[Question, list[ChatRequest]]]:
        """Write what is asked about pairs: each call with its requests, one for each answer that is wanted."""
        return [(question, self._requests(question)) for question in self._form.questions(pairs)]

    def keys(self, pairs: Sequence[JudgePair]) -> list[str]:
        """Hash for each pair its context, the whole call that asks about it, the model and how answers are read."""
        asked: dict[str, list[str]] = {}
        for question, requests in self.questions(pairs):
            hashes = [request.request_hash for request in requests]
            asked |= {pair.pair_id: hashes for pair in question.pairs}
        second = [None] * len(pairs) if self._second is None else self._second.keys(pairs)
        return [
            key_of(
                "judgment",
                pair.task,
                pair.pair_id,
                pair.context_key,
                self._name,
                self.prompt_version,
                PARSER_VERSION,
                asked[pair.pair_id],
                self._settings.gate,
                self._settings.gate_threshold,
                other,
            )
            for pair, other in zip(pairs, second, strict=True)
        ]

    def judge(
        self,
        pairs: Sequence[JudgePair],
        wanted: Collection[str] | None = None,
        on_done: Callable[[Judgment], None] | None = None,
    ) -> list[Judgment]:
        """Judge pairs; see ``Judge``.

        Raises:
            ModelUnavailableError: the model cannot be asked, a budget is spent, or the server has failed many times in
                a row. What was answered before is in the ledger, and a rerun asks only for the rest.
            LakeError: the ledger cannot be written.
        """
        chosen = {pair.pair_id for pair in pairs} if wanted is None else set(wanted)
        asked = [
            (question, requests)
            for question, requests in self.questions(pairs)
            if any(pair.pair_id in chosen for pair in question.pairs)
        ]
        # A second judge goes first: what is told when the first is done is then whole.
        others = {} if self._second is None else {one.pair_id: one for one in self._second.judge(pairs, wanted)}
        judgments: dict[str, Judgment] = {}
        requests = [request for _, mine in asked for request in mine]
        owners = [number for number, (_, mine) in enumerate(asked) for _ in mine]
        replies: list[dict[int, ChatReply]] = [{} for _ in asked]

        def answered(place: int, reply: ChatReply) -> None:
            number = owners[place]
            replies[number][place] = reply
            question, mine = asked[number]
            if len(replies[number]) < len(mine):
                return
            for judgment in self._judgments(question, mine, [replies[number][one] for one in sorted(replies[number])]):
                if judgment.pair_id in chosen:
                    other = others.get(judgment.pair_id)
                    whole = judgment if other is None else with_second(judgment, other)
                    judgments[judgment.pair_id] = whole
                    if on_done is not None:
                        on_done(whole)

        if requests:
            tasks = {pair.task for question, _ in asked for pair in question.pairs}
            ask_many(
                self._chat_model,
                self._ledger,
                ", ".join(sorted(tasks)),
                requests,
                concurrency=self._settings.concurrency,
                on_done=answered,
            )
        return [judgments[pair.pair_id] for pair in pairs if pair.pair_id in chosen]

    def _requests(self, question: Question) -> list[ChatRequest]:
        settings = self._settings
        several = settings.answers > 1
        request = ChatRequest(
            provider=self._name,
            model=self._chat_model.model,
            messages=question.messages,
            temperature=max(settings.temperature, VOTING_TEMPERATURE) if several else settings.temperature,
            max_tokens=question.max_tokens,
            json_schema=None if settings.structured == "none" else question.json_schema,
        )
        return [replace(request, seed=seed) for seed in range(1, settings.answers + 1)] if several else [request]

    def _judgments(
        self, question: Question, requests: Sequence[ChatRequest], replies: Sequence[ChatReply]
    ) -> list[Judgment]:
        read = [self._read(question, reply) for reply in replies]
        shares = [Share() for _ in question.pairs]
        for reply in replies:
            parts = shares_of(reply.tokens_in, reply.tokens_out, reply.cost_usd, len(question.pairs))
            shares = [share + part for share, part in zip(shares, parts, strict=True)]
        return [
            judgment_of(
                pair,
                [answers[place] for answers in read],
                question.labels[place],
                shares[place],
                requests[0].request_hash,
                self._settings,
            )
            for place, pair in enumerate(question.pairs)
        ]

    def _read(self, question: Question, reply: ChatReply) -> list[ParsedAnswer]:
        if reply.status in REPLIED_STATUSES:
            return self._form.read(question, reply.text, reply.status)
        return [ParsedAnswer(reply.status, reason=reply.error)] * len(question.pairs)
