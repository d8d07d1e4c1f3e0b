"""Reading N-Triples: Wikidata's truthy dump, and any other graph written so.

IRIs become ids by ``iri_prefixes`` in ``kg.yaml``: a list of ``prefix=short``, Wikidata's where it is not given.
An IRI of no known prefix is kept whole, as it is the only id that is sure to mean one thing; where it has no label,
the last part of it stands for one. Statements with a blank node have no id that would mean the same in the next
file: they are left out, and one line in the reject table for each block says how many. (Where Wikidata writes an
unknown value as a blank node, nothing is said: no other format has such statements either.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from kgrag_assets.knowledge.collector import Collector, id_problem
from kgrag_assets.knowledge.relation_ids import is_relation_id
from kgrag_assets.knowledge.sources import iris
from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.lines import files_with_suffix, is_id, lines_of, wants_literal
from kgrag_assets.knowledge.sources.ntriples_line import LineTerms, NotATripleError, unescaped, unescaped_iri
from kgrag_assets.knowledge.sources.ntriples_values import kind_of, text_of
from kgrag_assets.knowledge.sources.wikidata_values import ValueProblemError, one_line

# The ranks of a name made of an IRI: any label that the graph gives comes before it.
_RELATION_BY_IRI, _ENTITY_BY_IRI = 1_000_000, 1_000_001
_FILES_OF_COMMONS = "/wiki/Special:FilePath/"


def files_of(folder: Path) -> list[Path]:
    """List the N-Triples files of a folder: ``.nt``, plain, gzip or bzip2."""
    return files_with_suffix(folder, (".nt",))


@dataclass(frozen=True)
class NTriplesReader:
    """Reads N-Triples.

    Labels are ``rdfs:label``, ``skos:prefLabel`` and ``schema:name``; other names ``skos:altLabel`` and
    ``schema:alternateName``; descriptions ``schema:description``. Each other predicate is a relation. Types that
    only say "is a class" or "is a property" are no statements. Of Wikidata's dumps the notes that Wikibase keeps
    (articles, data sets, statement nodes) are left aside, their counts of sitelinks and statements are taken.
    """

    @property
    def version(self) -> str:
        """Name of this way to read."""
        return "ntriples/1"

    def context(self, start: bytes, file: str, into: Collector) -> bytes | None:  # noqa: ARG002  (the port's form)
        """Return nothing: every line stands for itself."""
        return b""

    def read(self, block: bytes, context: bytes, options: ReadOptions, into: Collector, *, first: bool) -> None:  # noqa: ARG002  (the port's form)
        """Read statements.

        Raises:
            KnowledgeError: the setting ``iri_prefixes`` is not of its form.
        """
        triples, terms_of = _Triples(options, into), LineTerms().of
        for row, line in enumerate(lines_of(block, into), start=1):
            try:
                terms = terms_of(line)
                reason = None if terms is None else triples.take(*terms)
            except (NotATripleError, ValueProblemError) as problem:
                reason = str(problem)
            if reason is not None:
                into.reject(row, reason, line)
        if triples.blank:
            into.reject(
                None,
                f"{triples.blank} statements of this block have a blank node, which has no id outside its file: "
                "they were left out",
                "",
            )


# Takes a statement's object as written: an IRI, or a text with its language and datatype. Says why not.
_TakeObject = Callable[["_Predicate", str | None, str | None, str | None, str | None], str | None]


@dataclass(frozen=True)
class _Predicate:
    """What is done with a predicate's statements; ``take`` is None where they are left aside.

    ``of_names`` and ``relation`` say what they are; ``wikidata`` that it is one of Wikidata's properties.
    """

    take: _TakeObject | None
    of_names: bool = False
    relation: str = ""
    iri: str = ""
    wikidata: bool = False
    problem: str | None = None


class _Triples:
    """Takes the statements of one block; remembers what was looked up and noted already."""

    def __init__(self, options: ReadOptions, into: Collector) -> None:
        self.options, self.into = options, into
        self.ids = iris.iri_ids(options.option("iri_prefixes"))
        self.ranks = {language.lower(): rank for rank, language in enumerate(options.languages)}
        self.predicates: dict[str, _Predicate] = {}
        self.subject = self.head = self.head_iri = ""
        self.head_wanted = self.head_is_data = False
        self.head_problem: str | None = None
        self.listed: set[str] = set()
        self.noted: set[str] = set()
        self.blank = 0

    def take(
        self,
        subject: str | None,
        blank_subject: str | None,
        predicate_iri: str | None,
        iri: str | None,
        text: str | None,
        language: str | None,
        datatype: str | None,
        blank_object: str | None,
    ) -> str | None:
        """Take one statement, its terms as written, or say why not."""
        predicate = self.predicates.get(predicate_iri or "")
        if predicate is None:
            predicate = self._predicate(unescaped_iri(predicate_iri or ""))
            self.predicates[predicate_iri or ""] = predicate
        if predicate.take is None:
            return predicate.problem
        if predicate.of_names and language is not None and language.lower() not in self.ranks:
            return None  # most lines of a dump in all languages: not wanted, not wrong
        if blank_subject is not None or (blank_object is not None and not predicate.wikidata):
            self.blank += 1
            return None
        if subject != self.subject:
            self._begin(subject or "")
        if not self.head_wanted:
            return self.head_problem
        if blank_object is not None:
            return None
        return predicate.take(predicate, iri, text, language, datatype)

    def _begin(self, subject: str) -> None:
        """Decide about a subject, for the statements about it that follow one another."""
        iri = unescaped_iri(subject)
        self.subject, self.head_iri, self.head_problem = subject, iri, None
        self.head = self.ids.id_of(iri)
        self.head_wanted = not self.ids.is_note(iri) and not self._is_unwanted_lexeme(iri)
        data = iris.entity_of_data(iri) if self.ids.wikidata else None
        self.head_is_data = data is not None
        if data is not None:  # only its revision is taken, by its own predicate
            self.head, self.head_wanted = data, True
        elif self.head_wanted and not is_id(self.head):
            self.head_wanted, self.head_problem = False, id_problem(self.head)

    def _is_unwanted_lexeme(self, iri: str) -> bool:
        return not self.options.lexemes and iri.startswith(iris.LEXEMES) and self.ids.is_wikidata(iri)

    def _predicate(self, iri: str) -> _Predicate:
        """Decide what a predicate's statements are."""
        if iri in iris.LABELS or iri in iris.ALIASES or iri in iris.DESCRIPTIONS:
            return _Predicate(self._name, of_names=True, iri=iri)
        if iri == iris.RDF_TYPE:
            return _Predicate(self._type, relation=self.ids.id_of(iri), iri=iri)
        if self.ids.wikidata and (iri in iris.VERSIONS or iri in (iris.SITELINKS, iris.STATEMENTS)):
            return _Predicate(self._count, iri=iri)
        if self.ids.is_note(iri):
            return _Predicate(None)
        relation = self.ids.id_of(iri)
        problem = id_problem(relation)
        if problem is not None or not self.options.wants_relation(relation):
            return _Predicate(None, problem=problem)
        return _Predicate(self._statement, relation=relation, iri=iri, wikidata=self.ids.is_wikidata(iri))

    def _name(
        self, predicate: _Predicate, _iri: str | None, text: str | None, language: str | None, _datatype: str | None
    ) -> str | None:
        if self.head_is_data:
            return None
        if text is None:
            return "a name must be a text"
        words = one_line(unescaped(text))
        # A text of no language comes after those of a language that was asked for.
        rank = len(self.ranks) if language is None else self.ranks[language.lower()]
        if not words:
            return "the text is empty"
        if predicate.iri in iris.LABELS:
            self.into.label(self.head, words, rank)
        elif predicate.iri in iris.ALIASES:
            self.into.alias(self.head, words, rank)
        else:
            self.into.describe(self.head, words, rank)
        if is_relation_id(self.head):
            self._relation(self.head)
        return None

    def _count(
        self, predicate: _Predicate, _iri: str | None, text: str | None, _language: str | None, _datatype: str | None
    ) -> str | None:
        if (predicate.iri in iris.VERSIONS) is not self.head_is_data:
            return None
        if text is None or not text.isdecimal() or len(text) > 18:
            return f"a count must be a number, not {str(text)[:60]!r}"
        number = int(text)
        if predicate.iri == iris.SITELINKS:
            self.into.count(self.head, sitelinks=number)
        elif predicate.iri == iris.STATEMENTS:
            self.into.count(self.head, statements=number)
        else:
            self.into.count(self.head, revision=number)
        return None

    def _type(
        self, predicate: _Predicate, iri: str | None, text: str | None, language: str | None, datatype: str | None
    ) -> str | None:
        kind = None if iri is None else iris.schema_type(unescaped_iri(iri))
        if kind is None:
            wanted = self.options.wants_relation(predicate.relation)
            return self._statement(predicate, iri, text, language, datatype) if wanted else None
        if not self.head_is_data:
            self._list()
            if kind == "relation":
                self._relation(self.head)
        return None

    def _statement(
        self, predicate: _Predicate, iri: str | None, text: str | None, language: str | None, datatype: str | None
    ) -> str | None:
        if self.head_is_data:
            return None
        if text is not None:
            return self._literal(predicate, text, language, datatype)
        iri = unescaped_iri(iri or "")
        tail = self.ids.item_of(iri)
        if tail is None:
            if predicate.wikidata and not self.ids.is_wikidata(iri):
                # What else lies at Wikidata stands for an unknown value.
                return None if iri.startswith(iris.WIKIDATA) else self._address(predicate, iri)
            if self.ids.is_note(iri) or self._is_unwanted_lexeme(iri):
                return None
            tail = self.ids.id_of(iri)
            if not is_id(tail):
                return id_problem(tail)
        self._list(predicate)
        self.into.edge(self.head, predicate.relation, tail)
        return None

    def _literal(self, predicate: _Predicate, text: str, language: str | None, datatype: str | None) -> str | None:
        if datatype is not None:
            datatype = unescaped_iri(datatype)
        if not wants_literal(kind_of(language, datatype), self.options):
            return None
        if language is not None and language.lower() not in self.ranks:
            return None
        value, unit = text_of(unescaped(text), datatype, self.ids)
        if value:
            self._list(predicate)
            self.into.literal(self.head, predicate.relation, value, unit)
        return None

    def _address(self, predicate: _Predicate, iri: str) -> str | None:
        """Take an address that is the value of one of Wikidata's properties: it is a text, not an entity."""
        of_commons = _FILES_OF_COMMONS in iri
        if wants_literal("commons-media" if of_commons else "url", self.options):
            self._list(predicate)
            text = unquote(iri.rpartition("/")[2], errors="replace") if of_commons else iri
            self.into.literal(self.head, predicate.relation, text)
        return None

    def _list(self, predicate: _Predicate | None = None) -> None:
        """Note that the graph has this head, and the relation of a statement about it."""
        if self.head not in self.listed:
            self.listed.add(self.head)
            self.into.listed(self.head)
            if not self.ids.is_wikidata(self.head_iri):
                self.into.label(self.head, iris.words_of(self.head_iri, self.head, relation=False), _ENTITY_BY_IRI)
            elif is_relation_id(self.head):
                self._relation(self.head)
        if predicate is not None and predicate.relation not in self.noted:
            self._relation(predicate.relation)
            if not predicate.wikidata:
                name = iris.words_of(predicate.iri, predicate.relation, relation=True)
                self.into.label(predicate.relation, name, _RELATION_BY_IRI)

    def _relation(self, local: str) -> None:
        if local not in self.noted:
            self.noted.add(local)
            self.into.relation(local)
