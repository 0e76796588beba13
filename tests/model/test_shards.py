"""Shards are contiguous and cover every item once. An edit moves one cut, rarely two (SPEC.md "Shards")."""

from __future__ import annotations

import hashlib
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.model.analysis.shard_boundaries import cut_shards
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.entry import Entry
from codebatch.model.shard import SHARD_ID_PATTERN, ProjectWork, Shard, ShardId, ShardRule, work_item_path

RULE = ShardRule()


def _item(path: str, content: str = "", size: int = 1000) -> Entry:
    return Entry(path.encode(), "file", False, size, digest_bytes(content.encode()))


def _random_tree(chance: random.Random, count: int) -> dict[str, Entry]:
    paths = {f"d{chance.randrange(40)}/s{chance.randrange(9)}/f{chance.randrange(10**9)}.py" for _ in range(count)}
    return {path: _item(path, path, chance.randrange(20_000)) for path in paths}


def _keys(tree: dict[str, Entry]) -> set[Digest]:
    """Return a digest for each shard of the paths and objects of its items, which identify its work."""
    items = sorted(tree.values())
    return {
        digest_bytes(repr([(i.path, i.object) for i in items[shard.start : shard.end]]).encode())
        for shard in cut_shards(items, RULE)
    }


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=8), st.integers(0, 9_000_000)), unique_by=lambda t: t[0]))
@settings(max_examples=60, deadline=None)
def test_shards_cover_every_item_once_within_the_bounds(files: list[tuple[bytes, int]]) -> None:
    items = sorted(Entry(path, "file", False, size, Digest("0" * 64)) for path, size in files)
    shards = cut_shards(items, RULE)
    assert [0, *(shard.end for shard in shards)] == [*(shard.start for shard in shards), len(items)]
    for shard in shards:
        assert shard.bytes == sum(item.size for item in items[shard.start : shard.end])
        assert 1 <= shard.items <= RULE.files_max
        assert shard.bytes <= RULE.bytes_max or shard.items == 1
    assert len({shard.id for shard in shards}) == len(shards)


def test_shard_id_is_derived_from_its_first_path() -> None:
    items = sorted(_random_tree(random.Random(1), 3000).values())
    for shard in cut_shards(items, RULE):
        assert hashlib.sha256(items[shard.start].path).hexdigest().startswith(shard.id)


def test_average_shard_size_matches_the_rule() -> None:
    items = sorted(_random_tree(random.Random(2), 20_000).values())
    average = len(items) / len(cut_shards(items, RULE))
    assert 200 <= average <= 300


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["change", "add", "remove", "rename"])
def test_edit_changes_few_shards(kind: str, seed: int) -> None:
    chance = random.Random(seed)
    tree = _random_tree(chance, 4000)
    before = _keys(tree)
    victim = chance.choice(sorted(tree))
    directory = victim.rsplit("/", 1)[0]
    if kind == "change":
        tree[victim] = _item(victim, "changed")
    if kind in ("remove", "rename"):
        del tree[victim]
    if kind in ("add", "rename"):
        new = f"{directory}/new{chance.randrange(10**9)}.py"
        tree[new] = _item(new)
    changed = len(_keys(tree) - before)
    limit = {"change": 1, "add": 6, "remove": 6, "rename": 8}[kind]
    assert changed <= limit


def test_edit_changes_fewer_than_two_shards_on_average() -> None:
    total = 0
    for seed in range(40):
        chance = random.Random(seed)
        tree = _random_tree(chance, 2000)
        before = _keys(tree)
        new = f"d{chance.randrange(40)}/s0/new.py"
        tree[new] = _item(new)
        total += len(_keys(tree) - before)
    assert total / 40 <= 1.5


def test_file_above_the_size_limit_has_its_own_shard() -> None:
    items = [_item("a.py"), _item("b.bin", size=RULE.bytes_max + 1), _item("c.py")]
    assert [(shard.start, shard.end) for shard in cut_shards(items, RULE)] == [(0, 1), (1, 2), (2, 3)]


def test_project_task_id_is_never_a_shard_id_and_both_match_the_pattern() -> None:
    assert ProjectWork("layers").id == "project-layers"
    for id_ in (ProjectWork("layers").id, *(shard.id for shard in cut_shards([_item("a.py")], RULE))):
        assert re.fullmatch(SHARD_ID_PATTERN, id_)
    for other in ("project-", "project-Layers", "0123abc", "project", "0123abcg"):
        assert not re.fullmatch(SHARD_ID_PATTERN, other)


def test_item_path_is_relative_to_its_shard_and_a_project_task_has_a_dot() -> None:
    items = [_item("a.py"), _item("b.py"), _item("c.py")]
    assert work_item_path(Shard(id=ShardId("0" * 8), start=1, end=3, bytes=0), 1, items) == b"c.py"
    assert work_item_path(ProjectWork("layers"), 0, items) == b"."


@pytest.mark.parametrize(
    ("files", "average"), [(0, 16), (676, 16), (2048, 32), (9000, 128), (16384, 256), (10**6, 256)]
)
def test_parts_have_smaller_shards_in_small_projects(files: int, average: int) -> None:
    assert ShardRule().for_parts(files).files_average == average


def test_configured_shards_are_also_those_of_parts() -> None:
    rule = ShardRule(files_average=100)
    assert rule.for_parts(10) is rule
