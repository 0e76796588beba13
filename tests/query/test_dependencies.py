"""What depends on a file is found backwards; files that lead to one another are told with the shortest way back."""

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
from codebatch.query.sources.records import BatchRecords
from tests.index.batches import make_saying, make_store

_FILES = st.sampled_from("abcdefgh")


def _importers_of(imports: list[FileImport]) -> Callable[[Sequence[str]], Mapping[str, list[FileImport]]]:
    return lambda targets: {target: [each for each in imports if each.target == target] for target in targets}


def test_dependents_are_ordered_by_distance_without_repetition() -> None:
    pairs = ["b a 9", "b a 2", "c b 1", "a c 1", "d a 1", "d c 5", "e x 1"]
    imports = [FileImport(each[0], each[2], int(each[4:]), "exact") for each in pairs]
    found = [
        (each.path, each.distance, each.imports, each.line) for each in find_dependents(_importers_of(imports), "a")
    ]
    assert found == [("b", 1, "a", 2), ("d", 1, "a", 1), ("c", 2, "b", 1)]
    assert find_dependents(_importers_of(imports), "e") == []
    assert [each.path for each in find_dependents(_importers_of(imports), "a", 1)] == ["b", "d"]


def test_cycles_have_a_shortest_path_and_exclude_uncertain_imports() -> None:
    pairs = ["a b", "b c", "c a", "c d", "d c", "d b", "e e", "f g", "g f", "h a"]
    imports = [FileImport(each[0], each[2], 1, "exact") for each in pairs] + [FileImport("a", "h", 2, "name")]
    assert [(cycle.files, cycle.shortest) for cycle in find_cycles_in(imports)] == [
        (("f", "g"), ("f", "g", "f")),
        (("a", "b", "c", "d"), ("a", "b", "c", "a")),
    ]
    assert find_cycles_in([]) == []


def test_suggested_cut_minimizes_the_files_left_in_cycles() -> None:
    pairs = ["a b 3", "a b 2", "b a 9", "b c 1", "c d 1", "d b 4", "b a 8", "b a 7"]
    imports = [FileImport(each[0], each[2], int(each[4:]), "exact") for each in pairs]
    (found,) = find_cycles_in(imports)
    assert (found.shortest, found.cut) == (("a", "b", "a"), FileImport("a", "b", 2, "exact"))
    # Without `b -> c` only two of the four files are left in a cycle, without `a -> b` three.
    (longer,) = find_cycles_in(
        [each for each in imports if each.source != "b" or each.target != "a"] + [FileImport("c", "a", 5, "exact")]
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
def test_dependents_are_the_transitive_closure(pairs: list[tuple[str, str]], asked: str) -> None:
    """Held against distances by powers of the relation: what is reached in n steps and in no fewer."""
    imports = [FileImport(source, target, line, "exact") for line, (source, target) in enumerate(pairs)]
    distances = {asked: 0}
    for steps in range(1, 9):
        reached = {source for source, target in pairs if distances.get(target) == steps - 1}
        distances.update({source: steps for source in reached if source not in distances})
    del distances[asked]
    found = find_dependents(_importers_of(imports), asked)
    assert {each.path: each.distance for each in found} == distances
    assert [(each.distance, each.path) for each in found] == sorted((steps, path) for path, steps in distances.items())
    for each in found:
        assert (each.path, each.imports) == pairs[each.line]
        assert distances.get(each.imports, 0) == each.distance - 1


def test_importers_are_the_same_with_and_without_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with it and without, be they few or more than are looked up one by one; less is read for few."""
    monkeypatch.setattr("codebatch.query.answers.dependencies._DEPENDENCIES_TASK", "symbols")
    chance = random.Random(0)
    said: list[list[Record]] = [
        [_depends(item, chance.randrange(max(item, 1)) // 2 * 2) for _ in range(chance.randrange(3))]
        for item in range(30)
    ]
    store = make_store(tmp_path)
    batch = make_saying(store, len(said), {"symbols": said})
    build_index(store, batch)
    for file in ("p0", "p8", "p29"):
        indexed, plain = BatchRecords(store, batch, pytest.fail), BatchRecords(store, batch)
        found = find_dependents(BatchImports(indexed).importers_of, file)
        assert found == find_dependents(BatchImports(plain).importers_of, file)
        assert bool(found) == (file != "p29")
        assert indexed.reading.excluded_by_index
        monkeypatch.setattr("codebatch.query.answers.dependencies.TARGET_LOOKUPS_MAX", 1)
        assert found == find_dependents(BatchImports(BatchRecords(store, batch, pytest.fail)).importers_of, file)
        monkeypatch.undo()
        monkeypatch.setattr("codebatch.query.answers.dependencies._DEPENDENCIES_TASK", "symbols")


@pytest.mark.parametrize("resolution", ["exact", "external"])
def test_imports_between_files_match_the_full_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resolution: Resolution
) -> None:
    monkeypatch.setattr("codebatch.query.answers.dependencies._DEPENDENCIES_TASK", "symbols")
    chance = random.Random(0)

    def depends(source: int) -> Edge:
        line, target = chance.randrange(9), f"{chance.randrange(30):03}"
        path = f"{source:03}"
        return Edge(path=path, edge_type="depends", source="", target=target, line=line, resolution=resolution)

    said = [[depends(item) for _ in range(chance.randrange(3))] for item in range(30)]
    store = make_store(tmp_path)
    imports = BatchImports(BatchRecords(store, make_saying(store, len(said), {"symbols": said})))
    for size in (0, 1, 3, 10, 30):
        some = {f"{item:03}" for item in chance.sample(range(30), size)}
        assert list(imports.imports_between(some)) == [each for each in imports if {each.source, each.target} <= some]


def _depends(source: int, target: int) -> Edge:
    resolution: Resolution = "external" if source % 7 == 6 else "exact"
    path = f"p{source}"
    return Edge(path=path, edge_type="depends", source="", target=f"p{target}", line=1, resolution=resolution)
