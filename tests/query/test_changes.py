"""Tests of the changes that the tasks of a batch propose: their order, and the shards that are read."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest
from msgspec.structs import replace

from codebatch.errors import StoreCorrupt
from codebatch.model.change import ChangeRefusal, ProposedChange, TreeChange
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.record import FileChange, Record
from codebatch.query.answers.changes import read_changes
from codebatch.query.sources.records import BatchRecords
from tests.index.batches import Said, diagnostic, make_saying, make_store

BEFORE, AFTER = digest_bytes(b"old"), digest_bytes(b"new")
CHANGE = FileChange(path="b", before=BEFORE, after=AFTER, added=2, removed=1)


def batch_records(directory: Path, said: Said) -> BatchRecords:
    store = make_store(directory)
    return BatchRecords(store, make_saying(store, 9, said), pytest.fail)


def proposed(path: bytes, task: str, after: Digest | None = AFTER) -> ProposedChange:
    change = TreeChange(path=path, before=BEFORE, after=after)
    return ProposedChange(change=change, task=task, added=2, removed=1)


def test_changes_are_sorted_by_path_and_task_without_other_records(tmp_path: Path) -> None:
    strange = FileChange(path_b64=b64encode(b"a\xff").decode(), before=BEFORE, after=AFTER, added=2, removed=1)
    symbols: list[list[Record]] = [[diagnostic("c")], [CHANGE], *([[]] * 6), [replace(CHANGE, path="a", after=None)]]
    parse = [[strange, CHANGE], *([[]] * 8)]
    records = batch_records(tmp_path, {"symbols": symbols, "parse": parse})
    assert read_changes(records, ["symbols", "parse"]) == [
        proposed(b"a", "symbols", None),
        proposed(b"a\xff", "parse"),
        proposed(b"b", "parse"),
        proposed(b"b", "symbols"),
    ]
    assert read_changes(records, ["symbols"], "/a") == [proposed(b"a", "symbols", None)]
    executable = read_changes(
        batch_records(tmp_path / "x", {"parse": [[replace(CHANGE, executable=True)]] * 9}), ["parse"]
    )
    assert {each.change.executable for each in executable} == {True}


def test_refused_change_has_its_gate_and_evidence(tmp_path: Path) -> None:
    record = replace(CHANGE, refused_by="repeat", evidence="it changes again")
    (refused, *_) = read_changes(batch_records(tmp_path, {"parse": [[record]] * 9}), ["parse"])
    assert refused.refusal == ChangeRefusal(gate="repeat", evidence="it changes again")


def test_only_shards_with_changes_are_read(tmp_path: Path) -> None:
    symbols: list[list[Record]] = [[diagnostic("c")], *([[]] * 6), [CHANGE], [diagnostic("c")]]
    records = batch_records(tmp_path, {"symbols": symbols})
    assert len(read_changes(records, records.task_names)) == 1
    assert (records.reading.shards_read, records.reading.matched) == (1, 1)
    assert records.reading.answered_from_counts == records.reading.shards - 1


@pytest.mark.parametrize("digest", ["", "../x", AFTER[1:], AFTER + "0"])
@pytest.mark.parametrize("member", ["before", "after"])
def test_change_with_an_invalid_digest_is_damage(tmp_path: Path, member: str, digest: str) -> None:
    records = batch_records(tmp_path, {"parse": [[replace(CHANGE, **{member: digest})]] * 9})
    with pytest.raises(StoreCorrupt, match="invalid digest"):
        read_changes(records, ["parse"])
