"""Whether a server takes a JSON schema for its answers: what was tried and what is remembered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from kgrag_assets.models.errors import ModelUnavailableError

T = TypeVar("T")

Schema = Mapping[str, Any]
Structured = Literal["auto", "json_schema", "none"]


class FormatRefused(Exception):  # noqa: N818 - one way a call may go, handled here
    """The server answered 400 (or 422) to a call that asked for a form of the answer.

    ``names_format`` says whether its message speaks of the form. ``error`` is the failure as the caller
    would report it were the form not the reason.
    """

    def __init__(self, error: Exception, *, names_format: bool) -> None:
        super().__init__(str(error))
        self.error = error
        self.names_format = names_format


class StructuredOutput:
    """Asks with a schema where the server takes one.

    With ``auto``, a refused schema leads to one more call without it. If that call works, the server does
    not take schemas, and that is remembered for all later calls.
    """

    def __init__(self, mode: Structured, setting: str) -> None:
        self._mode = mode
        self._setting = setting
        self._lock = threading.Lock()
        # None: not known yet.
        self._takes_schema: bool | None = False if mode == "none" else None

    @property
    def takes_schema(self) -> bool | None:
        """Whether the server takes a schema; None while that is not known."""
        return self._takes_schema

    def _learn(self, takes: bool) -> None:
        with self._lock:
            if self._takes_schema is None or not takes:
                self._takes_schema = takes

    def ask(self, schema: Schema | None, call: Callable[[Schema | None], T]) -> T:
        """Call with the schema or, where the server does not take one, with None.

        Args:
            schema: the schema, or None to ask for plain text.
            call: makes the call with the schema it is given; raises ``FormatRefused`` for a 400 to a schema.

        Raises:
            ModelUnavailableError: the setting insists on a schema and the server does not take one.
        """
        if schema is None or self._takes_schema is False:
            return call(None)
        try:
            result = call(schema)
        except FormatRefused as refused:
            if self._mode == "json_schema":
                if not refused.names_format:
                    raise refused.error from None
                raise ModelUnavailableError(
                    f"the server does not take a JSON schema ({refused.error}): set {self._setting}=auto or none"
                ) from None
            # A schema that was taken before is not what the server objects to now.
            if self._takes_schema and not refused.names_format:
                raise refused.error from None
            result = call(None)
            self._learn(False)
            return result
        self._learn(True)
        return result
