"""What processes of ours do not load, and that nobody misses it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import pytest

from codebatch.system.processes.quick_start import import_msgspec

if TYPE_CHECKING:
    from _typeshed import TraceFunction


def loaded_behind(code: str, names: str) -> list[str]:
    """Which of some modules a process has loaded that ran some code."""
    told = f"{code}; import sys; print(*[name for name in {names.split()!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()[-1].split() if ran.stdout.strip() else []


@pytest.mark.skipif(sys.version_info < (3, 11), reason="typing of Python 3.10 has not what msgspec needs")
def test_msgspec_is_imported_without_what_typing_has_and_tasks_can_import_it_still() -> None:
    pytest.importorskip("typing_extensions")
    ours = "from codebatch.system.processes.quick_start import import_msgspec; import_msgspec()"
    names = "msgspec typing_extensions inspect"
    assert loaded_behind(ours, names) == ["msgspec"]
    assert loaded_behind(f"{ours}; import typing_extensions", names) == names.split()


def test_where_msgspec_is_there_nothing_is_hidden_from_who_imports_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    import_module("msgspec")
    monkeypatch.delitem(sys.modules, "typing_extensions", raising=False)
    hidden: list[bool] = []

    def look(_frame: FrameType, _event: str, _argument: object) -> TraceFunction:
        hidden.append("typing_extensions" in sys.modules)
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        import_msgspec()
    finally:
        sys.settrace(before)
    assert hidden
    assert not any(hidden)


def test_a_batch_that_is_planned_is_run_without_what_freezes_and_plans(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a.py").write_text("import os\n")
    arguments = ["--store", str(tmp_path / "store"), "-j", "1", "--quiet"]
    modules = ("runs.resume", "project.project_snapshot", "runs.planning")
    names = " ".join(f"codebatch.operations.{module}" for module in modules)

    def loaded(*words: str) -> list[str]:
        main = f"import os, sys; sys.argv[1:] = {[*words, *arguments]!r}; os._exit = lambda status: None"
        code = f"{main}; from codebatch.__main__ import main\ntry: main()\nexcept SystemExit: pass\nprint(); pass"
        return loaded_behind(code, names)

    assert loaded("run", str(tmp_path / "tree")) == names.split()
    assert loaded("run", "--batch", "latest") == ["codebatch.operations.runs.resume"]
