"""Test that damage found after a signal is reported with the exit status of the signal, and not repaired."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.errors import Stopped, StoreCorrupt
from tests.support.inline_workers import InlineCrew, inline, run


def test_damage_found_after_a_signal_is_not_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a.txt").write_text("x\n")

    def refuse(*_: object) -> None:
        raise StoreCorrupt("it is truncated", hint="mend it")

    monkeypatch.setattr(InlineCrew, "exit_status", 143)
    monkeypatch.setattr("codebatch.coordinator.analysis.execution.merge_outputs", refuse)
    monkeypatch.setattr("codebatch.operations.runs.repair.repair_batch", lambda *_: pytest.fail("repaired"))
    with inline(), pytest.raises(Stopped, match="it is truncated") as stopped:
        run(tmp_path / "tree", tmp_path / "store")
    assert (stopped.value.exit_status, stopped.value.hint) == (143, "mend it")
