"""Settings of the suite: CI runs README's command, and `conftest.py` and pyproject.toml make it fast."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from codebatch.system.host import usable_cores
from tests import conftest

ROOT = Path(__file__).parent.parent
_PROBE = """
import os, tempfile

def test_place(tmp_path, worker_id):
    place = os.environ["TMPDIR"]
    assert tempfile.gettempdir() == place and str(tmp_path).startswith(place), (place, tmp_path)
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ
    with open(os.environ["REPORT"], "a") as report:
        print(place, os.environ["PYTEST_XDIST_WORKER_COUNT"], file=report)
    if os.environ["END"]:
        os.kill(os.getppid(), int(os.environ["END"]))
"""


def test_ci_runs_the_test_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^python3 -m venv .* && \.venv/bin/pytest .*$", readme, re.MULTILINE)
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert f"\nunset PYTEST_ADDOPTS PYTEST_XDIST_AUTO_NUM_WORKERS TMPDIR\n{command} || failed=1\n" in script


@pytest.mark.slow
@pytest.mark.parametrize("signal_number", ["", "9"])
def test_temporary_files_of_several_processes_are_in_memory_and_do_not_stay(tmp_path: Path, signal_number: str) -> None:
    """Run pytest in pytest. In the second case, a test kills the process that started the workers."""
    if not conftest._has_room("/dev/shm"):
        pytest.skip("memory is too short for temporary files")
    (tmp_path / "test_probe.py").write_text(_PROBE)
    names = ("TMPDIR", "PYTEST_ADDOPTS", "PYTEST_XDIST_AUTO_NUM_WORKERS", "PYTEST_XDIST_WORKER")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment |= {"REPORT": str(tmp_path / "report"), "END": signal_number, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-n", "auto"]
    with subprocess.Popen(
        [*command, f"--rootdir={ROOT}", str(tmp_path / "test_probe.py")],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        output, _ = process.communicate()  # The shell that removes the files keeps the pipe open until it ends.
    assert process.returncode == (-int(signal_number) if signal_number else 0), output
    place, processes = (tmp_path / "report").read_text().split()
    assert place.startswith("/dev/shm/")
    assert int(processes) == usable_cores() * 3 // 2
    assert not Path(place).exists()


def test_mutants_are_tested_by_folders_that_exist() -> None:
    tree = ast.parse((ROOT / ".ci" / "mutants").read_text(encoding="utf-8"))
    (wider,) = (
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "WIDER"
    )
    folders: dict[str, list[str]] = ast.literal_eval(wider)
    assert [key for key in folders if not (ROOT / key).exists()] == []
    tested = {folder for names in folders.values() for folder in names}
    assert [folder for folder in tested if not any((ROOT / "tests" / folder).rglob("test_*.py"))] == []
    products = {path.name for top in ("codebatch", "workers/codebatch_workers") for path in (ROOT / top).iterdir()}
    unused = {path.parent.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").rglob("*/test_*.py")}
    assert unused - {folder.split("/")[0] for folder in tested} - products - {"bad_input", "signal", "oracles"} == set()
