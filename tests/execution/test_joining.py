"""Tests of `join`: which parts are joined, refused or missing, and how their outcomes are committed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from codebatch.model.part import ExternalOutcome
from codebatch.model.record_counts import RecordCounts
from codebatch.operations.runs.execution import Listener
from codebatch.operations.runs.join import commit_parts
from codebatch.protocol.record_frames import FrameWriter
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.part_files import iter_part_outcomes, read_part, write_part
from codebatch.store.results.outcomes import encode_outcome
from tests.support.command_line import write
from tests.support.parts import (
    ask_in,
    decode_answer,
    read_outputs,
    read_plain_outputs,
    run_part,
)
from tests.support.worker_processes import open_latest

pytestmark = pytest.mark.usefixtures("inline_runs")


def test_a_part_ends_with_0_even_if_results_failed_and_join_reports_them(
    tree: Path, parts: list[Path], tmp_path: Path
) -> None:
    assert sum(read_part(path).header.failed for path in parts) == 1
    joined = ask_in(tree, "join", *map(str, parts), ".", "--store", str(tmp_path / "joined"), status=3)
    answer = decode_answer(joined)
    assert (answer["failures"], answer["executed"], answer["action"]) == (1, 0, "new")
    assert answer["reused"] == sum(
        external.outcome.end - external.outcome.start
        for path in parts
        for external in iter_part_outcomes(read_part(path))
    )


def test_missing_parts_are_exactly_those_that_must_run_again(tree: Path, parts: list[Path], tmp_path: Path) -> None:
    def missing(*paths: Path) -> list[str]:
        answer = decode_answer(ask_in(tree, "join", "--missing", *map(str, paths), "."))
        assert answer["count"] == 3
        listed: list[str] = answer["parts"]
        return listed

    assert missing(*parts) == []
    assert missing(parts[1]) == ["1/3", "3/3"]
    parts[0].write_bytes(parts[0].read_bytes()[:-1])
    assert missing(*parts) == ["1/3"]
    assert not (tree / ".codebatch").exists()
    assert run_part(tree, "1/3", tmp_path / "store", tmp_path / "parts") == parts[0]
    assert missing(*parts) == []
    parts[0].write_bytes(b"")
    error = ask_in(tree, "join", "--missing", str(parts[0]), status=2).stderr
    assert "no part file is intact" in error


def test_strict_ends_before_any_work_if_a_part_is_missing(tree: Path, parts: list[Path], tmp_path: Path) -> None:
    store = str(tmp_path / "joined")
    error = ask_in(tree, "join", "--strict", str(parts[0]), str(parts[2]), ".", "--store", store, status=3).stderr
    assert "are missing: 2/3" in error
    assert not list(Path(store).glob("batches/batch-*"))
    joined = decode_answer(ask_in(tree, "join", "--strict", *map(str, parts), ".", "--store", store, status=3))
    assert joined["executed"] == 0


def test_strict_applies_to_an_existing_batch_too(tree: Path, parts: list[Path], tmp_path: Path) -> None:
    store = str(tmp_path / "store1")
    error = ask_in(tree, "join", "--strict", str(parts[0]), "--batch", "latest", "--store", store, status=3).stderr
    assert "are missing: 2/3, 3/3" in error


def test_a_damaged_part_is_left_out_and_its_work_is_done_here(tree: Path, parts: list[Path], tmp_path: Path) -> None:
    parts[1].write_bytes(parts[1].read_bytes()[:-40] + bytes(40))
    answer = ask_in(tree, "join", *map(str, parts), ".", "--store", str(tmp_path / "joined"), status=3)
    assert decode_answer(answer)["executed"] > 0
    assert read_outputs(tmp_path / "joined") == read_plain_outputs(tree, tmp_path / "plain")


def test_a_result_is_preferred_to_a_failure_whatever_the_order_of_parts(
    tree: Path, parts: list[Path], tmp_path: Path
) -> None:
    """Another machine may fail, for example because it has less memory."""
    worse = [
        write_part(tmp_path / f"{number}", replace(part.header, failed=9), map(_failed, iter_part_outcomes(part))).path
        for number, part in enumerate(map(read_part, parts))
    ]
    ask_in(tree, "join", *map(str, worse), *map(str, parts), ".", "--store", str(tmp_path / "joined"), status=3)
    assert read_outputs(tmp_path / "joined") == read_plain_outputs(tree, tmp_path / "plain")


def _failed(external: ExternalOutcome) -> ExternalOutcome:
    """Return a failure of the first item of an outcome."""
    outcome = external.outcome
    failed = replace(outcome, end=outcome.start + 1, type="failed", reason="memory", counts=RecordCounts())
    encoded = encode_outcome(failed, [b""], FrameWriter())
    return ExternalOutcome(outcome=encoded.outcome, frames=encoded.frames, table=encoded.table)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tree: (tree / "c.py").write_text("other = 1\n"), "1 path differs: c.py"),
        (lambda tree: (tree / "zz.py").write_text(""), "1 path differs: zz.py (14 files there, 15 here)"),
        (lambda tree: (tree / "b.py").unlink(), "1 path differs: b.py (14 files there, 13 here)"),
        (lambda tree: (tree / "a.py").chmod(0o755), "1 path differs: a.py"),
        (
            lambda tree: [path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n")) for path in tree.glob("*.py")],
            "13 paths differ: a.py, b.py, c.py and 10 more",
        ),
        (lambda tree: (tree / "link").symlink_to("a.py"), "none of them is in the part"),
    ],
)
def test_a_part_of_other_files_is_refused_with_their_paths(
    tree: Path, parts: list[Path], tmp_path: Path, change: Any, message: str
) -> None:
    change(tree)
    answer = ask_in(tree, "join", *map(str, parts), ".", "--store", str(tmp_path / "joined"), status=2)
    error = json.loads(answer.stderr)["error"]
    assert error["code"] == "invalid_input"
    assert message in error["message"]
    assert not list((tmp_path / "joined").glob("batches/batch-*"))


def test_a_part_of_another_configuration_or_version_is_refused(
    tree: Path, parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = str(tmp_path / "joined")
    error = json.loads(ask_in(tree, "join", str(parts[0]), "--pipeline", "parse", "--store", store, status=2).stderr)
    assert "has other tasks" in error["error"]["message"]
    monkeypatch.setattr("sys.version_info", (3, 99, 0, "final", 0))
    error = json.loads(ask_in(tree, "join", str(parts[0]), "--store", store, status=2).stderr)["error"]
    assert error["code"] == "tool_mismatch"
    assert "python 3." in error["message"]
    assert "3.99 here" in error["message"]


def test_a_part_is_joined_only_with_its_paths(tree: Path, tmp_path: Path) -> None:
    write(tree / "d" / "x.py", "import os\n")
    store = str(tmp_path / "store")
    words = ("run", "--part", "1/1", "d", "--store", store, "--part-output", str(tmp_path))
    part = decode_answer(ask_in(tree, *words))
    assert part["files"] == 1
    error = json.loads(ask_in(tree, "join", part["file"], "--store", str(tmp_path / "joined"), status=2).stderr)[
        "error"
    ]
    assert "is restricted to d, but this command to no path" in error["message"]
    joined = decode_answer(ask_in(tree, "join", part["file"], "d", "--store", str(tmp_path / "joined")))
    assert (joined["executed"], joined["paths"]) == (0, ["d"])


def test_a_part_with_an_outcome_that_does_not_fit_is_refused(tree: Path, parts: list[Path], tmp_path: Path) -> None:
    part = read_part(parts[0])
    forged = [replace(external, outcome=replace(external.outcome, crc=1)) for external in iter_part_outcomes(part)]
    path = write_part(tmp_path / "forged", part.header, forged).path
    error = json.loads(ask_in(tree, "join", str(path), ".", "--store", str(tmp_path / "joined"), status=2).stderr)
    assert "frames that do not match their checksum" in error["error"]["message"]


def test_a_part_of_other_shards_is_refused(tree: Path, parts: list[Path], tmp_path: Path) -> None:
    part = read_part(parts[0])
    shards = (replace(part.header.shards[0], files=part.header.shards[0].files[1:]),)
    path = write_part(tmp_path / "forged", replace(part.header, shards=shards), ()).path
    error = json.loads(ask_in(tree, "join", str(path), ".", "--store", str(tmp_path / "joined"), status=2).stderr)
    assert "has other shards" in error["error"]["message"]


def test_parts_are_joined_to_an_existing_batch(tree: Path, parts: list[Path], tmp_path: Path) -> None:
    store = str(tmp_path / "store1")
    joined = decode_answer(ask_in(tree, "join", *map(str, parts), "--batch", "latest", "--store", store, status=3))
    assert joined["action"] == "resumed"
    assert read_outputs(tmp_path / "store1") == read_plain_outputs(tree, tmp_path / "plain")
    error = json.loads(ask_in(tree, "join", str(parts[0]), ".", "--batch", "latest", "--store", store, status=2).stderr)
    assert "PATH cannot be used with --batch" in error["error"]["message"]


def _commit_files(batch: BatchDir) -> set[int]:
    """Return the inodes of the commit files of a batch."""
    return {path.stat().st_ino for path in (batch.root / "outcomes").iterdir()}


def _segment_bytes(batch: BatchDir) -> int:
    return sum(path.stat().st_size for path in (batch.root / "results").iterdir())


def test_a_part_is_committed_at_once_and_only_once(tree: Path, parts: list[Path], tmp_path: Path) -> None:
    batch = open_latest(tmp_path / "store1")
    before = _commit_files(batch)
    added = [read_part(path) for path in parts[1:]]
    results = [external.outcome.end - external.outcome.start for part in added for external in iter_part_outcomes(part)]
    assert commit_parts(batch, added, Listener()) == sum(results)
    assert len(_commit_files(batch) - before) == 2
    size = _segment_bytes(batch)
    assert commit_parts(batch, added, Listener()) == 0
    assert (len(_commit_files(batch) - before), _segment_bytes(batch)) == (2, size)


@pytest.mark.parametrize("limit", ["_OUTCOMES_PER_COMMIT_MAX", "_COMMIT_BYTES_MAX"])
def test_a_commit_has_a_limited_size(
    tree: Path, parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(f"codebatch.store.external_outcomes.{limit}", 1)
    batch = open_latest(tmp_path / "store1")
    before = _commit_files(batch)
    part = read_part(parts[1])
    commit_parts(batch, [part], Listener())
    assert len(_commit_files(batch) - before) == len(list(iter_part_outcomes(part)))
