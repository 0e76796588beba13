"""The tables of SPEC.md "Limits" and workers/TASKS.md "Limits" state the values of the code, and limits fit each other.

`python -m tests.test_limits` updates the values in the tables.
"""

from __future__ import annotations

import functools
import importlib
import re
import struct
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from codebatch.model.analysis.item_table import make_row
from codebatch.model.digest import digest_bytes
from codebatch.model.outcome import Commit, HolderId, OutcomeRegister, TaskOutcome
from codebatch.model.record_counts import RecordCounts
from codebatch.model.shard import ShardId, ShardRule
from codebatch.protocol.messages import Committed
from codebatch.protocol.record_frames import FRAME_BYTES
from codebatch.snapshotting.capture import STREAMED_BYTES_MIN
from codebatch.store import layout
from codebatch.store.batches.store_directory import create_store
from codebatch.store.objects.pack_writer import PACK_BYTES_TARGET
from codebatch.system.files.files import RealFiles
from codebatch.system.processes.progress_cell import ProgressCell, WorkerStep
from tests.specification import ROOT, SPEC, TASKS, read_rows

TABLES = {"codebatch": SPEC, "codebatch_workers": TASKS}
CONSTANT = re.compile(r"`[a-z_.]+\._?[A-Z][A-Z0-9_]*_(?:MAX|MIN)`\Z")
NAMED = re.compile(r"^(_?[A-Z][A-Z0-9_]*_(?:MAX|MIN))(?:: [^=\n]+)? = ", re.MULTILINE)
NAME_BYTES_MAX = 255
PATH_BYTES_OF_LINUX = 4096
ARGUMENT_BYTES_OF_LINUX = 128 * 1024


class Limit(NamedTuple):
    """A constant of a module that is a limit. The name of the module does not include the package."""

    module: str
    name: str
    value: float

    @property
    def text(self) -> str:
        return f"{self.value:,g}" if isinstance(self.value, float) else f"{self.value:,}"


@functools.cache
def _limits(package: str) -> list[Limit]:
    """Return the limits that modules of a package define at their top level, in order of the modules."""
    parent = ROOT / ("workers" if package == "codebatch_workers" else "")
    limits = []
    for path in sorted((parent / package).rglob("*.py")):
        module = ".".join(path.relative_to(parent).with_suffix("").parts)
        for name in NAMED.findall(path.read_text(encoding="utf-8")):
            value = getattr(importlib.import_module(module), name)
            limits.append(Limit(module.partition(".")[2], name, value))
    return limits


def _documented(package: str) -> list[tuple[str, str]]:
    """Return the constants in the table of limits, as `module.NAME`, with the values that the table states."""
    rows = [row for row in read_rows("Limits", TABLES[package]) if len(row) == 3]
    return [(row[2].strip("`"), row[1].partition(" ")[0]) for row in rows if CONSTANT.match(row[2])]


@pytest.mark.parametrize("package", TABLES)
def test_documented_limits_match_the_code(package: str) -> None:
    documented = _documented(package)
    assert len(documented) > 20
    values = {f"{limit_.module}.{limit_.name}": limit_.text for limit_ in _limits(package)}
    assert documented == [(constant, values.get(constant, "no such constant")) for constant, _ in documented]


@pytest.fixture(scope="module")
def limit() -> dict[str, float]:
    """The limits whose names occur in only one module, by name."""
    every = [limit for package in TABLES for limit in _limits(package)]
    names = [limit.name for limit in every]
    return {limit.name: limit.value for limit in every if names.count(limit.name) == 1}


def test_counters_fit_their_fields_on_disk(limit: dict[str, float], tmp_path: Path) -> None:
    assert len(make_row(b"")) == struct.calcsize("<I32s")
    assert limit["ITEM_BYTES_MAX"] == 2**32 - 1
    assert limit["MESSAGE_BYTES_MAX"] < 2**32
    assert limit["ITEM_BYTES_MAX"] > FRAME_BYTES
    assert STREAMED_BYTES_MIN <= PACK_BYTES_TARGET, "content that is not streamed must fit in a pack"
    cell = ProgressCell(RealFiles(), tmp_path / "cell", create=True)
    step = WorkerStep(2**64 - 1, 2**64 - 1, 2**64 - 1, 2**32 - 1, 10**9 - 1, 10**9, 5, 255)
    cell.write_step(step)
    assert cell.read() == step
    cell.close()


