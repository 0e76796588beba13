"""Tests of part files: the format, damage at each byte, and files that no run wrote."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from codebatch.errors import InvalidInput
from codebatch.model.digest import digest_bytes
from codebatch.model.outcome import TaskOutcome
from codebatch.model.part import ExternalOutcome, PartChoice, PartHeader, PartShard, PartTask
from codebatch.model.record_counts import RecordCounts
from codebatch.model.shard import ShardId
from codebatch.snapshotting.selection import is_result_file
from codebatch.store.part_files import (
    MAGIC,
    DamagedPart,
    PartFile,
    iter_part_outcomes,
    read_part,
    write_part,
)
from codebatch.store.sealed_records import HEADER_BYTES_MAX

GOLDEN = Path(__file__).parent.parent / "golden" / "part.cbpart"
SHARD = ShardId("0a0b0c0d")
HEADER = PartHeader(
    plan_digest=digest_bytes(b"plan"),
    snapshot_digest=digest_bytes(b"snapshot"),
    paths=(b"src",),
    items=12,
    tasks=(
        PartTask(
            name="parse",
            version="1",
            implementation_digest="",
            config_digest=digest_bytes(b"{}"),
            tools={"python": "3.12"},
            key=digest_bytes(b"key"),
        ),
    ),
    part=PartChoice(8, 2, 3),
    shards=(PartShard(id=SHARD, files=((b"src/a.py", b"01234567-"), (b"src/\xff.py", b"01234567x"))),),
    failed=1,
    codebatch="2.0.0",
    estimates=1,
)
OUTCOMES = (
    ExternalOutcome(
        outcome=TaskOutcome(
            shard=SHARD,
            task="parse",
            start=0,
            end=1,
            type="result",
            length=6,
            bytes=7,
            crc=8,
            digest=digest_bytes(b"table"),
            counts=RecordCounts(kinds={"file": 1}),
            inputs_outside_key="reads /etc/x",
        ),
        frames=b"frames",
        table=b"table",
    ),
    ExternalOutcome(
        outcome=TaskOutcome(shard=SHARD, task="parse", start=1, end=2, type="failed", reason="timeout"),
        frames=b"",
        table=b"",
    ),
)


def _write(directory: Path) -> PartFile:
    return write_part(directory, HEADER, OUTCOMES)


def _with_checksum(data: bytes) -> bytes:
    return data + hashlib.sha256(data).digest()


def test_the_format_is_that_of_the_golden_file(tmp_path: Path) -> None:
    written = _write(tmp_path)
    assert written.path.read_bytes() == GOLDEN.read_bytes()
    part = read_part(GOLDEN)
    assert (part.header, tuple(iter_part_outcomes(part))) == (HEADER, OUTCOMES)
    assert part.digest == digest_bytes(GOLDEN.read_bytes()[:-32])


def test_a_part_gets_a_name_with_its_plan_number_and_content(tmp_path: Path) -> None:
    written = _write(tmp_path)
    assert written.path.name == f"codebatch-{HEADER.plan_digest[:12]}-2-3-of-8-{written.digest[:8]}.cbpart"
    assert written.bytes == written.path.stat().st_size
    other = write_part(tmp_path, HEADER, OUTCOMES[:1])
    assert sorted(tmp_path.iterdir()) == sorted((written.path, other.path))
    assert write_part(tmp_path / "x", HEADER, ()).path == tmp_path / "x"


def test_nothing_is_left_if_a_part_cannot_be_written(tmp_path: Path) -> None:
    def fail() -> Iterator[ExternalOutcome]:
        yield OUTCOMES[0]
        raise InvalidInput("it ends here")

    (tmp_path / "x").write_bytes(b"older")
    with pytest.raises(InvalidInput, match="it ends here"):
        write_part(tmp_path / "x", HEADER, fail())
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_bytes() == b"older"


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    whole = GOLDEN.read_bytes()
    for length in range(len(whole)):
        (tmp_path / "cut").write_bytes(whole[:length])
        with pytest.raises(DamagedPart):
            read_part(tmp_path / "cut")


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    whole = GOLDEN.read_bytes()
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x41
        (tmp_path / "changed").write_bytes(changed)
        with pytest.raises(InvalidInput):
            read_part(tmp_path / "changed")
    (tmp_path / "longer").write_bytes(whole + b"x")
    with pytest.raises(DamagedPart):
        read_part(tmp_path / "longer")


def _sparse(path: Path, head: bytes, size: int) -> Path:
    path.write_bytes(head)
    os.truncate(path, size)
    return path


@pytest.mark.parametrize(
    "head",
    [
        b"",
        MAGIC,
        MAGIC + struct.pack("<Q", 2**60),
        MAGIC + struct.pack("<Q", HEADER_BYTES_MAX + 1),
        GOLDEN.read_bytes()[:-32],
        GOLDEN.read_bytes()[:-32] + struct.pack("<Q", 2**60),
        GOLDEN.read_bytes()[:-32] + struct.pack("<Q", 2**30 + 1),
    ],
)
def test_ten_gigabytes_of_zeros_are_refused_without_reading_them(tmp_path: Path, head: bytes) -> None:
    path = _sparse(tmp_path / "zeros", head, 10 << 30)
    with pytest.raises(InvalidInput):
        read_part(path)


def test_a_part_that_is_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="longer than 64 GiB"):
        read_part(_sparse(tmp_path / "large", GOLDEN.read_bytes(), (64 << 30) + 1))


def _task(**members: object) -> object:
    return msgspec.to_builtins(replace(HEADER.tasks[0], **members))


def test_a_name_of_an_unfinished_file_is_excluded_from_snapshots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codebatch.system.files.files.RealFiles.replace", lambda *_: None)
    write_part(tmp_path, HEADER, OUTCOMES)
    (unfinished,) = tmp_path.iterdir()
    assert unfinished.name.startswith(".")
    assert is_result_file(os.fsencode(unfinished))


@pytest.mark.parametrize(
    "header",
    [
        {},
        [],
        {**msgspec.to_builtins(HEADER, builtin_types=(bytes,)), "plan_digest": "x"},
        {**msgspec.to_builtins(HEADER, builtin_types=(bytes,)), "plan_digest": HEADER.plan_digest + "\n"},
        {**msgspec.to_builtins(HEADER, builtin_types=(bytes,)), "tasks": [_task(version="x" * 257)]},
        {**msgspec.to_builtins(HEADER, builtin_types=(bytes,)), "tasks": [_task(tools={"x": "x" * 257})]},
        {**msgspec.to_builtins(HEADER, builtin_types=(bytes,)), "part": {"count": 2, "first": 3, "last": 3}},
        {**msgspec.to_builtins(HEADER, builtin_types=(bytes,)), "part": {"count": 20_000, "first": 3, "last": 3}},
    ],
)
def test_a_header_with_impossible_values_is_refused(tmp_path: Path, header: object) -> None:
    data = msgspec.msgpack.encode(header)
    (tmp_path / "x").write_bytes(_with_checksum(MAGIC + struct.pack("<Q", len(data)) + data))
    with pytest.raises(DamagedPart):
        read_part(tmp_path / "x")


def test_a_header_of_another_format_is_refused(tmp_path: Path) -> None:
    part = write_part(tmp_path, replace(HEADER, format=2), ())
    with pytest.raises(InvalidInput, match="format 2"):
        read_part(part.path)


@pytest.mark.parametrize("outcome", [b"\xc0", b"\x80", b"\x91" * 100_000, b"\x00\x00"])
def test_an_outcome_of_another_type_is_refused(tmp_path: Path, outcome: bytes) -> None:
    data = GOLDEN.read_bytes()[:-32] + struct.pack("<Q", len(outcome)) + outcome
    (tmp_path / "x").write_bytes(_with_checksum(data))
    part = read_part(tmp_path / "x")
    with pytest.raises(DamagedPart):
        list(iter_part_outcomes(part))


def test_a_part_that_shrinks_while_it_is_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(GOLDEN.read_bytes())
    part = read_part(tmp_path / "x")
    os.truncate(tmp_path / "x", part.bytes - 60)
    with pytest.raises(DamagedPart):
        list(iter_part_outcomes(part))


def test_other_files_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "text").write_text("not a part")
    for name, problem in (("fifo", "regular"), ("text", "not a part file"), ("none", "No such file"), ("", "regular")):
        with pytest.raises(InvalidInput, match=problem):
            read_part(tmp_path / name)
    with pytest.raises(InvalidInput, match="regular"):
        read_part(Path("/dev/zero"))
