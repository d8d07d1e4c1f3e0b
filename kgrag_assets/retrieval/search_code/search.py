"""Search code: a language model writes a small program for an attribute, or a pair, and the graph answers it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kgrag_assets.knowledge.base import KnowledgeBase
from kgrag_assets.models.asking_many import ask_many
from kgrag_assets.models.chat import ChatModel, ChatReply, ChatRequest
from kgrag_assets.models.ledger import CallLedger
from kgrag_assets.models.prompt_text import shown
from kgrag_assets.retrieval.names import GraphNames, Name
from kgrag_assets.retrieval.pair_links import PairLinks
from kgrag_assets.retrieval.protocol import MAX_COUNT, RetrievalQuery, Subgraph
from kgrag_assets.retrieval.search_code.facts import facts_of, names_in
from kgrag_assets.retrieval.search_code.interpreter import run_program
from kgrag_assets.retrieval.search_code.nearness import Nearness, Side
from kgrag_assets.retrieval.search_code.program_text import code_in, read_program
from kgrag_assets.retrieval.search_code.prompt import TEMPLATE, ProgramPrompt
from kgrag_assets.retrieval.search_code.questions import NOTHING, Findings, GraphQuestions
from kgrag_assets.retrieval.search_code.remembering import RememberingBase
from kgrag_assets.retrieval.search_code.similarity import TextSimilarity, WordSimilarity
from kgrag_assets.retrieval.support import VERSION as SUPPORT_VERSION
from kgrag_assets.retrieval.support import AttributeWords
from kgrag_assets.rows.keys import key_of
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.settings import LanguageModelSettings, RetrievalSettings

VERSION = f"{TEMPLATE}/1/{SUPPORT_VERSION}"

# How the notes of a subgraph begin whose model did not answer: it is asked again the next time.
CALL_FAILED = "call failed: "
# Characters of a note about one program.
MAX_NOTE = 300


@dataclass(frozen=True)
class ProgramResult:
    """What came of one program: what the graph answered, what went wrong, and whether the program ended at its budget.

    ``failed`` says why the model did not answer; there was no program then. Both texts are empty for nothing.
    """

    found: Findings = NOTHING
    error: str = ""
    over_budget: bool = False
    failed: str = ""


class SearchCode:
    """Asks a language model for search programs and runs them over a knowledge graph.

    After Wang et al., "KnowledGPT: Enhancing Large Language Models with Retrieval and Storage Access on Knowledge
    Bases" (2023), whose programs Python runs; here an interpreter does that knows three questions and little else
    (``interpreter``). Facts are what the graph answered, never what the model or its program wrote.

    In the concept form there is one program for each attribute, whatever number of pairs it stands in; in the question
    form one for each pair.
    """

    name = "search_code"

    def __init__(
        self,
        model: ChatModel,
        ledger: CallLedger,
        task: str,
        *,
        knowledge: KnowledgeBase,
        settings: RetrievalSettings,
        llm: LanguageModelSettings,
        graph_version: str,
        names: GraphNames | None = None,
        similarity: TextSimilarity | None = None,
        words: Callable[[Attribute], AttributeWords] = AttributeWords.of,
    ) -> None:
        """Take who is asked, and what is searched.

        Args:
            model: writes the programs.
            ledger: where its replies are kept.
            task: the task that asks.
            knowledge: the graph; its answers are remembered.
            settings: ``query_form``, ``code_steps``, ``code_calls``, ``min_cosine``, ``max_hops`` and ``max_facts``
                are used.
            llm: how the model is asked.
            graph_version: hash of everything in the graph: when it changes, every pair is retrieved again.
            names: labels and descriptions for facts, where the methods beside this one have them from another place
                than ``knowledge``; None for the names in its answers.
            similarity: compares names, and the words of relations; None for the words that texts share.
            words: gives an attribute's own words.
        """
        self._model = model
        self._ledger = ledger
        self._task = task
        self._base = RememberingBase(knowledge)
        self._settings = settings
        self._llm = llm
        self._graph_version = graph_version
        self._names = names
        self._similarity = similarity or WordSimilarity()
        self._words = words
        self._nearness = Nearness(self._similarity, words, settings.min_cosine)
        self._prompt = ProgramPrompt(model, settings, llm)
        self._requests: dict[str, ChatRequest] = {}
        self._results: dict[str, ProgramResult] = {}
        self._sides: dict[str, Side] = {}

    def key(self, query: RetrievalQuery) -> str:
        """Hash the requests, the attributes' words, the settings used and the version of the graph."""
        options = self._settings
        return key_of(
            VERSION,
            query.pair_id,
            [request.request_hash for request in self._requests_of(query)],
            [self._words(side).key_parts() for side in (query.source, query.target)],
            [options.code_steps, options.code_calls, options.min_cosine, options.max_hops, options.max_facts],
            self._similarity.version,
            self._graph_version,
        )

    def retrieve(self, queries: Sequence[RetrievalQuery]) -> list[Subgraph]:
        """Find each pair's facts, best first (``facts.facts_of`` says which there are, and what they are worth).

        A program that goes wrong keeps what it had found, and its error stands in the notes. Where the model did not
        answer, the status is no_answer and the notes begin with ``CALL_FAILED``; where a program asked nothing of the
        graph, and the pair has neither facts nor seeds, it is no_answer, too.

        Raises:
            ModelUnavailableError: the model or the embedder cannot be used.
            LakeError: the ledger or the graph's rows cannot be read or written.
            KnowledgeError: the graph cannot be asked; a remote one that took too long ends a program as a budget does.
        """
        requests = {one.request_hash: one for query in queries for one in self._requests_of(query)}
        new = [request for name, request in requests.items() if name not in self._results]
        replies = ask_many(self._model, self._ledger, self._task, new, concurrency=self._llm.concurrency)
        results = {name: self._results[name] for name in requests if name in self._results}
        for request, reply in zip(new, replies, strict=True):
            results[request.request_hash] = self._run(reply)
        # A model that did not answer may do so the next time.
        self._results.update({name: result for name, result in results.items() if not result.failed})
        return [self._subgraph(query, results) for query in queries]

    @property
    def _by_pair(self) -> bool:
        return self._settings.query_form == "question"

    def _requests_of(self, query: RetrievalQuery) -> tuple[ChatRequest, ...]:
        if self._by_pair:
            return (self._request(query.pair_id, lambda: self._prompt.for_pair(query)),)
        return tuple(
            self._request(side.attribute_id, lambda side=side: self._prompt.for_attribute(side))  # type: ignore[misc]
            for side in (query.source, query.target)
        )

    def _request(self, name: str, make: Callable[[], ChatRequest]) -> ChatRequest:
        # An attribute stands in many pairs.
        if name not in self._requests:
            self._requests[name] = make()
        return self._requests[name]

    def _run(self, reply: ChatReply) -> ProgramResult:
        if not reply.brought_text:
            return ProgramResult(failed=shown(f"{reply.status}: {reply.error}".rstrip(": "), MAX_NOTE))
        questions = GraphQuestions(self._base, self._similarity, self._settings.code_calls)
        outcome = run_program(read_program(code_in(reply.text)), questions, self._settings.code_steps)
        found = questions.findings
        errors = [outcome.error or ("" if found.calls else "the program asked nothing")]
        errors += ["the model's text was cut for its length"] if reply.status == "truncated" else []
        error = ", ".join(filter(None, errors))
        return ProgramResult(found, shown(error, MAX_NOTE), outcome.over_budget)

    def _subgraph(self, query: RetrievalQuery, all_results: Mapping[str, ProgramResult]) -> Subgraph:
        hashes = tuple(dict.fromkeys(request.request_hash for request in self._requests_of(query)))
        results = [all_results[request.request_hash] for request in self._requests_of(query)]
        failed = next((result.failed for result in results if result.failed), "")
        if failed:
            return Subgraph(self.name, "no_answer", (), (), 0, notes=CALL_FAILED + failed, request_hashes=hashes)
        source, target = self._sides_of(query, results)
        names = self._names_of(results)
        found = facts_of(source, target, names, self._settings.max_hops)
        kept = found.facts[: self._settings.max_facts]
        seeds = PairLinks(source.links, target.links, joint=self._by_pair).seeds(names)
        if kept:
            ended = found.exhausted or any(result.over_budget for result in results)
            status = "cut" if ended else "found"
        elif seeds:
            status = "no_path"
        else:
            status = "no_seed" if all(result.found.calls for result in results) else "no_answer"
        cut = len(found.facts) - len(kept) + sum(result.found.left_out for result in results)
        return Subgraph(
            self.name,
            status,
            seeds,
            kept,
            min(cut, MAX_COUNT),
            unverified=tuple(dict.fromkeys(name for result in results for name in result.found.unknown)),
            notes=_notes(results),
            request_hashes=hashes,
        )

    def _sides_of(self, query: RetrievalQuery, results: Sequence[ProgramResult]) -> tuple[Side, Side]:
        if self._by_pair:
            return self._nearness.of_pair(query.source, query.target, results[0].found)
        source, target = (
            self._side(side, result.found) for side, result in zip((query.source, query.target), results, strict=True)
        )
        return source, target

    def _side(self, attribute: Attribute, found: Findings) -> Side:
        known = self._sides.get(attribute.attribute_id)
        if known is None:
            known = self._sides[attribute.attribute_id] = self._nearness.of_attribute(attribute, found)
        return known

    def _names_of(self, results: Iterable[ProgramResult]) -> Mapping[str, Name]:
        found = [result.found for result in results]
        names = names_in(
            (entity.info for one in found for entity in one.entities),
            (triple for one in found for triple in one.statements),
        )
        return names if self._names is None else self._names.of(names)


def _notes(results: Sequence[ProgramResult]) -> str:
    programs = ("source program", "target program") if len(results) == 2 else ("program",)
    return "; ".join(
        f"{program}: {result.error}" for program, result in zip(programs, results, strict=True) if result.error
    )
