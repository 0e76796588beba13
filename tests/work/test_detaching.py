"""Test of running in the background: an error of the background process reaches the caller completely."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from codebatch.errors import BatchIncomplete
from codebatch.operations.project.stores import StoreLocator
from codebatch.system.processes.python_start import PythonStart
from codebatch.work.control import detached_run
from codebatch.work.control.detached_run import run_detached
from codebatch.work.control.listener import WorkListener
from codebatch.work.definition.settings import WorkOptions

FAILS = (
    "import sys; print('a note', 'error: the disk is full', 'hint: free some', sep='\\n', file=sys.stderr); sys.exit(4)"
)


def test_the_error_and_hint_of_the_background_process_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        detached_run, "python_start", lambda *_, **__: PythonStart([sys.executable, "-c", FAILS], dict(os.environ))
    )
    (tmp_path / "work.toml").write_text('[tasks.a]\nrun = "true"\n')
    with pytest.raises(BatchIncomplete, match="was created but did not start: the disk is full") as raised:
        run_detached(
            (tmp_path / "work.toml",), WorkOptions(), StoreLocator(tmp_path / "store"), listener=WorkListener()
        )
    assert raised.value.hint == "free some"
