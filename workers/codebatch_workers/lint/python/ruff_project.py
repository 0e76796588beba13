"""ruff with the configuration of a project: `[tasks.lint.ruff] config = "project"`.

The configuration files above a file are one of its contexts (ruff_files.py). They are written near the file, so ruff
finds them as in the tree. If the tree has none at its root, an empty one is written, so that ruff does not find
configuration of the machine or user. Rules that look at other files are excluded, because not all neighbors of a file
are present.
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

# isort (I) and TC depend on the project's own modules, INP on the directories that are packages. A005 and N999 depend
# only on the path.
LOOKS_AT_OTHERS = ("I", "INP", "TC001", "TC002", "TC003")
DEFAULT_VERSION = "3.11"
"""The version of Python that ruff assumes if none is configured.

It is written above the tree, where ruff looks last.
"""

# Severities by prefix of the code; the longest prefix wins. They apply to rules that the pinned list does not contain.
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
    """A runner of ruff with the configuration files of a project."""

    def __init__(self, scratch: Path, memory: MemoryDirectory | None = None, *, respects_noqa: bool = True) -> None:
        super().__init__(["F"], scratch, memory, respects_noqa=respects_noqa)

    def arguments(self) -> list[str]:
        """Return the arguments of every call before `--` and the file names."""
        return [
            *("check", *WITHOUT_SOURCES, "--no-cache", "--no-respect-gitignore", "--force-exclude", "--quiet"),
            *("--no-fix", "--no-fix-only"),
            *("--output-format", "json", "--extend-select", UNREADABLE, "--ignore", ",".join(LOOKS_AT_OTHERS)),
        ]

    def companion_files(self, file: SourceFile) -> tuple[tuple[bytes, str], ...]:
        """Return the files that configure ruff for a file."""
        return ruff_files_of(file.contexts.get(CONTEXT, b""))

    def _run(self, scratch: Path, files: Sequence[SourceFile]) -> Iterable[list[RuffFinding]]:
        (scratch / "pyproject.toml").write_text(f'[project]\nrequires-python = ">={DEFAULT_VERSION}"\n')
        return super()._run(scratch, files)


def project_severity(code: str) -> Severity:
    """Return the severity of a rule that a project can have enabled."""
    if code in SEVERITIES:
        return SEVERITIES[code]
    return _SEVERITIES[max((prefix for prefix in _SEVERITIES if code.startswith(prefix)), key=len)]
