"""ruff as a project has configured it: `[tasks.lint.ruff] config = "project"`.

The configuration files above a file are a context of it (ruff_files.py). They are written beside it, so ruff finds them
as it does in the tree; where the tree has none at its root, an empty one stands there, so that none of the machine's or
the user's is found. Rules that look at other files are left out, for a file's neighbours are not all there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from codebatch.model.record import Severity
from codebatch_workers.api.protocols import MemoryDirectory
from codebatch_workers.lint.python.ruff import UNREADABLE, WITHOUT_SOURCES, Ruff, RuffFinding
from codebatch_workers.lint.python.ruff_files import CONTEXT, ruff_files_of
from codebatch_workers.lint.ruff_rules import SEVERITIES
from codebatch_workers.syntax.source import SourceFile

# isort asks which modules are the project's own; INP which directories are packages; TC too; A005 and N999 the path.
LOOKS_AT_OTHERS = ("I", "INP", "TC001", "TC002", "TC003")
DEFAULT_VERSION = "3.11"
"""The Python that this ruff takes for meant where nobody says which. It stands above the tree, for ruff looks there."""

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
    """ruff with the configuration files of a project."""

    def __init__(self, scratch: Path, memory: MemoryDirectory | None = None, *, heeds_notes: bool = True) -> None:
        super().__init__(["F"], scratch, memory, heeds_notes=heeds_notes)

    def arguments(self) -> list[str]:
        """What every call says before `--` and the names of files."""
        return [
            *("check", *WITHOUT_SOURCES, "--no-cache", "--no-respect-gitignore", "--force-exclude", "--quiet"),
            *("--no-fix", "--no-fix-only"),
            *("--output-format", "json", "--extend-select", UNREADABLE, "--ignore", ",".join(LOOKS_AT_OTHERS)),
        ]

    def beside(self, file: SourceFile) -> tuple[tuple[bytes, str], ...]:
        """The files that configure ruff for a file."""
        return ruff_files_of(file.contexts.get(CONTEXT, b""))

    def _ask(self, scratch: Path, files: Sequence[SourceFile]) -> Iterable[list[RuffFinding]]:
        (scratch / "pyproject.toml").write_text(f'[project]\nrequires-python = ">={DEFAULT_VERSION}"\n')
        return super()._ask(scratch, files)


def project_severity(code: str) -> Severity:
    """How bad a finding is of a rule that a project may have turned on."""
    if code in SEVERITIES:
        return SEVERITIES[code]
    return _SEVERITIES[max((prefix for prefix in _SEVERITIES if code.startswith(prefix)), key=len)]
