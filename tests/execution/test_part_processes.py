"""Parts as real processes in stores of their own, with a kill, and the loop of the help page in bash."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import psutil
import pytest

from tests.support.command_line import CommandLine, make_many, wait_until, write

FILES = 120
RULE = "[shard]\nfiles_average = 4\nfiles_min = 2\nfiles_max = 8\n"
PARTS = 4


@pytest.fixture
def machines(tmp_path: Path) -> list[CommandLine]:
    """Copies of a project in directories of their own, each with its own store."""
    make_many(tmp_path / "machine0" / "project", FILES)
    write(tmp_path / "machine0" / "project" / "codebatch.toml", RULE)
    for number in range(1, 5):
        shutil.copytree(tmp_path / "machine0" / "project", tmp_path / f"machine{number}" / "project")
    return [CommandLine(tmp_path / f"machine{number}" / "project") for number in range(5)]


def test_parts_of_three_stores_with_a_kill_are_joined_in_a_fourth(machines: list[CommandLine], tmp_path: Path) -> None:
    *workers, joining, plain = machines
    parts = tmp_path / "parts"
    parts.mkdir()
    killed = workers[0].start("run", "--part", "1/4", ".", "-j", "1", "--part-output", str(parts))
    store = workers[0].directory / ".codebatch"
    wait_until(lambda: any(store.glob("batches/batch-*/outcomes/[0-9a-f]*")), "the part has a result")
    children = psutil.Process(killed.pid).children(recursive=True)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    psutil.wait_procs(children, timeout=60)
    assert list(parts.iterdir()) == []
    for number in range(1, PARTS + 1):
        worker = workers[(number - 1) % 3]
        answer = worker("run", "--part", f"{number}/{PARTS}", ".", "--part-output", str(parts), "--json").json
        assert (answer["failures"], answer["part"]) == (0, f"{number}/{PARTS}")
    assert len(list(parts.iterdir())) == PARTS
    joined = joining("join", *sorted(map(str, parts.iterdir())), ".", "--strict", "--json").json
    expected = plain("run", ".", "--json").json
    assert (joined["result_digest"], joined["executed"]) == (expected["result_digest"], 0)


LOOP = """
set -eu
mkdir ../parts
parts=$(realpath ../parts)
run_part() { (cd ../../machine${1%/*}/project && codebatch run . -q --part $1 --part-output "$parts"); }
for part in 1/3 2/3 3/3; do run_part $part; done     # each is a job of a matrix
rm ../parts/*-2-of-3-*.cbpart                        # an upload was lost
test "$(codebatch join -q --missing ../parts/*.cbpart .)" = 2/3
status=0; codebatch join -q --strict ../parts/*.cbpart . || status=$?
test $status = 3
for part in $(codebatch join -q --missing ../parts/*.cbpart .); do run_part $part; done
codebatch join -q --strict ../parts/*.cbpart .
codebatch status --json | grep result_digest > ../joined
codebatch run -q --again .
codebatch status --json | grep result_digest > ../plain
cmp ../joined ../plain
"""


def test_a_matrix_as_a_loop_in_bash(machines: list[CommandLine]) -> None:
    machines[4].shell(LOOP)
