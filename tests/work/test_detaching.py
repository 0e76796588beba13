"""Running in the background: an error of the process that is to conduct the batch reaches the caller whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.application.stores import StorePlace
from codebatch.errors import BatchIncomplete
from codebatch.work import detaching
from codebatch.work.detaching import run_detached
from codebatch.work.listening import WorkListener
from codebatch.work.settings import WorkOptions

FAILS = (
    "import sys; print('a note', 'error: the disk is full', 'hint: free some', sep='\\n', file=sys.stderr); sys.exit(4)"
)


def test_the_error_and_hint_of_the_background_process_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detaching, "_MAIN", FAILS)
    (tmp_path / "work.toml").write_text('[tasks.a]\nrun = "true"\n')
    with pytest.raises(BatchIncomplete, match="was created but did not start: the disk is full") as raised:
        run_detached((tmp_path / "work.toml",), WorkOptions(), StorePlace(tmp_path / "store"), listener=WorkListener())
    assert raised.value.hint == "free some"
