"""The two questions that the MediaWiki API of a Wikibase site is asked: what changed, and what entities say now."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Self, Unpack

import httpx

from kgrag_assets.knowledge.changes.cursor import iso, moment_of
from kgrag_assets.knowledge.changes.errors import ApiError, TooLargeError
from kgrag_assets.knowledge.changes.polite_http import PoliteHttp
from kgrag_assets.knowledge.http.site import Manners
from kgrag_assets.knowledge.json_object import json_object_of
from kgrag_assets.models.endpoints import without_secrets
from kgrag_assets.models.errors import TransientFailure
from kgrag_assets.models.retrying import retry_after_seconds

BATCH = 50
PROPS = ("labels", "aliases", "descriptions", "claims", "info", "datatype")
NAMESPACES = (0, 120)
# Multi-value parameters take 50 values; with more languages all are fetched.
_MAX_VALUES = 50
_MAXLAG_WAIT_S = 5.0
_PASSING = ("maxlag", "ratelimited", "readonly", "internal_api_error")
_ID = re.compile(r"[QP][1-9][0-9]{0,9}\Z")
_TITLE = re.compile(r"(?:Property:)?([QP][0-9]+)\Z")
# Ids are 32-bit numbers at Wikibase: one that is larger makes it refuse the whole batch.
_MAX_NUMBER = 2**31 - 1


def is_entity_id(value: object) -> bool:
    """Whether a value is the id of an item or a property that the API takes."""
    return isinstance(value, str) and _ID.match(value) is not None and int(value[1:]) <= _MAX_NUMBER


def entity_of_title(title: object) -> str | None:
    """Return the id in the title of an entity's page (``Q42``, ``Property:P31``); None for other pages."""
    found = _TITLE.match(title) if isinstance(title, str) else None
    return found.group(1) if found is not None and is_entity_id(found.group(1)) else None


@dataclass(frozen=True)
class RecentPage:
    """A page of recent changes as the API gave them; ``more`` asks for the next one, None at the end."""

    entries: list[dict[str, Any]]
    more: dict[str, str] | None
    server_time: datetime | None


@dataclass(frozen=True)
class EntityAnswers:
    """Answers about some ids: their records, which may say ``missing``, and ids without an answer, with the reason."""

    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


