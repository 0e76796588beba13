"""What depends on a file is found backwards; files that lead to one another are told with the shortest way back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codebatch.query.dependencies import Import, cycles, impact

_FILES = st.sampled_from("abcdefgh")


def test_dependents_come_nearest_first_and_once_even_in_a_cycle() -> None:
    pairs = ["b a 9", "b a 2", "c b 1", "a c 1", "d a 1", "d c 5", "e x 1"]
    imports = [Import(each[0], each[2], int(each[4:]), "exact") for each in pairs]
    found = [(each.path, each.distance, each.imports, each.line) for each in impact(imports, "a")]
    assert found == [("b", 1, "a", 2), ("d", 1, "a", 1), ("c", 2, "b", 1)]
    assert impact(imports, "e") == []


def test_cycles_are_told_with_the_shortest_way_back_and_without_what_is_not_sure() -> None:
    pairs = ["a b", "b c", "c a", "c d", "d c", "d b", "e e", "f g", "g f", "h a"]
    imports = [Import(each[0], each[2], 1, "exact") for each in pairs] + [Import("a", "h", 2, "name")]
    assert [(cycle.files, cycle.shortest) for cycle in cycles(imports)] == [
        (("a", "b", "c", "d"), ("a", "b", "c", "a")),
        (("f", "g"), ("f", "g", "f")),
    ]
    assert cycles([]) == []


@given(st.lists(st.tuples(_FILES, _FILES), max_size=40), _FILES)
def test_dependents_are_the_transitive_closure(pairs: list[tuple[str, str]], asked: str) -> None:
    """Held against distances by powers of the relation: what is reached in n steps and in no fewer."""
    imports = [Import(source, target, line, "exact") for line, (source, target) in enumerate(pairs)]
    distances = {asked: 0}
    for steps in range(1, 9):
        reached = {source for source, target in pairs if distances.get(target) == steps - 1}
        distances.update({source: steps for source in reached if source not in distances})
    del distances[asked]
    found = impact(imports, asked)
    assert {each.path: each.distance for each in found} == distances
    assert [(each.distance, each.path) for each in found] == sorted((steps, path) for path, steps in distances.items())
    for each in found:
        assert (each.path, each.imports) == pairs[each.line]
        assert distances.get(each.imports, 0) == each.distance - 1
