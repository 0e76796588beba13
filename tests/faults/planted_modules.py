"""A tree with modules that have the names of codebatch, its dependencies and the standard library.

Each planted module writes a file `PID-NAME` when a process imports it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.command_line import SCRIPT, CommandLine, write

LOADED_BY_PYTHON = (
    "codebatch",
    "contextlib",
    "json",
    "re",
    "runpy",
    "site",
    "sitecustomize",
    "typing",
    "usercustomize",
)
"""Names that Python or the console script may load before codebatch begins, if PYTHONPATH names the tree."""

IMPORTED_BY_CODEBATCH = (
    "anyio", "click", "codebatch_workers", "dask", "distributed", "duckdb", "lmdb", "msgspec", "parsl", "regex",
    "starlette", "tomli", "tree_sitter", "uvicorn", "websockets", "yaml", "zstandard",
)  # fmt: skip

ENTRY_POINTS = (
    "[codebatch.tasks]\nlint = click:planted\nplanted = click:planted\n[codebatch.engines]\nlocal = click:planted\n"
)

MAIN = """
import os, sys
os.environ["PYTHONPATH"] = sys.argv.pop(1)
from codebatch.__main__ import main
main()
"""
"""A main process that is safe in any case. Its children get PYTHONPATH."""


def plant_modules(tree: Path, markers: Path, names: tuple[str, ...]) -> None:
    """Write the modules to a tree. `markers` is the directory in which they write files."""
    markers.mkdir(exist_ok=True)
    for name in names:
        code = f"import os\nopen(os.path.join({str(markers)!r}, f'{{os.getpid()}}-{name}'), 'w').close()\n"
        if name in ("codebatch_workers", "starlette", "dask"):
            write(tree / name / "__init__.py", code)
            write(tree / name / "__main__.py", code)
        else:
            write(tree / f"{name}.py", code)
    write(tree / "planted-1.0.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    write(tree / "planted-1.0.dist-info" / "entry_points.txt", ENTRY_POINTS)


def run_planted(line: CommandLine, python_path: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command from a safe main process, whose children get PYTHONPATH."""
    command = [sys.executable, "-I", "-c", MAIN, python_path, *words]
    return subprocess.run(
        command, cwd=line.directory, env=line.environment, capture_output=True, check=False, timeout=120
    )


def run_console_script(line: CommandLine, python_path: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run the console script with PYTHONPATH."""
    environment = {**line.environment, "PYTHONPATH": python_path}
    return subprocess.run(
        [SCRIPT, *words], cwd=line.directory, env=environment, capture_output=True, check=False, timeout=120
    )


def run_module(line: CommandLine, python_path: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m codebatch` with PYTHONPATH. Python puts the current directory on the path."""
    environment = {**line.environment, "PYTHONPATH": python_path}
    command = [sys.executable, "-m", "codebatch", *words]
    return subprocess.run(command, cwd=line.directory, env=environment, capture_output=True, check=False, timeout=120)


def imported(markers: Path) -> list[str]:
    """Return the names of the planted modules that a process imported."""
    return sorted(path.name.partition("-")[2] for path in markers.iterdir())
