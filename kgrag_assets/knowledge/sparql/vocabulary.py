"""How a graph behind an endpoint writes entities, relations and names, and how its IRIs become the lake's ids."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kgrag_assets.knowledge.relation_ids import is_relation_id
from kgrag_assets.knowledge.sparql.terms import iri, is_iri, is_local, literal

_RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_SKOS_ALT = "http://www.w3.org/2004/02/skos/core#altLabel"
_DESCRIPTION = "http://schema.org/description"
# By such an IRI Wikidata says "some value, nobody knows which".
_UNKNOWN_VALUE = "/.well-known/genid/"


@dataclass(frozen=True)
class Vocabulary:
    """The IRIs of one graph; the defaults are Wikidata's.

    ``relation_names_prefix`` is where a relation's own names hang: Wikidata states with ``prop/direct/P31`` and
    names ``entity/P31``; in most other graphs it is the ``relation_prefix``. ``languages`` are the tags of names,
    best first; an empty one stands for literals without a tag. ``id_pattern`` is a regular expression that the
    part behind a prefix matches as a whole: Wikidata has lexemes and statements below the prefix of its entities.
    """

    namespace: str = "wd"
    entity_prefix: str = "http://www.wikidata.org/entity/"
    relation_prefix: str = "http://www.wikidata.org/prop/direct/"
    relation_names_prefix: str = "http://www.wikidata.org/entity/"
    label: str = _RDFS_LABEL
    alias: str = _SKOS_ALT
    description: str = _DESCRIPTION
    languages: tuple[str, ...] = ("en", "mul")
    id_pattern: str = "[QP][0-9]+"

    def __post_init__(self) -> None:
        """Check all parts.

        Raises:
            ValueError: a prefix or predicate is no IRI, the namespace no plain word, a language no tag.
        """
        if not (self.namespace.isascii() and self.namespace.isalnum()):
            raise ValueError(f"namespace must be letters and digits, not {self.namespace!r}")
        for name in ("entity_prefix", "relation_prefix", "relation_names_prefix", "label", "alias", "description"):
            if not is_iri(getattr(self, name)):
                raise ValueError(f"{name} must be an absolute IRI such as http://…, not {getattr(self, name)!r}")
        if not self.languages:
            raise ValueError("languages must name at least one; use an empty text for names without a language")
        for language in self.languages:
            literal("", language)
        try:
            re.compile(self.id_pattern)
        except re.error as error:
            raise ValueError(f"id_pattern is no regular expression: {error}") from error

    @classmethod
    def of_rdf(
        cls,
        namespace: str,
        entity_prefix: str,
        relation_prefix: str | None = None,
        *,
        label: str = _RDFS_LABEL,
        alias: str = _SKOS_ALT,
        description: str = _DESCRIPTION,
        languages: tuple[str, ...] = ("en", ""),
    ) -> Vocabulary:
        """Describe a graph in plain RDF, whose relations carry their names themselves."""
        prefix = relation_prefix or entity_prefix
        return cls(namespace, entity_prefix, prefix, prefix, label, alias, description, languages, ".+")

    def local_of(self, entity_id: str) -> str | None:
        """Return the part of ``wd:Q42`` behind the namespace; None where it is another graph's or no usable id."""
        namespace, colon, local = entity_id.partition(":")
        return local if colon and namespace == self.namespace and self._usable(local) else None

    def entity(self, local: str) -> str:
        """Write an entity into a query."""
        return iri(self.entity_prefix + self._checked(local))

    def named(self, local: str) -> tuple[str, ...]:
        """Write all that an id's names may hang on: the entity, and the relation where that is another IRI."""
        checked = self._checked(local)
        return tuple(
            dict.fromkeys(iri(prefix + checked) for prefix in (self.entity_prefix, self.relation_names_prefix))
        )

    def entity_id(self, found: str) -> str | None:
        """Turn an entity's IRI into the lake's id; None where it is no entity of this graph."""
        return self._id(found, self.entity_prefix)

    def relation_id(self, found: str) -> str | None:
        """Turn a relation's IRI, stating or named, into the lake's id; None where it is no relation of this graph."""
        return self._id(found, self.relation_prefix) or self._id(found, self.relation_names_prefix)

    def named_id(self, found: str) -> str | None:
        """Turn an IRI that has names into the lake's id."""
        return self._id(found, self.entity_prefix) or self._id(found, self.relation_names_prefix)

    def kind_of(self, found: str) -> str:
        """Say whether an IRI that has names is an ``entity`` or a ``relation``."""
        if self.entity_prefix == self.relation_names_prefix:
            return "relation" if is_relation_id(found.removeprefix(self.entity_prefix)) else "entity"
        return "relation" if found.startswith(self.relation_names_prefix) else "entity"

    def language_rank(self, tag: str | None) -> int | None:
        """Return the place of a literal's language among the languages; None where it is not one of them."""
        wanted = (tag or "").lower()
        for rank, language in enumerate(self.languages):
            if language.lower() == wanted:
                return rank
        return None

    @staticmethod
    def is_unknown_value(found: str) -> bool:
        """Whether an IRI stands for a value that nobody knows."""
        return _UNKNOWN_VALUE in found

    def _id(self, found: str, prefix: str) -> str | None:
        local = found.removeprefix(prefix)
        return f"{self.namespace}:{local}" if local != found and self._usable(local) else None

    def _usable(self, local: str) -> bool:
        return is_local(local) and re.fullmatch(self.id_pattern, local) is not None

    def _checked(self, local: str) -> str:
        if not self._usable(local):
            raise ValueError(f"not usable as an id: {local[:80]!r}")
        return local