def test_longest_names_fit_a_file_system_and_round_trip() -> None:
    task = "t" * 64
    register = OutcomeRegister(ShardId(f"project-{task}"), 10**9 - 1, task, 10**9 - 1)
    for shard in (register.shard, ShardId("f" * 64)):
        name = layout.register_name(*register._replace(shard=shard))
        assert len(name) <= NAME_BYTES_MAX
        assert layout.parse_register_name(name) == register._replace(shard=shard)
        lease = layout.lease_name(shard, 10**9 - 1, 10**9 - 1)
        assert len(lease) <= NAME_BYTES_MAX
        assert layout.parse_lease_name(lease) == (shard, 10**9 - 1, 10**9 - 1)
    assert layout.parse_register_name(layout.register_name(*register._replace(task=task + "t"))) is None
    assert layout.parse_register_name(layout.register_name(*register._replace(start=10**9))) is None
    holder = "f" * 32
    hidden = f".{holder}.{holder}.tmp"
    others = (
        layout.shard_file_name(10**9 - 1, register.shard),
        layout.shard_file_name(10**9 - 1, ShardId("f" * 64)),
        layout.segment_name(holder),
        layout.cell_name(holder),
        hidden,
    )
    assert max(map(len, others)) <= NAME_BYTES_MAX


def test_shard_item_limit_fits_register_names(limit: dict[str, float]) -> None:
    rule = ShardRule()
    assert rule.files_max < 10**9
    assert rule.bytes_max <= limit["ITEM_BYTES_MAX"]
    assert limit["SHARD_ID_DIGITS_MIN"] == 8
    assert layout.parse_lease_name("0123abcd.0.1") is not None
    assert layout.parse_lease_name("0123abc.0.1") is None


def test_commit_of_the_largest_project_task_fits_a_message(limit: dict[str, float]) -> None:
    """The commit has 100,000 shards, which are about 25 million files."""
    counts = RecordCounts(kinds=dict.fromkeys(("edge", "metric", "duplicate"), 10**6))
    part = TaskOutcome(
        shard=ShardId("0123abcd"),
        task="dependencies",
        start=0,
        end=768,
        type="result",
        offset=10**10,
        length=10**7,
        bytes=10**8,
        digest=digest_bytes(b""),
        counts=counts,
    )
    whole = msgspec.structs.replace(part, parts=(part,) * 100)
    commit = Commit(segment=HolderId("0" * 32), epoch=1, round=1, outcomes=(whole,))
    for_each_part = len(msgspec.msgpack.encode(Committed(commit=commit, lost=0))) / 100
    assert for_each_part * 100_000 < limit["MESSAGE_BYTES_MAX"]


def test_bounded_documents_are_shorter_than_their_limits(tmp_path: Path) -> None:
    create_store(RealFiles(), tmp_path / "store")
    bounds = [limit_.value for limit_ in _limits("codebatch") if limit_.name == "_STORE_FILE_BYTES_MAX"]
    assert len(bounds) == 2, "one limit is for opening a store, and one for excluding a store from a snapshot"
    assert 4 * (tmp_path / "store" / "store.json").stat().st_size < min(bounds)


def test_related_limits_are_consistent(limit: dict[str, float]) -> None:
    assert limit["MEMORY_BYTES_MIN"] < limit["MEMORY_BYTES_MAX"]
    assert limit["CRASHES_IN_A_ROW_PER_JOB_MAX"] < limit["CRASHES_IN_A_ROW_MAX"]
    assert limit["PATH_BYTES_MAX"] >= PATH_BYTES_OF_LINUX
    assert limit["CHECKED_DIRECTORIES_MAX"] < limit["CHECKED_PATHS_MAX"]
    assert limit["CHECKED_PATHS_MAX"] <= limit["LISTED_NAMES_MAX"]
    assert limit["IGNORE_FILE_BYTES_MAX"] < limit["MEMORY_BYTES_MIN"]


def test_related_limits_of_tasks_are_consistent(limit: dict[str, float]) -> None:
    assert limit["FINGERPRINTED_BYTES_MAX"] < limit["HUGE_BYTES_MIN"]
    assert (
        limit["_REPAIRED_BYTES_MAX"] < limit["HUGE_BYTES_MIN"] < limit["_MACROS_BYTES_MAX"] < limit["MEMORY_BYTES_MIN"]
    )
    assert limit["NAME_BYTES_MAX"] < limit["_QUALIFIED_CHARS_MAX"]
    assert limit["DIAGNOSTICS_MAX"] < limit["FINDINGS_PER_FILE_MAX"]
    assert limit["_NAME_BYTES_MAX"] < NAME_BYTES_MAX
    paths = [limit_.value for limit_ in _limits("codebatch_workers") if limit_.name == "_PATH_BYTES_MAX"]
    assert max(paths) < PATH_BYTES_OF_LINUX / 2, (
        "paths below a scratch directory must fit, even if the directory's own path is as long"
    )
    assert max(paths) < limit["FILE_NAMES_BYTES_MAX"] < ARGUMENT_BYTES_OF_LINUX


def _write(package: str) -> None:
    """Write the values of the code into the table of a document."""
    values = {f"{limit_.module}.{limit_.name}": limit_.text for limit_ in _limits(package)}
    text = TABLES[package].read_text(encoding="utf-8")
    for constant, value in _documented(package):
        row = re.compile(rf"(?<= \| ){re.escape(value)}(?=(?: [^|]*)? \| `{re.escape(constant)}` \|)")
        text = row.sub(values[constant], text)
    TABLES[package].write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for package in TABLES:
        _write(package)
