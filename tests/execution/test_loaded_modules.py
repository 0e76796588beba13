"""Tests of modules that a command must not import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def loaded_modules_after(code: str, names: str) -> list[str]:
    """Run code in a new process. Return the names of the given modules that are loaded afterwards."""
    script = f"{code}; import sys; print(*[name for name in {names.split()!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split() if done.stdout.strip() else []


def test_planned_batch_runs_without_snapshot_and_planning_modules(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a.py").write_text("import os\n")
    arguments = ["--store", str(tmp_path / "store"), "-j", "1", "--quiet"]
    modules = ("runs.resume", "project.project_snapshot", "runs.planning")
    names = " ".join(f"codebatch.operations.{module}" for module in modules)

    def loaded(*words: str) -> list[str]:
        main = f"import os, sys; sys.argv[1:] = {[*words, *arguments]!r}; os._exit = lambda status: None"
        code = f"{main}; from codebatch.__main__ import main\ntry: main()\nexcept SystemExit: pass\nprint(); pass"
        return loaded_modules_after(code, names)

    assert loaded("run", str(tmp_path / "tree")) == names.split()
    assert loaded("run", "--batch", "latest") == ["codebatch.operations.runs.resume"]
