"""Older batches that are removed or become unreadable while results are reused from them."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from codebatch.system.files.system_calls import RealCalls
from tests.bad_input.bases import Bases, ending
from tests.support.calls import Fate, Operation, WatchedCalls
from tests.support.command_line import UNPRIVILEGED, CommandLine, permissions_bind
from tests.support.crashes import Meant, from_call, is_write, refused, refused_from
from tests.support.inline_workers import inline

TRIALS = int(os.environ.get("CODEBATCH_BASE_FAULTS", "4"))
"""The number of calls to sample for each test. If it is 0, each call is tried."""


def sample_calls(count: int) -> list[int]:
    """Return a sample of the numbers below `count`."""
    return sorted(random.Random(count).sample(range(count), min(count, TRIALS) if TRIALS else count))


def count_calls(bases: Bases, store: Path, is_meant: Meant) -> int:
    """Return the number of matching calls of a run."""
    count = 0

    def watch(operation: Operation) -> None:
        nonlocal count
        count += is_meant(operation)

    with inline(WatchedCalls(RealCalls(), watch)):
        assert not bases.problem_of(bases.run(bases.copied(store)))
    return count


def is_in_a_base(store: Path, names: list[str]) -> Meant:
    roots = [store / "batches" / name for name in names]
    return lambda operation: any(root == operation.path or root in operation.path.parents for root in roots)


def test_base_removed_during_a_read_is_a_cache_miss(bases: Bases, tmp_path: Path) -> None:
    store = tmp_path / "store"
    names = sorted(os.listdir(bases.store / "batches"))
    wrong = []
    for name in names:
        is_meant = is_in_a_base(store, [name])
        for at in sample_calls(count_calls(bases, store, is_meant)):
            is_late = from_call(at, is_meant)

            def watch(operation: Operation, name: str = name, is_late: Meant = is_late) -> None:
                if is_late(operation):
                    shutil.rmtree(store / "batches" / name, ignore_errors=True)

            bases.copied(store)
            with inline(WatchedCalls(RealCalls(), watch)), ending():
                if problem := bases.problem_of(bases.run(store)):
                    wrong.append(f"{names.index(name)} at {at}: {problem}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES], ids=errno.errorcode.get)
def test_unreadable_base_is_a_cache_miss_or_reported(bases: Bases, tmp_path: Path, number: int) -> None:
    """Only two errors are reported: an unreadable batch.json of a batch to resume, and failed writes during removal."""
    store = tmp_path / "store"
    is_meant = is_in_a_base(store, os.listdir(bases.store / "batches"))
    wrong = []
    for at in sample_calls(count_calls(bases, store, is_meant)):
        bases.copied(store)
        with inline(WatchedCalls(RealCalls(), refused_from(at, number, is_meant))), ending():
            answer = bases.run(store)
        problem = bases.problem_of(answer, may_say=("store_error", "store_unwritable"))
        if "store_error" in answer.stderr and "/batch.json: " not in answer.stderr:
            problem = f"a cache miss is reported as an error: {answer.stderr}"
        with inline():
            problem = problem or bases.problem_of(bases.run(store))
        if problem:
            wrong.append(f"at {at}: {problem}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
@pytest.mark.parametrize("is_lasting", [False, True], ids=["once", "from then on"])
def test_refused_write_ends_a_reusing_run_and_the_next_run_completes(
    bases: Bases, tmp_path: Path, number: int, is_lasting: bool
) -> None:
    store = tmp_path / "store"
    wrong = []
    for at in sample_calls(count_calls(bases, store, is_write)):
        is_late = from_call(at)
        is_past = False

        def refuse(operation: Operation, is_late: Meant = is_late) -> Fate | None:
            nonlocal is_past
            if not is_late(operation) or (is_past and not is_lasting):
                return None
            is_past = True
            return refused(number, operation)

        bases.copied(store)
        with inline(WatchedCalls(RealCalls(), refuse)), ending():
            answer = bases.run(store)
        problem = bases.problem_of(answer, may_say=("store_unwritable",))
        with inline():
            problem = problem or bases.problem_of(bases.run(store))
        if problem:
            wrong.append(f"at {at}: {problem}")
    assert not wrong, "\n".join(wrong)


class _LimitedLinks(RealCalls):
    """Calls with a limit on the number of hard links of a file."""

    def __init__(self, names_max: int) -> None:
        super().__init__()
        self._names_max = names_max
        self.refused: Counter[str] = Counter()

    def link(self, source: Path | str, path: Path | str) -> None:
        if Path(source).stat(follow_symlinks=False).st_nlink >= self._names_max:
            self.refused[Path(path).parent.name] += 1
            raise OSError(errno.EMLINK, os.strerror(errno.EMLINK))
        super().link(source, path)


@pytest.mark.parametrize("names_max", [2, 3, 7])
def test_shard_file_beyond_the_link_limit_is_copied(bases: Bases, tmp_path: Path, names_max: int) -> None:
    """ext4 allows 65,000 names for a file, other file systems 1,023 or fewer.

    The limit is hit by reused results, commits and leases.
    """
    store = bases.copied(tmp_path / "store")
    with inline():
        executed = json.loads(bases.run(bases.copied(tmp_path / "other")).stdout)["executed"]
    few = _LimitedLinks(names_max)
    with inline(few):
        answer = bases.run(store)
        assert not bases.problem_of(answer)
        assert json.loads(answer.stdout)["executed"] == executed
        assert few.refused["results"] > 0, "no reused result hit the link limit"
        assert few.refused["outcomes"] > 0 or names_max > 5, "no commit hit the link limit"
        assert json.loads(bases.run(store).stdout)["action"] == "up to date"
    with inline(_LimitedLinks(names_max)):
        assert not bases.problem_of(bases.run(store, "--again"))
        assert bases.run(store, "--pipeline", "parse").status == 0


@permissions_bind
def test_read_only_base_is_reused(bases: Bases, tmp_path: Path) -> None:
    """The older part of a store may be on a read-only disk or belong to another user."""
    store = bases.copied(tmp_path / "store")
    for path in [*store.glob("batches/*/**"), *store.glob("batches/batch-*")]:
        path.chmod(path.stat().st_mode & 0o555)
    ended = CommandLine(bases.root / "tree", prefix=UNPRIVILEGED)("run", ".", "--store", store, "--json")
    for path in [*store.glob("batches/batch-*"), *store.glob("batches/*/**")]:
        path.chmod(path.stat().st_mode | 0o200)
    answer = ended.json
    assert answer["result_digest"] == bases.digests["tree"]
    assert answer["reused"] > answer["executed"]
