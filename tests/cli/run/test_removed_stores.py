"""A task that removes the store of its batch."""

from __future__ import annotations

import pytest

from tests.cli.work.test_work import line, make_list
from tests.support.command_line import CommandLine

__all__ = ["line"]


# rm does not remove a directory if another process creates a file in it at that moment.
REMOVE = "until rm -rf .codebatch; do :; done"


@pytest.mark.parametrize("run", [REMOVE, f"{REMOVE}; kill $PPID", f"{REMOVE}; mkdir .codebatch"])
@pytest.mark.parametrize("at_once", [1, 2])
def test_run_reports_that_its_store_was_removed(line: CommandLine, run: str, at_once: int) -> None:
    until_gone = "while [ -d .codebatch/batches ]; do sleep 0.02; done"
    tasks = {"a": f"run = '{run}'", "b": "run = 'true'\nneeds = ['a']", "c": f"run = '{until_gone}'"}
    make_list(line, tasks, f"max_parallel = {at_once}")
    error = line("work", "run", "--json", status=4).error
    store = line.directory / ".codebatch"
    assert error["message"] == f"the store {store} was removed while it was in use"
    assert error["hint"].startswith("use --store or CODEBATCH_STORE to give a location")
