"""What the model is asked: to write a search program for an attribute, or for the two attributes of a pair."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from kgrag_assets.models.chat import ChatModel, ChatRequest, Message
from kgrag_assets.models.prompt_text import fence_of, fenced, one_line, read_template, shown
from kgrag_assets.models.tokens import cut_to_tokens
from kgrag_assets.retrieval.protocol import RetrievalQuery
from kgrag_assets.schemas.attribute import Attribute
from kgrag_assets.settings import LanguageModelSettings, RetrievalSettings

TEMPLATE = "search-code-v1"
NAME_LENGTH = 120
# Tokens of a description: what a column is stands at its beginning.
DESCRIPTION_TOKENS = 80


class ProgramPrompt:
    """Makes the requests; equal attributes make equal requests. Sample values are never part of one."""

    def __init__(self, model: ChatModel, settings: RetrievalSettings, llm: LanguageModelSettings) -> None:
        self._model = model
        self._settings = settings
        self._llm = llm
        self._template = read_template("kgrag_assets.retrieval", TEMPLATE, NAME_LENGTH, DESCRIPTION_TOKENS)
        self._systems: dict[str, str] = {}
        self._told: dict[str, list[str]] = {}

    def for_attribute(self, attribute: Attribute) -> ChatRequest:
        """Ask for a program about one attribute."""
        return self._request("the column", self._lines(attribute))

    def for_pair(self, query: RetrievalQuery) -> ChatRequest:
        """Ask for a program about both attributes of a pair, and how they are related."""
        lines = ["column 1", *self._lines(query.source), "column 2", *self._lines(query.target)]
        return self._request("both columns and how they are related", lines)

    def _request(self, subject: str, lines: Sequence[str]) -> ChatRequest:
        fence = fence_of(list(lines))
        system = self._systems.get(subject)
        if system is None:
            # All requests share the one text.
            system = Template(self._template.system).substitute(subject=subject, calls=self._settings.code_calls)
            self._systems[subject] = system
        user = Template(self._template.user).substitute(subject=subject, fence=fence, lines=fenced(fence, lines))
        return ChatRequest(
            provider=self._model.provider,
            model=self._model.model,
            messages=(Message("system", system), Message("user", user)),
            temperature=self._llm.temperature,
            max_tokens=self._llm.max_tokens,
        )

    def _lines(self, attribute: Attribute) -> list[str]:
        # An attribute stands in many pairs.
        if attribute.attribute_id not in self._told:
            self._told[attribute.attribute_id] = _lines(attribute)
        return self._told[attribute.attribute_id]


def _lines(attribute: Attribute) -> list[str]:
    told = [
        ("table", shown(attribute.table_name, NAME_LENGTH)),
        ("table description", _described(attribute.table_description)),
        ("name", shown(attribute.column_name, NAME_LENGTH)),
        ("type", shown(attribute.data_type, NAME_LENGTH)),
        ("description", _described(attribute.column_description)),
    ]
    return [f"{what}: {text}" for what, text in told if text]


def _described(description: str) -> str:
    return cut_to_tokens(one_line(description), DESCRIPTION_TOKENS)
