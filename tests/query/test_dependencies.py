"""Tests of dependents and import cycles: dependents are found backwards, and a cycle has its shortest path."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.model.record import Edge, Record, Resolution
from codebatch.operations.runs.indexing import build_index
from codebatch.query.answers.dependencies import BatchImports, FileImport, find_cycles_in, find_dependents
from codebatch.query.answers.dependent_counts import count_transitive_importers
from codebatch.query.sources.records import BatchRecords
from tests.index.batches import make_saying, make_store

_FILES = st.sampled_from("abcdefgh")


def _importers_function(imports: list[FileImport]) -> Callable[[Sequence[str]], Mapping[str, list[FileImport]]]:
    return lambda targets: {target: [edge for edge in imports if edge.target == target] for target in targets}


def test_dependents_are_ordered_by_distance_without_repetition() -> None:
    pairs = ["b a 9", "b a 2", "c b 1", "a c 1", "d a 1", "d c 5", "e x 1"]
    imports = [FileImport(item[0], item[2], int(item[4:]), "exact") for item in pairs]
    dependents = [
        (item.path, item.distance, item.imports, item.line)
        for item in find_dependents(_importers_function(imports), "a")
    ]
    assert dependents == [("b", 1, "a", 2), ("d", 1, "a", 1), ("c", 2, "b", 1)]
    assert find_dependents(_importers_function(imports), "e") == []
    assert [item.path for item in find_dependents(_importers_function(imports), "a", 1)] == ["b", "d"]


@given(st.lists(st.tuples(_FILES, _FILES), max_size=30))
def test_counts_of_all_files_equal_the_dependents_of_each(pairs: list[tuple[str, str]]) -> None:
    imports = [FileImport(source, target, 1, "exact") for source, target in pairs]
    counts = count_transitive_importers(imports)
    for path in "abcdefgh":
        assert counts.get(path, 0) == len(find_dependents(_importers_function(imports), path))


def test_cycles_have_a_shortest_path_and_exclude_uncertain_imports() -> None:
    pairs = ["a b", "b c", "c a", "c d", "d c", "d b", "e e", "f g", "g f", "h a"]
    imports = [FileImport(pair[0], pair[2], 1, "exact") for pair in pairs] + [FileImport("a", "h", 2, "name")]
    assert [(cycle.files, cycle.shortest) for cycle in find_cycles_in(imports)] == [
        (("f", "g"), ("f", "g", "f")),
        (("a", "b", "c", "d"), ("a", "b", "c", "a")),
    ]
    assert find_cycles_in([]) == []


def test_suggested_cut_minimizes_the_files_left_in_cycles() -> None:
    pairs = ["a b 3", "a b 2", "b a 9", "b c 1", "c d 1", "d b 4", "b a 8", "b a 7"]
    imports = [FileImport(item[0], item[2], int(item[4:]), "exact") for item in pairs]
    (cycle,) = find_cycles_in(imports)
    assert (cycle.shortest, cycle.cut) == (("a", "b", "a"), FileImport("a", "b", 2, "exact"))
    # Without `b -> c`, two of the four files remain in a cycle; without `a -> b`, three.
    (longer,) = find_cycles_in(
        [item for item in imports if item.source != "b" or item.target != "a"] + [FileImport("c", "a", 5, "exact")]
    )
    assert (longer.shortest, longer.cut) == (("a", "b", "c", "a"), FileImport("b", "c", 1, "exact"))


@pytest.mark.parametrize(
    "closing",
    [FileImport("b", "a", 1, "exact", type_only=True), FileImport("b", "a", 1, "exact", deferred=True)],
)
def test_deferred_imports_close_no_cycle_unless_everything_is_included(closing: FileImport) -> None:
    imports = [FileImport("a", "b", 1, "exact"), closing]
    assert find_cycles_in(imports) == []
    assert [cycle.files for cycle in find_cycles_in(imports, everything=True)] == [("a", "b")]
    assert [cycle.files for cycle in find_cycles_in([*imports, FileImport("b", "a", 2, "exact")])] == [("a", "b")]


def test_rust_modules_form_no_cycle_unless_everything_is_included() -> None:
    imports = [FileImport("lib.rs", "a.rs", 1, "exact"), FileImport("a.rs", "lib.rs", 1, "exact")]
    assert find_cycles_in(imports) == []
    assert len(find_cycles_in(imports, everything=True)) == 1


@given(st.lists(st.tuples(_FILES, _FILES), max_size=40), _FILES)
def test_dependents_are_the_transitive_closure(pairs: list[tuple[str, str]], file: str) -> None:
    """Compare with distances from powers of the relation: a file at distance n is reached in no fewer than n steps."""
    imports = [FileImport(source, target, line, "exact") for line, (source, target) in enumerate(pairs)]
    distances = {file: 0}
    for steps in range(1, 9):
        reached = {source for source, target in pairs if distances.get(target) == steps - 1}
        distances.update({source: steps for source in reached if source not in distances})
    del distances[file]
    dependents = find_dependents(_importers_function(imports), file)
    assert {dependent.path: dependent.distance for dependent in dependents} == distances
    assert [(dependent.distance, dependent.path) for dependent in dependents] == sorted(
        (steps, path) for path, steps in distances.items()
    )
    for dependent in dependents:
        assert (dependent.path, dependent.imports) == pairs[dependent.line]
        assert distances.get(dependent.imports, 0) == dependent.distance - 1


def test_importers_are_the_same_with_and_without_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers are equal for a few targets, which are looked up singly, and for many. For few, less is read."""
    monkeypatch.setattr("codebatch.query.answers.dependencies.DEPENDENCIES_TASK", "symbols")
    generator = random.Random(0)
    records_by_item: list[list[Record]] = [
        [_depends(item, generator.randrange(max(item, 1)) // 2 * 2) for _ in range(generator.randrange(3))]
        for item in range(30)
    ]
    store = make_store(tmp_path)
    batch = make_saying(store, len(records_by_item), {"symbols": records_by_item})
    build_index(store, batch)
    for file in ("p0", "p8", "p29"):
        indexed, plain = BatchRecords(store, batch, pytest.fail), BatchRecords(store, batch)
        dependents = find_dependents(BatchImports(indexed).importers_of, file)
        assert dependents == find_dependents(BatchImports(plain).importers_of, file)
        assert bool(dependents) == (file != "p29")
        assert indexed.reading.excluded_by_index
        monkeypatch.setattr("codebatch.query.answers.dependencies.TARGET_LOOKUPS_MAX", 1)
        assert dependents == find_dependents(BatchImports(BatchRecords(store, batch, pytest.fail)).importers_of, file)
        monkeypatch.undo()
        monkeypatch.setattr("codebatch.query.answers.dependencies.DEPENDENCIES_TASK", "symbols")


@pytest.mark.parametrize("resolution", ["exact", "external"])
def test_imports_between_files_match_the_full_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resolution: Resolution
) -> None:
    monkeypatch.setattr("codebatch.query.answers.dependencies.DEPENDENCIES_TASK", "symbols")
    generator = random.Random(0)

    def depends(source: int) -> Edge:
        line, target = generator.randrange(9), f"{generator.randrange(30):03}"
        path = f"{source:03}"
        return Edge(path=path, edge_type="depends", source="", target=target, line=line, resolution=resolution)

    records_by_item = [[depends(item) for _ in range(generator.randrange(3))] for item in range(30)]
    store = make_store(tmp_path)
    imports = BatchImports(BatchRecords(store, make_saying(store, len(records_by_item), {"symbols": records_by_item})))
    for size in (0, 1, 3, 10, 30):
        some = {f"{item:03}" for item in generator.sample(range(30), size)}
        assert list(imports.imports_between(some)) == [edge for edge in imports if {edge.source, edge.target} <= some]


def _depends(source: int, target: int) -> Edge:
    resolution: Resolution = "external" if source % 7 == 6 else "exact"
    path = f"p{source}"
    return Edge(path=path, edge_type="depends", source="", target=f"p{target}", line=1, resolution=resolution)


@pytest.mark.parametrize(("is_exact", "sources"), [(True, ["e"]), (False, ["e", "f", "n"])])
def test_exact_imports_leave_out_all_other_resolutions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_exact: bool, sources: list[str]
) -> None:
    monkeypatch.setattr("codebatch.query.answers.dependencies.DEPENDENCIES_TASK", "symbols")
    resolutions: dict[str, Resolution] = {"e": "exact", "f": "file", "n": "name", "x": "external"}
    edges: list[Record] = [
        Edge(path=path, edge_type="depends", source="", target="a", line=1, resolution=resolution)
        for path, resolution in resolutions.items()
    ]
    store = make_store(tmp_path)
    records = BatchRecords(store, make_saying(store, 1, {"symbols": [edges]}))
    assert [edge.source for edge in BatchImports(records, is_exact=is_exact)] == sources
