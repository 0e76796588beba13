"""Capsules and answers: their formats, and damage at each byte."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from codebatch.model.capsule import (
    REFUSAL_CHARACTERS_MAX,
    AnswerHeader,
    CapsuleHeader,
    CapsuleLimits,
    CapsuleObject,
    CustomFile,
    Refusal,
)
from codebatch.model.command_table import CommandTable, CommandTaskLocation
from codebatch.model.digest import digest_bytes
from codebatch.model.entry import Entry
from codebatch.model.outcome import TaskOutcome
from codebatch.model.part import ExternalOutcome
from codebatch.model.plan import ContextTable, PlannedTask
from codebatch.model.shard import Shard, ShardId
from codebatch.model.task import CustomTaskLocation
from codebatch.store.capsules import answer_format, capsule_format
from codebatch.store.sealed_records import SealedFormat

GOLDEN = Path(__file__).parent.parent / "golden"
SHARD = ShardId("0a0b0c0d")
CONTENT = digest_bytes(b"x = 1\n")
CAPSULE = CapsuleHeader(
    plan_digest=digest_bytes(b"plan"),
    codebatch="2.0.0",
    python="3.12",
    pipeline="full",
    tasks=(
        PlannedTask(
            name="parse",
            version="1",
            scope="file",
            needs=(),
            implementation_digest=digest_bytes(b"code"),
            config={"emit_ast": False},
            tools={"tree-sitter": "0.25"},
            contexts=("language",),
            key=digest_bytes(b"key"),
        ),
    ),
    shards=(Shard(id=SHARD, start=0, end=1, bytes=6),),
    items=(Entry(b"src/\xff.py", "file", executable=True, size=6, object=CONTENT),),
    contexts={"language": ContextTable(values=(b"python",), items=(0,))},
    locations={
        "own": CustomTaskLocation(python=":task", files={"words.txt": ""}),
        "linter": CommandTaskLocation(table=CommandTable(command=("lint", "{files}"), records="gcc"), project=""),
    },
    files=(CustomFile(task="own", name="", content=b"def task(file): ..."),),
    limits=CapsuleLimits(file_seconds=30.0, memory_bytes=None, call_seconds={"linter": 60.0}),
    jobs=2,
    hash_seed=0,
    seconds_max=600.0,
)
OBJECTS = (CapsuleObject(digest=CONTENT, size=6, frame=b"frame"),)
ANSWER = AnswerHeader(
    plan_digest=CAPSULE.plan_digest,
    shards=(SHARD,),
    host="worker-1",
    codebatch="2.0.0",
    python="3.12",
    seconds=1.5,
    cpu_seconds=0.75,
    refusal=Refusal(code="tool_mismatch", message="another version"),
)
OUTCOMES = (
    ExternalOutcome(
        outcome=TaskOutcome(shard=SHARD, task="parse", start=0, end=1, type="result"), frames=b"frames", table=b"table"
    ),
)
FORMATS = pytest.mark.parametrize(
    ("name", "format_", "header", "records"),
    [("capsule.cbcaps", capsule_format, CAPSULE, OBJECTS), ("answer.cbansw", answer_format, ANSWER, OUTCOMES)],
)


@FORMATS
def test_the_format_is_that_of_the_golden_file(
    name: str, format_: SealedFormat[Any, Any], header: object, records: tuple[object, ...]
) -> None:
    data = (GOLDEN / name).read_bytes()
    assert format_.encode(header, records) == data
    decoded, decoded_records = format_.decode(data)
    assert (decoded, tuple(decoded_records)) == (header, records)


@FORMATS
def test_every_truncation_and_every_changed_byte_is_noticed(
    name: str, format_: SealedFormat[Any, Any], header: object, records: tuple[object, ...]
) -> None:
    data = format_.encode(header, records)
    for place in range(len(data)):
        for damaged in (data[:place], data[:place] + bytes([data[place] ^ 0x41]) + data[place + 1 :]):
            with pytest.raises(ValueError, match=r"."):
                format_.decode(damaged)


@pytest.mark.parametrize(
    "members",
    [
        {"host": "x" * 257},
        {"plan_digest": "x"},
        {"seconds": -1.0},
        {"cpu_seconds": math.nan},
        {"refusal": Refusal(code="x", message="x" * (REFUSAL_CHARACTERS_MAX + 1))},
    ],
)
def test_impossible_values_of_an_answer_are_refused(members: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        answer_format.decode(answer_format.encode(replace(ANSWER, **members), ()))