class MediaWikiClient:
    """Asks the API of one site, ``https://www.wikidata.org/w/api.php``."""

    def __init__(
        self,
        endpoint: str,
        user_agent: str,
        *,
        languages: Sequence[str] = ("en", "mul"),
        props: Sequence[str] = PROPS,
        maxlag_s: int = 5,
        page_size: int = 500,
        **manners: Unpack[Manners],
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            endpoint: address of ``api.php``.
            user_agent: as ``user_agent_of`` makes it.
            languages: languages of labels, aliases and descriptions; none for all.
            props: parts of an entity; ``sitelinks`` among them where a filter counts those. ``info`` is always asked.
            maxlag_s: the site answers only while its databases are less than this behind.
            page_size: changes on a page, at most 500 without further rights.
            manners: as ``Site`` has them.

        Raises:
            ChangesError: the address or the user agent is not usable.
        """
        self.http = PoliteHttp(endpoint, user_agent, **manners)
        self._languages = tuple(languages) if len(languages) <= _MAX_VALUES else ()
        self._props = tuple(dict.fromkeys((*props, "info")))
        self._maxlag_s = maxlag_s
        self._page_size = page_size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.close()

    @property
    def endpoint(self) -> str:
        """The address that is asked."""
        return self.http.address

    def recent_changes(self, start: datetime, more: Mapping[str, str] | None = None) -> RecentPage:
        """Ask for a page of changes to items and properties, oldest first, by time and number.

        Args:
            start: changes of this moment and later.
            more: ``more`` of the page before; None for the first page.

        Raises:
            UnavailableError, TimeIsUpError, ApiError, ChangesError: as ``PoliteHttp.ask``.
        """
        answer = self._api(
            {
                "action": "query",
                "list": "recentchanges",
                "rcprop": "title|ids|timestamp|loginfo",
                "rcnamespace": "|".join(str(number) for number in NAMESPACES),
                "rctype": "edit|new|log",
                "rcdir": "newer",
                "rcstart": iso(start),
                "rclimit": str(self._page_size),
                "curtimestamp": "1",
                **(more or {}),
            }
        )
        query = answer.get("query", {})
        entries = query.get("recentchanges", []) if isinstance(query, dict) else None
        going_on = answer.get("continue")
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise ApiError(f"{self.endpoint}: query.recentchanges is not a list of changes", "unreadable")
        if going_on is not None and (not isinstance(going_on, dict) or "rccontinue" not in going_on):
            raise ApiError(f"{self.endpoint}: continue says nothing about recent changes", "unreadable")
        following = None if going_on is None else {str(name): str(value) for name, value in going_on.items()}
        return RecentPage(entries, following, moment_of(answer.get("curtimestamp")))

    def entities(self, ids: Sequence[str]) -> Iterator[EntityAnswers]:
        """Fetch entities as they are now, 50 at a time; each id is answered once, or refused with a reason.

        Args:
            ids: distinct ids. A redirect is answered with its target: ``redirects`` of the record says so.

        Raises:
            UnavailableError, TimeIsUpError, ApiError, ChangesError: as ``PoliteHttp.ask``.
        """
        usable = [local_id for local_id in ids if is_entity_id(local_id)]
        unusable = [local_id for local_id in ids if not is_entity_id(local_id)]
        if unusable:
            yield EntityAnswers(refused=dict.fromkeys(unusable, "is not the id of an item or a property"))
        waiting = [usable[begin : begin + BATCH] for begin in range(0, len(usable), BATCH)]
        while waiting:
            batch = waiting.pop(0)
            records, why = self._batch(batch)
            left = [local_id for local_id in batch if local_id not in records]
            if len(left) == 1 and not records:
                yield EntityAnswers(refused={left[0]: why})
            else:
                # The site leaves out what would make its answer too long, and refuses a batch for one bad id.
                parts = [left] if records else [left[: len(left) // 2], left[len(left) // 2 :]]
                waiting[:0] = [part for part in parts if part]
                if records:
                    yield EntityAnswers(records)

    def redirects(self, ids: Sequence[str]) -> dict[str, str]:
        """Ask where pages lead to that are redirects, though to a deleted entity or another redirect.

        ``wbgetentities`` calls such entities missing.

        Args:
            ids: at most 50 ids.

        Returns:
            Ids that are redirects, with those they lead to directly; of ids on the way, too.

        Raises:
            UnavailableError, TimeIsUpError, ApiError, ChangesError: as ``PoliteHttp.ask``.
        """
        titles = [f"Property:{local_id}" if local_id.startswith("P") else local_id for local_id in ids]
        answer = self._api({"action": "query", "titles": "|".join(titles), "redirects": "1"})
        query = answer.get("query")
        steps = query.get("redirects", []) if isinstance(query, dict) else []
        found: dict[str, str] = {}
        for step in steps if isinstance(steps, list) else []:
            begin, end = (
                entity_of_title(step.get(name)) if isinstance(step, dict) else None for name in ("from", "to")
            )
            if begin is not None and end is not None and begin != end:
                found[begin] = end
        return found

    def _batch(self, batch: Sequence[str]) -> tuple[dict[str, dict[str, Any]], str]:
        params = {"action": "wbgetentities", "ids": "|".join(batch), "props": "|".join(self._props), "redirects": "yes"}
        if self._languages:
            params["languages"] = "|".join(self._languages)
        try:
            answer = self._api(params)
        except TooLargeError as error:
            return {}, str(error)
        except ApiError as error:
            if error.code != "no-such-entity":
                raise
            return {}, str(error)
        entities = answer.get("entities")
        if not isinstance(entities, dict):
            raise ApiError(f"{self.endpoint}: the answer has no entities", "unreadable")
        records = {name: entities[name] for name in batch if isinstance(entities.get(name), dict)}
        return records, f"{self.endpoint} gave no record of it"

    def _api(self, params: Mapping[str, str]) -> dict[str, Any]:
        full = {"format": "json", "maxlag": str(self._maxlag_s), **params}
        return self.http.ask(self.endpoint, full, read=self._read)

    def _read(self, response: httpx.Response, body: bytes) -> dict[str, Any]:
        answer = json_object_of(body)
        if answer is None:
            # Servers in trouble send error pages with status 200.
            raise TransientFailure("error", "the answer is not a JSON object")
        error = answer.get("error")
        if error is None:
            return answer
        code, info = "unknown", ""
        if isinstance(error, dict):
            code, info = str(error.get("code", code))[:80], without_secrets(str(error.get("info", "")))
        if code.startswith(_PASSING):
            wait = retry_after_seconds(response.headers.get("retry-after"))
            if code == "maxlag" and (wait is None or wait <= 0):
                wait = _MAXLAG_WAIT_S
            raise TransientFailure("rate_limited", f"{code}: {info}", wait)
        raise ApiError(f"{self.endpoint} refused the request ({code}): {info}", code)
