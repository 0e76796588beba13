"""ruff with the configuration of a project: `[tasks.lint.ruff] config = "project"`.

The configuration files above a file are one of its contexts (ruff_files.py). They are written above the file, at the
same relative paths as in the tree, so that ruff finds them. If the tree has none at its root, an empty one is written
there. Without it, ruff could find a configuration of the machine or user. Rules that read other files are excluded,
because not all of these files are present.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from codebatch.model.record import Severity
from codebatch_workers.api.protocols import MemoryDirectory
from codebatch_workers.lint.python.ruff import UNREADABLE_CODE, WITHOUT_SOURCES_ARGUMENTS, RuffFinding, RuffRunner
from codebatch_workers.lint.python.ruff_files import RUFF_FILES_CONTEXT, decode_ruff_files
from codebatch_workers.lint.ruff_rules import SEVERITY_BY_CODE
from codebatch_workers.syntax.source import SourceFile

# Rules that depend on other files. isort (I) and TC depend on the modules of the project, and INP on which directories
# are packages. A005 and N999 are not listed, because they depend only on the path.
CODES_READING_OTHER_FILES = ("I", "INP", "TC001", "TC002", "TC003")
DEFAULT_PYTHON_VERSION = "3.11"
"""The version of Python that ruff assumes if the project configures none.

The version is written to a file above the tree. ruff reads this file last.
"""

# Severities by prefix of the code, for rules that the pinned list does not contain. The longest prefix wins.
_SEVERITY_BY_PREFIX: Mapping[str, Severity] = {
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


class ProjectRuffRunner(RuffRunner):
    """A runner of ruff with the configuration files of a project."""

    def __init__(self, scratch: Path, memory: MemoryDirectory | None = None, *, respects_noqa: bool = True) -> None:
        super().__init__(["F"], scratch, memory, respects_noqa=respects_noqa)

    def command_arguments(self) -> list[str]:
        """Return the arguments that every call has before `--` and the file names."""
        return [
            *(
                "check",
                *WITHOUT_SOURCES_ARGUMENTS,
                "--no-cache",
                "--no-respect-gitignore",
                "--force-exclude",
                "--quiet",
            ),
            *("--no-fix", "--no-fix-only"),
            *(
                "--output-format",
                "json",
                "--extend-select",
                UNREADABLE_CODE,
                "--ignore",
                ",".join(CODES_READING_OTHER_FILES),
            ),
        ]

    def companion_texts(self, file: SourceFile) -> tuple[tuple[bytes, str], ...]:
        """Return the configuration files of ruff that apply to a file."""
        return decode_ruff_files(file.contexts.get(RUFF_FILES_CONTEXT, b""))

    def _run_ruff(self, scratch: Path, files: Sequence[SourceFile]) -> Iterable[list[RuffFinding]]:
        (scratch / "pyproject.toml").write_text(f'[project]\nrequires-python = ">={DEFAULT_PYTHON_VERSION}"\n')
        return super()._run_ruff(scratch, files)


def project_severity(code: str) -> Severity:
    """Return the severity of any rule of ruff, because a project can enable every rule."""
    if code in SEVERITY_BY_CODE:
        return SEVERITY_BY_CODE[code]
    return _SEVERITY_BY_PREFIX[max((prefix for prefix in _SEVERITY_BY_PREFIX if code.startswith(prefix)), key=len)]
