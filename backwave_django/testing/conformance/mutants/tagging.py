"""Mutants of chapter 8: facets, suggestions, and what ages out of the log."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from ....core.tags import Tag
from ....storage.memory import InMemoryStore
from ....storage.values import JobFilter, TagFacet, Transition
from .registry import breaks


@breaks("8.1")
class KeepsTheOldest(InMemoryStore):
    """Lets the newest entries of a long log go."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._most = self.limits.max_transitions_per_job
        self._tables._most_transitions = 100_000

    def job_history(self, job_id: UUID) -> list[Transition]:
        """Read the beginning of the log."""
        return super().job_history(job_id)[: self._most]


class OtherFacets(InMemoryStore):
    """A store that shows other facets."""

    def _shown(self, found: list[TagFacet]) -> list[TagFacet]:
        return found

    def tag_facets(self, job_filter: JobFilter, key: str | None, **page: Any) -> list[TagFacet]:
        """Count, badly."""
        return self._shown(super().tag_facets(job_filter, key, **page))


@breaks("8.2")
class OrdersFacetsByValue(OtherFacets):
    """Gives the first value first."""

    def _shown(self, found: list[TagFacet]) -> list[TagFacet]:
        return sorted(found, key=lambda facet: facet.tag.value)


@breaks("8.2")
class CountsEverybody(OtherFacets):
    """Counts outside the slice too."""

    def tag_facets(self, job_filter: JobFilter, key: str | None, **page: Any) -> list[TagFacet]:
        """Count all jobs."""
        return super().tag_facets(JobFilter(), key, **page)


@breaks("8.2")
class MixesLabelsAndKeys(InMemoryStore):
    """Takes a label with a colon for a keyed tag, and case for nothing."""

    def tag_facets(self, job_filter: JobFilter, key: str | None, **page: Any) -> list[TagFacet]:
        """Count under any spelling of the key."""
        for row in self._tables.rows.values():
            row.tags = [Tag(*tag.value.split(":", 1)) if ":" in tag.value else tag
                        for tag in row.tags]  # fmt: skip
        return super().tag_facets(job_filter, key, **page)


@breaks("8.2")
class PagesByPlace(InMemoryStore):
    """Gives the first page again and again, and then nothing; texts in pages of one."""

    def tag_facets(self, job_filter: JobFilter, key: str | None, **page: Any) -> list[TagFacet]:
        """Count, once."""
        if page.get("after") is not None:
            return []
        return super().tag_facets(job_filter, key, **page)

    def suggest_tags(self, prefix: str, key: str | None, **page: Any) -> list[str]:
        """Complete, once."""
        return [] if page.get("after") is not None else super().suggest_tags(prefix, key, **page)


class OtherMatch(InMemoryStore):
    """A store that compares prefixes otherwise."""

    def _matches(self, text: str, prefix: str) -> bool:
        raise NotImplementedError

    def _completed(self, texts: set[str], prefix: str, after: str | None, limit: int) -> list[str]:
        found = sorted(t for t in texts if self._matches(t, prefix) and (not after or t > after))
        return found[: self._page(limit)]


@breaks("8.2")
class ComparesCase(OtherMatch):
    """Completes what is spelled just so."""

    def _matches(self, text: str, prefix: str) -> bool:
        return text.startswith(prefix)


@breaks("8.2")
class FoldsAllCases(OtherMatch):
    """Takes É for é."""

    def _matches(self, text: str, prefix: str) -> bool:
        return text.lower().startswith(prefix.lower())


@breaks("8.2")
class ReadsWildcards(OtherMatch):
    """Takes % and _ for what they are in LIKE."""

    def _matches(self, text: str, prefix: str) -> bool:
        pairs = zip(text.lower(), prefix.lower(), strict=False)
        return len(text) >= len(prefix) and all(p in ("_", "%", c) for c, p in pairs)


@breaks("8.2")
class CompletesTheMiddle(OtherMatch):
    """Finds the text anywhere."""

    def _matches(self, text: str, prefix: str) -> bool:
        return prefix.lower() in text.lower()
