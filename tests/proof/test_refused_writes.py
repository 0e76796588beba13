"""ENOSPC and EIO at each write of a run: it ends with an error, and the next run completes it to the same bytes."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from tests.proof.case import Case, run_refused
from tests.proof.test_crash_prefixes import FILES, RULE, copy_site
from tests.proof.world import Refusal
from tests.support.command_line import CommandLine, make_many
from tests.support.invariants import check_batch, merged
from tests.support.worker_processes import open_latest

REAL_REFUSALS = int(os.environ.get("CODEBATCH_PROOF_REFUSALS", "8"))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["ENOSPC", "EIO"])
@pytest.mark.parametrize("is_lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("changed", [None, 2], ids=["anew", "beside an older batch"])
def test_simulated_run_with_a_refused_write_is_completed_by_the_next(
    number: int, is_lasting: bool, changed: int | None
) -> None:
    case = Case(
        seed=1,
        items=7 if changed is None else 4,
        failing=1,
        healing=0,
        killing=0,
        shard_items=3,
        jobs=2,
        coordinators=1,
        faults=(),
        changed=changed,
    )
    writes = len(run_refused(case))
    assert writes > 60
    # Each write is refused in one of the four ways: once or from then on, with one error or the other.
    for at in range(2 * is_lasting + (number == errno.EIO), writes, 4):
        run_refused(case, Refusal(at=at, number=number, is_lasting=is_lasting))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["ENOSPC", "EIO"])
def test_real_run_with_a_refused_write_is_completed_by_the_next(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, number: int
) -> None:
    make_many(tmp_path / "many", FILES)
    (tmp_path / "codebatch.toml").write_text(RULE, encoding="utf-8")
    site = tmp_path_factory.mktemp("outside") / "site"  # Workers import nothing of the tree.
    copy_site(site)
    codebatch = CommandLine(tmp_path, {"PYTHONPATH": str(site)})
    undisturbed = CommandLine(tmp_path)

    def run(at: int, store: str) -> bool:
        """Return whether a run whose write `at` was refused succeeded. If not, check that it reported the refusal."""
        (site / "refuse").write_text(f"{number} {at}", encoding="ascii")
        (site / "writes").unlink(missing_ok=True)
        process = codebatch.start("run", "many", "--store", store, "-j", "2", "--json", "-q")
        stdout, stderr = process.communicate(timeout=60)
        ended = codebatch.check("run", process.returncode, stdout, stderr, process.returncode)
        if process.returncode:
            assert ended.status == 4, ended.notes
            assert ended.error["code"] == "store_unwritable", ended.notes
        return process.returncode == 0

    assert run(0, "undisturbed")
    serial = merged(open_latest(tmp_path / "undisturbed"))
    writes = (site / "writes").stat().st_size
    refused = 0
    # The two errors take alternate writes, because the simulated run above tries both at many more writes.
    parts = range(number == errno.EIO, REAL_REFUSALS + 1, 2)
    for at in dict.fromkeys(1 + round(part * (writes - 1) / REAL_REFUSALS) for part in parts):
        store = f"store-{at}"
        refused += not run(at, store)
        undisturbed("run", "many", "--store", store, "-q")
        check_batch(open_latest(tmp_path / store), serial)
        shutil.rmtree(tmp_path / store)
    assert refused > 0
