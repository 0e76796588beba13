"""Formats on disk: golden bytes, round trips, and detection of truncation at every byte (SPEC.md "Documents")."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.model.analysis.item_table import (
    ROW_BYTES,
    item_lengths,
    item_range,
    iter_items,
    make_row,
    result_digest,
    task_digest,
)
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.documents import encode_document
from codebatch.model.entry import (
    Entry,
    EntryKind,
    decode_entries,
    encode_entries,
    find_entry,
    find_item,
    is_safe_path,
    snapshot_id,
)
from codebatch.model.outcome import Commit, HolderId, TaskOutcome, decode_commit, encode_commit
from codebatch.model.plan import (
    Plan,
    PlannedTask,
    decode_plan,
    encode_plan,
    order_tasks,
    plan_digest,
    plan_items,
    task_key,
)
from codebatch.model.record_counts import RecordCounts
from codebatch.model.shard import Shard, ShardId, ShardRule
from codebatch.model.task import task_name

GOLDEN = Path(__file__).parent.parent / "golden"

ENTRIES = [
    Entry(b"a/b.py", "file", True, 3, digest_bytes(b"abc")),
    Entry(b"a/link", "symlink", False, 4, digest_bytes(b"b.py")),
    Entry("é 'x'\n".encode(), "file", False, 0, digest_bytes(b"")),
    Entry(b"\xff\xfe.c", "file", False, 1, digest_bytes(b"x")),
]
ENTRIES.sort()

COMMIT = Commit(
    segment=HolderId("0" * 32),
    epoch=3,
    round=1,
    outcomes=(
        TaskOutcome(
            shard=ShardId("0123abcd"),
            task="lint",
            start=0,
            end=4,
            type="result",
            offset=17,
            length=90,
            bytes=400,
            crc=0x89ABCDEF,
            digest=digest_bytes(b"table"),
            counts=RecordCounts(kinds={"diagnostic": 2}, diagnostics={"error": {"F821": 2}}),
        ),
        TaskOutcome(shard=ShardId("0123abcd"), task="lint", start=4, end=5, type="failed", reason="timeout"),
    ),
)


def _planned(paths: tuple[bytes, ...] = ()) -> Plan:
    key = task_key(
        name="parse", version="1", implementation_digest=Digest("1" * 64), config={"a": [1]}, tools={"t": "2"}, needs=[]
    )
    task = PlannedTask(
        name="parse",
        version="1",
        scope="file",
        needs=(),
        implementation_digest=Digest("1" * 64),
        config={"a": [1]},
        tools={"t": "2"},
        contexts=(),
        key=key,
    )
    return Plan(
        digest=plan_digest(Digest("2" * 64), [task], paths),
        snapshot_id=snapshot_id(Digest("2" * 64)),
        snapshot_digest=Digest("2" * 64),
        pipeline="parse",
        paths=paths,
        tasks=(task,),
        shard_rule=ShardRule(files_average=64, files_min=16, files_max=256, bytes_max=4 << 20),
        shards=(Shard(id=ShardId("0123abcd"), start=0, end=5, bytes=10),),
        contexts={},
    )


PLAN = _planned()


def test_files_index_matches_the_golden_file() -> None:
    assert encode_entries(ENTRIES) == (GOLDEN / "files.index.jsonl").read_bytes()


def test_paths_of_a_plan_are_checked_and_part_of_its_digest() -> None:
    restricted = _planned((b"a", b"caf\xe9/b"))
    assert decode_plan(encode_plan(restricted)) == restricted
    assert len({_planned().digest, restricted.digest, _planned((b"a",)).digest}) == 3
    with pytest.raises(ValueError, match="digest of the plan does not match"):
        decode_plan(encode_plan(msgspec.structs.replace(restricted, paths=(b"a",))))
    for invalid in ((b"b", b"a"), (b"a", b"a"), (b"../a",), (b"/a",), (b"",)):
        with pytest.raises(ValueError, match="unsafe or out of order"):
            decode_plan(encode_plan(_planned(invalid)))


def test_paths_restrict_items_to_themselves_and_their_descendants() -> None:
    names = [b"a", b"a.py", b"a/b", b"a/b.py", b"a/b/c", b"ab", b"b"]
    entries = [Entry(name, "file", False, 0, Digest("0" * 64)) for name in sorted(names)]
    entries.append(Entry(b"z", "symlink", False, 1, Digest("0" * 64)))

    def items(*paths: bytes) -> list[bytes]:
        return [entry.path for entry in plan_items(entries, paths)]

    assert items() == sorted(names)
    assert items(b"a") == [b"a", b"a/b", b"a/b.py", b"a/b/c"]
    assert items(b"a/b", b"b") == [b"a/b", b"a/b/c", b"b"]
    assert items(b"z") == items(b"x") == []


def test_item_row_matches_the_golden_bytes() -> None:
    row = make_row(b"abc\n")
    assert row.hex() == "04000000" + hashlib.sha256(b"abc\n").hexdigest()
    assert len(row) == ROW_BYTES


def test_digests_match_the_golden_values() -> None:
    table = make_row(b"abc\n") + make_row(b"")
    assert task_digest(table) == hashlib.sha256(table).hexdigest()
    pairs = [("parse", Digest("b" * 64)), ("lint", Digest("a" * 64))]
    assert result_digest(pairs) == hashlib.sha256(f"lint {'a' * 64}\nparse {'b' * 64}\n".encode()).hexdigest()


def test_entries_survive_a_round_trip() -> None:
    assert decode_entries(encode_entries(ENTRIES)) == ENTRIES


def test_truncated_files_index_is_never_accepted_as_complete() -> None:
    data = encode_entries(ENTRIES)
    for length in range(len(data) - 1):
        try:
            assert len(decode_entries(data[:length])) < len(ENTRIES)
        except ValueError:
            continue


def test_inconsistent_plan_is_rejected() -> None:
    body = msgspec.json.encode(PLAN)
    for old, new in (
        (b'"end":5', b'"end":0'),
        (b'"start":0', b'"start":1'),
        (b'"key":"', b'"key":"0'),
        (b"222", b"223"),
        (b'"contexts":{}', b'"contexts":{"a":{"values":["YQ=="],"items":[0,0,0,0]}}'),
        (b'"contexts":{}', b'"contexts":{"a":{"values":["YQ=="],"items":[0,0,1,0,0]}}'),
        (b'"contexts":{}', b'"contexts":{"a":{"values":["YQ=="],"items":[0,0,-1,0,0]}}'),
    ):
        assert old in body
        altered = encode_document(msgspec.json.decode(body.replace(old, new), type=Plan))
        with pytest.raises(ValueError, match=r"of (a task of )?the plan|the plan"):
            decode_plan(altered)


def test_inconsistent_commit_is_rejected() -> None:
    for outcome in COMMIT.outcomes:
        for start, end in ((-1, 1), (3, 3), (4, 3)) + (((4, 6),) if outcome.type == "failed" else ()):
            altered = msgspec.structs.replace(outcome, start=start, end=end)
            with pytest.raises(ValueError, match="impossible range"):
                decode_commit(encode_commit(msgspec.structs.replace(COMMIT, outcomes=(altered,))))


@pytest.mark.parametrize("path", [b"", b"/a", b"a//b", b"a/../b", b"..", b".", b"a/.", b"a\0b", b"x" * 70_000])
def test_unsafe_paths_are_rejected(path: bytes) -> None:
    assert not is_safe_path(path)


_PARTS = st.sampled_from([b"", b".", b"..", b"...", b"a", b"b", b"\xff", b"\0", b" ", b"x" * 65_600])
_PATHS = st.lists(_PARTS, min_size=1, max_size=3).map(b"/".join)
_OBJECTS = st.sampled_from(["", "a" * 64, "0f" * 32, "A" * 64, "g" * 64, "a" * 63, "a" * 65, "é" * 64, "a" * 32 + "\n"])


@given(
    st.lists(
        st.tuples(
            _PATHS, st.sampled_from(["file", "symlink", "submodule"]), st.integers(-1, 2), _OBJECTS | st.just("b" * 64)
        ),
        max_size=4,
    ),
    st.booleans(),
)
def test_index_lines_are_validated_together_as_individually(
    rows: list[tuple[bytes, EntryKind, int, str]], is_sorted: bool
) -> None:
    entries = [Entry(path, kind, False, size, Digest(named)) for path, kind, size, named in rows]
    if is_sorted:
        entries.sort()
    paths = [entry.path for entry in entries]
    is_valid = all(map(is_safe_path, paths)) and paths == sorted(set(paths))
    for entry in entries:
        is_named = re.fullmatch("[0-9a-f]{64}", entry.object) or (entry.kind == "submodule" and not entry.object)
        is_valid = is_valid and entry.size >= 0 and bool(is_named)
    if is_valid:
        assert decode_entries(encode_entries(entries)) == entries
    else:
        with pytest.raises(ValueError, match=r"line \d: "):
            decode_entries(encode_entries(entries))


def test_hostile_index_lines_are_rejected() -> None:
    line = encode_entries(ENTRIES[:1])
    hostile = [
        line.replace(b"a/b.py", b"../b.py"),
        line.replace(b"a/b.py", b"/b.py"),
        line + line,
        line.replace(b'"size":3', b'"size":-3'),
        line.replace(b'"object":"', b'"object":"z'),
        line.replace(b'"path":"a/b.py"', b'"path_b64":"*"'),
        line.replace(b'"path":"a/b.py"', b'"path":"a","path_b64":"YQ=="'),
        b"[]\n",
    ]
    for data in hostile:
        with pytest.raises(ValueError, match=r"."):
            decode_entries(data)


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 100))
def test_item_table_locates_and_checks_every_item(items: list[bytes], step: int) -> None:
    table = b"".join(make_row(item) for item in items)
    records = b"".join(items)
    assert item_lengths(table) == [len(item) for item in items]
    blocks = [records[at : at + step] for at in range(0, len(records), step)]
    assert list(iter_items(table, blocks)) == items
    for damaged in ([*blocks, b"x"], blocks[:-1], [b"x", *blocks]):
        if damaged != blocks:
            with pytest.raises(ValueError, match="does not match"):
                list(iter_items(table, damaged))
    for index, item in enumerate(items):
        start, end = item_range(table, index)
        assert records[start:end] == item


def test_item_is_returned_before_later_blocks_are_read() -> None:
    def blocks() -> Iterator[bytes]:
        yield b"one"
        yield b"two"
        raise AssertionError("the reader requests a block before it needs it")

    items = iter_items(b"".join(map(make_row, (b"on", b"etw", b"o", b"three"))), blocks())
    assert [next(items) for _ in range(3)] == [b"on", b"etw", b"o"]


def test_tasks_are_ordered_by_need_and_a_cycle_is_rejected() -> None:
    assert order_tasks(["lint", "parse"], {"lint": ("parse",), "parse": ()}) == ("parse", "lint")
    with pytest.raises(ValueError, match="cycle"):
        order_tasks(["a", "b"], {"a": ("b",), "b": ("a",)})
    with pytest.raises(ValueError, match="not in the pipeline"):
        order_tasks(["a"], {"a": ("b",)})


def test_task_names_accept_the_numbers_of_codebatch_1() -> None:
    assert [task_name(name) for name in ("01_parse", "parse", "04_lint", "01_")] == ["parse", "parse", "lint", "01_"]


def test_item_is_found_in_the_index_without_decoding() -> None:
    names = [b'a"kind":"file"', b"b", b"b/c", b"link", b"sub", b"\xff.py", "z\u00fc".encode()]
    kinds: dict[bytes, EntryKind] = {b"link": "symlink", b"sub": "submodule"}
    entries = sorted(Entry(name, kinds.get(name, "file"), False, 1, Digest("1" * 64)) for name in names)
    index = encode_entries(entries).splitlines()
    items = [entry.path for entry in entries if entry.kind == "file"]
    assert [find_item(index, path) for path in items] == list(range(len(items)))
    assert [find_item(index, path) for path in (b"", b"aa", b"link", b"sub", b"zzz")] == [None] * 5
    assert find_item([], b"a") is None
    assert [find_entry(index, entry.path) for entry in entries] == entries
    assert [find_entry(index, path) for path in (b"", b"aa", b"zzz")] == [None] * 3
