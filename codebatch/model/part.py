"""Parts of a batch: the file tasks of some shards, executed on one machine and joined on another (SPEC.md "Parts")."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

import msgspec

from codebatch.model.digest import DIGEST_PATTERN, digest_document
from codebatch.model.entry import PATH_BYTES_MAX, Entry
from codebatch.model.outcome import TaskOutcome
from codebatch.model.plan import PlannedTask
from codebatch.model.shard import ShardId
from codebatch.model.text.quantities import count_text

PART_FORMAT = 1
PARTS_MAX = 10_000

_FINGERPRINT_BYTES = 9
_DIGITS_MAX = 9
_CHOICE = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?/(\d{1,5})\Z", re.ASCII)
_AUTO = re.compile(r"auto(?:/(\d{1,5}))?\Z", re.ASCII)

DigestText = Annotated[str, msgspec.Meta(pattern=rf"^{DIGEST_PATTERN.pattern}")]
ShortText = Annotated[str, msgspec.Meta(max_length=256)]
PartNumber = Annotated[int, msgspec.Meta(ge=1, le=PARTS_MAX)]


class PartChoice(msgspec.Struct, frozen=True, order=True):
    """The parts `first` to `last` of `count` parts. The numbers begin at 1."""

    count: PartNumber
    first: PartNumber
    last: PartNumber

    def __post_init__(self) -> None:
        if not self.first <= self.last <= self.count:
            raise ValueError(f"there is no part {self.text}")

    @property
    def text(self) -> str:
        """The choice as it is given on the command line, such as `3/8` or `3-5/8`."""
        return f"{self.numbers}/{self.count}"

    @property
    def numbers(self) -> str:
        """The number of the part, or the first and the last number, such as `3-5`."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


class PartTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task of the plan of a part: the values that must be equal where the part is joined."""

    name: ShortText
    version: ShortText
    implementation_digest: ShortText
    config_digest: DigestText
    tools: dict[ShortText, ShortText]
    key: DigestText


class PartShard(msgspec.Struct, frozen=True, kw_only=True):
    """A shard of a part. `files` has the path and the fingerprint of each file, in path order."""

    id: ShardId
    files: tuple[
        tuple[
            Annotated[bytes, msgspec.Meta(max_length=PATH_BYTES_MAX)],
            Annotated[bytes, msgspec.Meta(max_length=_FINGERPRINT_BYTES)],
        ],
        ...,
    ]


class PartHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The header of a part file.

    - `items`: the number of items of the whole plan.
    - `part`: the parts of the plan that the file contains.
    - `failed`: the number of results in the file that failed.
    - `codebatch`, `estimates`: the version of the program, and of the cost estimates that assigned the shards. They
      are for messages only.
    """

    format: int = PART_FORMAT
    plan_digest: DigestText
    snapshot_digest: DigestText
    paths: tuple[bytes, ...]
    items: int
    tasks: tuple[PartTask, ...]
    part: PartChoice
    shards: tuple[PartShard, ...]
    failed: int
    codebatch: str
    estimates: int


class ExternalOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome from outside of the store, with its frames and its item table."""

    outcome: TaskOutcome
    frames: bytes
    table: bytes


def parse_part(text: str, environment: Mapping[str, str]) -> PartChoice:
    """Return the parts that `K/N`, `K-L/N`, `auto` or `auto/N` names. Raises ValueError.

    `auto` reads the number from the environment of an array job or of a parallel CI job. With `auto/N`, the environment
    need not have the number of parts. If it has another number, the array is not that of N parts.
    """
    if (match := _AUTO.match(text)) is not None:
        return _choice_from_environment(environment, match[1])
    if (match := _CHOICE.match(text)) is None:
        raise ValueError("it must be K/N, K-L/N or auto, for example 3/8")
    return _checked_choice(int(match[1]), int(match[2] or match[1]), int(match[3]))


def _checked_choice(first: int, last: int, count: int) -> PartChoice:
    if not 1 <= count <= PARTS_MAX:
        raise ValueError(f"the number of parts must be between 1 and {PARTS_MAX:,}")
    if not 1 <= first <= last <= count:
        raise ValueError(f"the number of a part must be between 1 and {count:,}")
    return PartChoice(count, first, last)


class _ArrayVariables(NamedTuple):
    """The variables with which a service numbers the jobs of an array. An empty name means that there is none.

    `first_default` is the first index if no variable has it. If there is no variable with the count, it follows from
    `last`.
    """

    index_name: str
    count_name: str
    first_default: int
    first: str = ""
    last: str = ""
    step: str = ""


_ARRAYS = (
    _ArrayVariables(
        "SLURM_ARRAY_TASK_ID",
        "SLURM_ARRAY_TASK_COUNT",
        1,
        first="SLURM_ARRAY_TASK_MIN",
        last="SLURM_ARRAY_TASK_MAX",
        step="SLURM_ARRAY_TASK_STEP",
    ),
    _ArrayVariables("SGE_TASK_ID", "", 1, first="SGE_TASK_FIRST", last="SGE_TASK_LAST", step="SGE_TASK_STEPSIZE"),
    _ArrayVariables("JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", 0),
    _ArrayVariables("CI_NODE_INDEX", "CI_NODE_TOTAL", 1),
    _ArrayVariables("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL", 0),
    _ArrayVariables("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT", 0),
)
"""The variables of each service. Kubernetes sets no variable with the count."""

_NO_INDEX = "undefined"
"""The index in a job of SGE that is no array."""


def _choice_from_environment(environment: Mapping[str, str], written_count: str | None) -> PartChoice:
    array = next((known for known in _ARRAYS if environment.get(known.index_name, _NO_INDEX) != _NO_INDEX), None)
    if array is None:
        raise ValueError(f"the environment has none of {', '.join(known.index_name for known in _ARRAYS)}")
    index = _number(environment, array.index_name)
    first = _number(environment, array.first, array.first_default)
    step = max(1, _number(environment, array.step, 1))
    count = _array_count(environment, array, first, step)
    wanted = count if written_count is None else int(written_count)
    if wanted is None:
        raise ValueError(f"the environment has {array.index_name} but not the number of parts: give auto/N")
    if count is not None and wanted != count:
        raise ValueError(f"the array has {count_text(count, 'task')}, N is {wanted}: {_advice(array, index, wanted)}")
    if (index - first) % step:
        raise ValueError(f"{array.index_name} is {index}, not {first} plus a multiple of {step}: give --part K/N")
    number = (index - first) // step + 1
    return _checked_choice(number, number, wanted)


def _advice(array: _ArrayVariables, index: int, count: int) -> str:
    """Return what to do with an index of an array that repeats some indexes of an earlier one with `count` tasks."""
    first = min(index, array.first_default)
    if index - first >= count:
        return f"give --part K/{count}"
    return f"give --part {index - first + 1}/{count} for index {index} of {first}-{first + count - 1}"


def _array_count(environment: Mapping[str, str], array: _ArrayVariables, first: int, step: int) -> int | None:
    """Return the number of jobs of an array, or None if the service does not set it.

    Raises ValueError if indexes are missing between the first and the last one, because the position of an index is
    unknown then.
    """
    count = _number(environment, array.count_name) if array.count_name in environment else None
    if array.last not in environment:
        return count
    spanned = (_number(environment, array.last) - first) // step + 1
    if count is not None and count != spanned:
        raise ValueError(f"the array has {count_text(count, 'task')}, but its indexes have gaps: give --part K/N")
    return spanned


def _number(environment: Mapping[str, str], name: str, default: int | None = None) -> int:
    text = environment.get(name)
    if text is None and default is not None:
        return default
    if text is None or not text.isascii() or not text.isdecimal() or len(text) > _DIGITS_MAX:
        raise ValueError(f"{name} is {text!r}, not a number: give --part K/N")
    return int(text)


def part_tasks(tasks: Sequence[PlannedTask]) -> tuple[PartTask, ...]:
    """Return the tasks of a plan as the header of a part has them."""
    return tuple(
        PartTask(
            name=task.name,
            version=task.version,
            implementation_digest=task.implementation_digest,
            config_digest=digest_document(task.config),
            tools=task.tools,
            key=task.key,
        )
        for task in tasks
    )


def differing_fields(one: PartTask, other: PartTask) -> list[str]:
    """Return descriptions of the differences of two tasks with the same name. `one` belongs to the part.

    Return an empty list if only a task that they need differs.
    """
    different = []
    if one.version != other.version:
        different.append(f"version {one.version} in the part, {other.version} here")
    if one.config_digest != other.config_digest:
        different.append("another configuration")
    different += [
        f"{tool} {one.tools.get(tool, 'missing')} in the part, {other.tools.get(tool, 'missing')} here"
        for tool in sorted(one.tools.keys() | other.tools.keys())
        if one.tools.get(tool) != other.tools.get(tool)
    ]
    if one.implementation_digest != other.implementation_digest and not different:
        different.append("another implementation")
    return different


def file_fingerprint(entry: Entry) -> bytes:
    """Return bytes that differ if the content of a file or its execute permission differs."""
    return bytes.fromhex(entry.object)[: _FINGERPRINT_BYTES - 1] + (b"x" if entry.executable else b"-")


def differing_paths(shards: Sequence[PartShard], items: Mapping[bytes, Entry], ordered: Sequence[bytes]) -> set[bytes]:
    """Return the paths whose files differ between the shards of a part and the items of a plan.

    `ordered` are the paths of the items, ascending. A path may exist on one side only.
    """
    different: set[bytes] = set()
    for shard in shards:
        there = dict(shard.files)
        for path, fingerprint in there.items():
            here = items.get(path)
            if here is None or file_fingerprint(here) != fingerprint:
                different.add(path)
        if there:
            start, end = bisect_left(ordered, min(there)), bisect_right(ordered, max(there))
            different.update(path for path in ordered[start:end] if path not in there)
    return different
