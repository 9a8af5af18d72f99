"""Chapter 8, finding by tags: facets and suggestions."""

from __future__ import annotations

from functools import partial

from ...core.tags import Tag
from ...storage.contract import JobStore
from ...storage.values import JobFilter, TagFacet
from .scenario import cancelled_job, end, new_job, running, store_all, stored

ANY = JobFilter()


def _with(store: JobStore, *tags: tuple[str | None, str], queue: str = "q") -> None:
    stored(store, queue=queue, tags=tuple(Tag(*tag) for tag in tags))


def _facets(store: JobStore, key: str | None, wanted: JobFilter = ANY) -> list[tuple[str, int]]:
    found = store.tag_facets(wanted, key)
    assert {facet.tag.key for facet in found} <= {key}
    return [(facet.tag.value, facet.count) for facet in found]


def test_8_2_facets_count_jobs_by_value(store: JobStore) -> None:
    """The highest count first, then by value; a job that has two values counts for both."""
    _with(store, ("tenant", "b"), ("tenant", "a"))
    _with(store, ("tenant", "b"))
    _with(store, ("tenant", "c"), (None, "vip"))
    assert _facets(store, "tenant") == [("b", 2), ("a", 1), ("c", 1)]
    assert _facets(store, None) == [("vip", 1)]
    assert _facets(store, "nobody's") == []


def test_8_2_facets_tell_kinds_and_cases_apart(store: JobStore) -> None:
    """A label is no value of any key; a colon, case and accents are what they are."""
    _with(store, (None, "tenant:a"), (None, "a"), ("tenant", "a"), ("tenant", "A"))
    _with(store, ("Tenant", "a"), ("tenant", "á"))
    assert _facets(store, "tenant") == [("A", 1), ("a", 1), ("á", 1)]
    assert _facets(store, None) == [("a", 1), ("tenant:a", 1)]
    assert _facets(store, "\x00") == _facets(store, None, JobFilter(queue="\x00")) == []


def test_8_2_facets_count_within_the_slice(store: JobStore) -> None:
    """Queue, state, type and further tags narrow what is counted, and join with AND."""
    _with(store, ("tenant", "a"), (None, "vip"))
    _with(store, ("tenant", "a"), queue="other")
    _with(store, ("tenant", "b"), (None, "vip"))
    cancelled_job(store, queue="q", tags=(Tag("tenant", "a"), Tag(None, "vip")))
    vip = (Tag(None, "vip"),)
    assert _facets(store, "tenant", JobFilter(queue="q")) == [("a", 2), ("b", 1)]
    assert _facets(store, "tenant", JobFilter(tags=vip)) == [("a", 2), ("b", 1)]
    lease = running(store, queue="x", tags=(Tag("tenant", "z"),))
    end(store, lease)
    state = store.get_job(lease.job_id)
    assert state is not None
    assert _facets(store, "tenant", JobFilter(state=state.state)) == [("z", 1)]
    assert _facets(store, "tenant", JobFilter(queue="q", tags=(Tag("tenant", "b"),))) == [("b", 1)]


def test_8_2_facets_come_in_pages(store: JobStore) -> None:
    """A walk meets each value once, also where many have the same count."""
    for value, count in {"a": 2, "b": 1, "c": 3, "d": 2, "e": 1}.items():
        store_all(store, [new_job(tags=(Tag("k", value),)) for _ in range(count)])
    walk: list[TagFacet] = []
    while page := store.tag_facets(ANY, "k", after=walk[-1] if walk else None, limit=2):
        assert len(page) <= 2
        walk += page
    assert [facet.tag.value for facet in walk] == ["c", "a", "d", "b", "e"]
    assert store.tag_facets(ANY, "k", limit=-1) == []


def test_8_2_suggestions_complete_a_prefix(store: JobStore) -> None:
    """Labels, values of one key, or keys; each once, in code-point order."""
    _with(store, (None, "urgent"), (None, "us"), ("use", "yes"), ("region", "us-east"))
    _with(store, (None, "urgent"), (None, "bus"), ("region", "us-west"), ("used", "no"))
    assert store.suggest_tags("u", None) == ["urgent", "us"]
    assert store.suggest_tags("us", "region") == ["us-east", "us-west"]
    assert store.suggest_tag_keys("us") == ["use", "used"]
    assert store.suggest_tag_keys("") == ["region", "use", "used"]
    assert store.suggest_tags("x", None) == []


def test_8_2_a_prefix_is_literal(store: JobStore) -> None:
    """Wildcards of any database mean themselves."""
    texts = ["a%b", "a_b", "a\\b", "a[b]", "a*b", "axb"]
    _with(store, *[(None, text) for text in texts], *[(text, "v") for text in texts])
    for text in texts:
        assert store.suggest_tags(text[:2], None) == [text]
        assert store.suggest_tag_keys(text[:2]) == [text]
    assert store.suggest_tags("a\x00", None) == store.suggest_tags("", "\x00") == []


def test_8_2_a_prefix_has_no_ascii_case(store: JobStore) -> None:
    """Only ASCII letters are alike; what is suggested keeps its case."""
    _with(store, (None, "Mail"), (None, "mAIL"), (None, "École"), (None, "école"), (None, "İx"))
    assert store.suggest_tags("MA", None) == ["Mail", "mAIL"]
    assert store.suggest_tags("éCO", None) == ["école"]
    assert store.suggest_tags("É", None) == ["École"]
    assert store.suggest_tags("i", None) == []
    assert store.suggest_tags("İX", None) == ["İx"]


def test_8_2_suggestions_come_in_pages(store: JobStore) -> None:
    """A walk by the last text of each page meets every text once."""
    texts = ["a", "B", "ab", "Ab", "abc", "A", "b"]
    _with(store, *[(None, text) for text in texts], *[(text, "v") for text in texts])
    for suggest in (partial(store.suggest_tags, "", None), partial(store.suggest_tag_keys, "")):
        walk: list[str] = []
        while page := suggest(after=walk[-1] if walk else None, limit=2):
            assert len(page) <= 2
            walk += page
        assert walk == sorted(texts)
        assert suggest(limit=-1) == []
