"""ruff as a project has configured it: `[tasks.lint.ruff] config = "project"`.

The project's configuration files are part of the task's configuration, hence of its key (ruff_files.py). They are
written beside the unit's files, so ruff finds them as it does in the tree; where the tree has none at its root, an
empty one stands there, so that none of the machine's or the user's is found. Rules that look at other files are left
out, for a file's neighbours are not all there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from codebatch.model.record import Diagnostic, Severity
from codebatch_workers.api.protocols import MemoryDirectory
from codebatch_workers.lint.ruff import SYNTAX_ERROR, UNREADABLE, Finding, Ruff
from codebatch_workers.lint.ruff_rules import SEVERITIES
from codebatch_workers.syntax.source import SourceFile

# isort asks which modules are the project's own; INP which directories are packages; TC too; A005 and N999 the path.
LOOKS_AT_OTHERS = ("I", "INP", "TC001", "TC002", "TC003")
_ROOT_NAMES = ("ruff.toml", ".ruff.toml", "pyproject.toml")
# By the beginning of a code, the longest that fits: what the pinned list does not know.
_SEVERITIES: Mapping[str, Severity] = {
    "": "info",
    "F": "warning",
    "B": "warning",
    "S": "warning",
    "PLE": "error",
    "PLW": "warning",
    "ASYNC": "warning",
    "BLE": "warning",
    "DTZ": "warning",
    "RUF": "warning",
    "E7": "warning",
    "E9": "error",
    **dict.fromkeys(("E", "W", "D", "I", "Q", "N", "C", "COM", "ISC", "SIM", "UP", "ANN", "PT", "ERA", "RET"), "hint"),
}


class ProjectRuff(Ruff):
    """ruff with the configuration files of a project, by path."""

    def __init__(self, files: Mapping[str, str], scratch: Path, memory: MemoryDirectory | None = None) -> None:
        super().__init__(["F"], scratch, memory)
        self._files = dict(files)
        if not any(name in files for name in _ROOT_NAMES):
            self._files["ruff.toml"] = ""

    def check(self, files: Sequence[SourceFile]) -> list[list[Diagnostic]]:
        """As Ruff, without the syntax errors, which `parse` reports."""
        return [[found for found in answer if found.code != SYNTAX_ERROR] for answer in super().check(files)]

    def arguments(self) -> list[str]:
        """What every call says before the names of files."""
        return [
            *(
                "check",
                "--no-cache",
                "--no-respect-gitignore",
                "--force-exclude",
                "--quiet",
                "--no-fix",
                "--no-fix-only",
            ),
            *("--output-format", "json", "--extend-select", UNREADABLE, "--ignore", ",".join(LOOKS_AT_OTHERS), "--"),
        ]

    def _call(self, directory: bytes, names: Sequence[bytes]) -> list[Finding]:
        for path, text in self._files.items():
            target = Path(os.fsdecode(directory), path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        return super()._call(directory, names)


def project_severity(code: str) -> Severity:
    """How bad a finding is of a rule that a project may have turned on."""
    if code in SEVERITIES:
        return SEVERITIES[code]
    return _SEVERITIES[max((prefix for prefix in _SEVERITIES if code.startswith(prefix)), key=len)]
