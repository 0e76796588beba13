"""Tests of the choice of parts, and of the differences between a part and a plan."""

from __future__ import annotations

import msgspec
import pytest

from codebatch.model.digest import digest_bytes
from codebatch.model.entry import Entry
from codebatch.model.part import (
    PartChoice,
    PartShard,
    PartTask,
    differing_fields,
    differing_paths,
    file_fingerprint,
    parse_part,
)
from codebatch.model.shard import ShardId

SLURM = {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_COUNT": "4"}


def _slurm(index: int, lowest: int, highest: int, step: int, count: int) -> dict[str, str]:
    values = {"ID": index, "MIN": lowest, "MAX": highest, "STEP": step, "COUNT": count}
    return {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in values.items()}


def _sge(index: int | str, first: int, last: int, step: int) -> dict[str, str]:
    values = {"ID": index, "FIRST": first, "LAST": last, "STEPSIZE": step}
    return {f"SGE_TASK_{name}": str(value) for name, value in values.items()}


@pytest.mark.parametrize(
    ("text", "environment", "choice"),
    [
        ("1/1", {}, "1/1"),
        ("3/8", {}, "3/8"),
        ("3-7/64", {}, "3-7/64"),
        ("10000/10000", {}, "10000/10000"),
        ("auto", {"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "5"}, "2/5"),
        ("auto", {"BUILDKITE_PARALLEL_JOB": "0", "BUILDKITE_PARALLEL_JOB_COUNT": "3"}, "1/3"),
        ("auto", {"JOB_COMPLETION_INDEX": "2", "JOB_COMPLETIONS": "3"}, "3/3"),
        ("auto/3", {"JOB_COMPLETION_INDEX": "2"}, "3/3"),
        ("auto", {"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_COUNT": "4"}, "1/4"),
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_MIN": "5"}, "3/4"),
        ("auto", {**SLURM, "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_STEP": "2"}, "4/4"),
        ("auto/4", {**SLURM, "SLURM_ARRAY_TASK_MIN": "4", "SLURM_ARRAY_TASK_MAX": "7"}, "4/4"),
        ("auto/4", _slurm(0, 0, 6, 2, 4), "1/4"),
        ("auto/4", _slurm(6, 0, 6, 2, 4), "4/4"),
        ("auto", _slurm(12, 12, 12, 1, 1), "1/1"),
        ("auto", {"CIRCLE_NODE_INDEX": "0", "CIRCLE_NODE_TOTAL": "2"}, "1/2"),
        ("auto", _sge(5, 1, 7, 2), "3/4"),
        ("auto/4", _sge(7, 1, 8, 2), "4/4"),
        ("auto", {**_sge("undefined", 0, 0, 0), "CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "5"}, "1/5"),
        ("auto/8", {"JOB_COMPLETION_INDEX": "7", "JOB_COMPLETIONS": "8"}, "8/8"),
    ],
)
def test_choices_of_parts(text: str, environment: dict[str, str], choice: str) -> None:
    assert parse_part(text, environment).text == choice


@pytest.mark.parametrize(
    ("text", "environment", "problem"),
    [
        ("", {}, "K/N"),
        ("3", {}, "K/N"),
        ("0/3", {}, "between 1 and 3"),
        ("4/3", {}, "between 1 and 3"),
        ("3-2/3", {}, "between 1 and 3"),
        ("1/0", {}, "between 1 and 10,000"),
        ("1/10001", {}, "between 1 and 10,000"),
        ("1/3\n", {}, "K/N"),
        ("-1/3", {}, "K/N"),
        ("١/3", {}, "K/N"),  # noqa: RUF001
        ("auto", {}, "none of SLURM_ARRAY_TASK_ID"),
        ("auto", {"JOB_COMPLETION_INDEX": "2"}, "auto/N"),
        ("auto/2", {"JOB_COMPLETION_INDEX": "2"}, "between 1 and 2"),
        ("auto", {"CI_NODE_INDEX": "x", "CI_NODE_TOTAL": "5"}, "CI_NODE_INDEX is 'x'"),
        ("auto", {"CI_NODE_INDEX": "0", "CI_NODE_TOTAL": "5"}, "between 1 and 5"),
        ("auto", {"CI_NODE_INDEX": "1", "CI_NODE_TOTAL": "five"}, "CI_NODE_TOTAL is 'five', not a number: .*K/N"),
        ("auto/4", _slurm(3, 3, 3, 1, 1), "the array has 1 task, N is 4: give --part 3/4"),
        ("auto/4", _slurm(0, 0, 0, 1, 1), "the array has 1 task, N is 4: give --part 1/4"),
        ("auto/4", _slurm(6, 5, 6, 1, 2), "the array has 2 tasks, N is 4: give --part K/4"),
        ("auto/2", {**SLURM, "SLURM_ARRAY_TASK_MIN": "4"}, "the array has 4 tasks, N is 2"),
        ("auto/4", _sge(3, 3, 3, 1), "the array has 1 task, N is 4: give --part 3/4"),
        ("auto/8", {"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "4"}, "the array has 4 tasks, N is 8: give --part 2/8"),
        ("auto/8", {"JOB_COMPLETION_INDEX": "0", "JOB_COMPLETIONS": "4"}, "N is 8: give --part 1/8 for index 0 of 0-7"),
        ("auto", _slurm(2, 2, 5, 1, 2), "its indexes have gaps: give --part K/N"),
        ("auto/2", _slurm(2, 2, 5, 1, 2), "its indexes have gaps"),
        ("auto", _slurm(2, 1, 7, 2, 4), "not 1 plus a multiple of 2: give --part K/N"),
        ("auto", _slurm(0, 4, 7, 1, 4), "between 1 and 4"),
        ("auto/0", {"JOB_COMPLETION_INDEX": "0"}, "between 1 and 10,000"),
    ],
)
def test_invalid_choices(text: str, environment: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_part(text, environment)


@pytest.mark.parametrize("numbers", [(3, 0, 1), (3, 2, 1), (3, 1, 4), (10_001, 1, 1)])
def test_a_decoded_choice_is_checked(numbers: tuple[int, int, int]) -> None:
    data = msgspec.msgpack.encode(dict(zip(("count", "first", "last"), numbers, strict=True)))
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(data, type=PartChoice)


def _entry(path: str, content: str, *, executable: bool = False) -> Entry:
    return Entry(path.encode(), "file", executable, len(content), digest_bytes(content.encode()))


def test_differing_paths() -> None:
    here = [_entry(name, "x") for name in "abdef"]
    there = [
        _entry("a", "x"),
        _entry("b", "y"),
        _entry("c", "x"),
        _entry("d", "x", executable=True),
        _entry("f", "x"),
    ]
    shard = PartShard(id=ShardId("0" * 8), files=tuple((entry.path, file_fingerprint(entry)) for entry in there))
    items = {entry.path: entry for entry in here}
    assert differing_paths([shard], items, list(items)) == {b"b", b"c", b"d", b"e"}
    assert differing_paths([msgspec.structs.replace(shard, files=())], items, list(items)) == set()


TASK = PartTask(
    name="parse",
    version="1",
    implementation_digest="a",
    config_digest=digest_bytes(b""),
    tools={"python": "3.12", "ruff": "1"},
    key=digest_bytes(b""),
)


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({}, []),
        ({"version": "2"}, ["version 1 in the part, 2 here"]),
        ({"config_digest": digest_bytes(b"x")}, ["another configuration"]),
        ({"tools": {"python": "3.13"}}, ["python 3.12 in the part, 3.13 here", "ruff 1 in the part, missing here"]),
        ({"implementation_digest": "b"}, ["another implementation"]),
    ],
)
def test_differing_fields(changes: dict[str, object], fields: list[str]) -> None:
    assert differing_fields(TASK, msgspec.structs.replace(TASK, **changes)) == fields
