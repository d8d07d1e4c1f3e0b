"""From IRIs to a graph's ids and to words: prefixes, well-known vocabularies, and what Wikibase notes for itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from kgrag_assets.knowledge.errors import KnowledgeError

_ENTITY = "http://www.wikidata.org/entity/"
WIKIDATA_PREFIXES = (
    (_ENTITY, ""),
    ("http://www.wikidata.org/prop/direct/", ""),
)
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_WIKIBASE = "http://wikiba.se/ontology#"
_OWL = "http://www.w3.org/2002/07/owl#"
_SKOS = "http://www.w3.org/2004/02/skos/core#"
_SCHEMA = ("http://schema.org/", "https://schema.org/")
# Short for everybody, whatever the graph.
_VOCABULARIES = (
    (_RDF, "rdf:"),
    (_RDFS, "rdfs:"),
    (_OWL, "owl:"),
    (_SKOS, "skos:"),
    *((address, "schema:") for address in _SCHEMA),
    ("http://purl.org/dc/terms/", "dcterms:"),
)

RDF_TYPE = f"{_RDF}type"
LABELS = frozenset((f"{_RDFS}label", f"{_SKOS}prefLabel", *(f"{address}name" for address in _SCHEMA)))
ALIASES = frozenset((f"{_SKOS}altLabel", *(f"{address}alternateName" for address in _SCHEMA)))
DESCRIPTIONS = frozenset(f"{address}description" for address in _SCHEMA)
VERSIONS = frozenset(f"{address}version" for address in _SCHEMA)
SITELINKS, STATEMENTS = f"{_WIKIBASE}sitelinks", f"{_WIKIBASE}statements"

# What these types say is not about the world: "is a property", "is a class". As objects they would be hubs.
_SCHEMA_TYPES = (_RDF, _RDFS, _OWL, _WIKIBASE)
_PROPERTY_TYPES = ("Property",)

WIKIDATA = ("http://www.wikidata.org/", "https://www.wikidata.org/")
LEXEMES = "http://www.wikidata.org/entity/L"
_WIKIDATA_KNOWN = re.compile(
    r"http://www\.wikidata\.org/(?:entity/(?:[QPE][1-9][0-9]*|L[1-9][0-9]*(?:-[FS][1-9][0-9]*)?)|prop/direct/P[1-9][0-9]*)\Z"
)
# Articles of Wikimedia's projects stand in the dump with their names and languages, for the sitelinks.
_ARTICLE = re.compile(r"https?://[a-z0-9-]+\.(?:m\.)?(?:wiki[a-z]+|mediawiki)\.org/wiki/")
_DATA = re.compile(r"https?://www\.wikidata\.org/wiki/Special:EntityData/([QPLE][1-9][0-9]*)\Z")

_RELATION_NAMES = {
    "rdf:type": "type",
    "rdfs:subClassOf": "subclass of",
    "rdfs:subPropertyOf": "subproperty of",
    "owl:sameAs": "same as",
}
_NAME_START = re.compile(r"[^/#:]*\Z")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True)
class IriIds:
    """Turns IRIs into ids by their prefixes, the longest first; an IRI of no known prefix is its own id.

    ``wikidata``: whether Wikidata's prefixes are in force, and with them what is known of its dumps.
    """

    prefixes: tuple[tuple[str, str], ...]
    wikidata: bool
    starts: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", tuple(prefix for prefix, _ in self.prefixes))

    def id_of(self, iri: str) -> str:
        """Return the id of an IRI."""
        if not iri.startswith(self.starts):
            return iri
        for prefix, short in self.prefixes:
            if iri.startswith(prefix) and len(iri) > len(prefix):
                return short + iri[len(prefix) :]
        return iri

    def item_of(self, iri: str) -> str | None:
        """Return the id of one of Wikidata's items and properties, by far the most of a dump; None for the others."""
        if self.wikidata and iri.startswith(_ENTITY):
            local = iri[len(_ENTITY) :]
            if local[:1] in ("Q", "P") and local[1:].isdecimal() and local.isascii() and local[1] != "0":
                return local
        return None

    def is_wikidata(self, iri: str) -> bool:
        """Whether an IRI is that of one of Wikidata's items, properties, lexemes or schemas."""
        return self.wikidata and iri.startswith(WIKIDATA) and _WIKIDATA_KNOWN.match(iri) is not None

    def is_note(self, iri: str) -> bool:
        """Whether an IRI names what Wikibase keeps for itself: articles, data sets, statements, unknown values."""
        if not self.wikidata:
            return False
        if iri.startswith(WIKIDATA):
            return _WIKIDATA_KNOWN.match(iri) is None
        return iri.startswith(_WIKIBASE) or _ARTICLE.match(iri) is not None


def iri_ids(pairs: Sequence[str]) -> IriIds:
    """Read the setting ``iri_prefixes``, a list of ``prefix=short``; Wikidata's prefixes where it is empty.

    Raises:
        KnowledgeError: an entry is not of that form.
    """
    given = []
    for pair in pairs:
        prefix, equals, short = pair.rpartition("=")
        if not equals or ":" not in prefix or any(char.isspace() for char in pair):
            raise KnowledgeError(
                f"iri_prefixes: {pair!r} must be an IRI's beginning, '=' and what stands for it in ids, "
                "such as http://dbpedia.org/ontology/=dbo:"
            )
        given.append((prefix, short))
    own = tuple(given) or WIKIDATA_PREFIXES
    known = dict((*_VOCABULARIES, *own))
    longest_first = sorted(known.items(), key=lambda item: -len(item[0]))
    return IriIds(tuple(longest_first), wikidata=own == WIKIDATA_PREFIXES)


def entity_of_data(iri: str) -> str | None:
    """Return the entity that one of Wikidata's data sets (with the revision) is about."""
    match = _DATA.match(iri)
    return match[1] if match else None


def schema_type(iri: str) -> str | None:
    """Say what a type of the schema languages makes of a thing: ``relation``, ``entity``; None for any other type."""
    if not iri.startswith(_SCHEMA_TYPES):
        return None
    return "relation" if iri.endswith(_PROPERTY_TYPES) else "entity"


def words_of(iri: str, local: str, *, relation: bool) -> str:
    """Name a thing that has no label by the last part of its IRI, in words: ``birthPlace`` is ``birth place``."""
    if local in _RELATION_NAMES:
        return _RELATION_NAMES[local]
    match = _NAME_START.search(iri.rstrip("/#"))
    name = unquote(match[0], errors="replace") if match else ""
    text = " ".join(name.replace("_", " ").split())
    if relation:
        text = _CAMEL.sub(" ", text).lower()
    return text or local
