"""Modules of an analysed tree are never imported, whatever the module search path of Python contains."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.system.processes.import_path import keep_tree_off_path, safe_entries
from codebatch.system.processes.python_start import python_start
from tests.faults.planted_modules import (
    IMPORTED_BY_CODEBATCH,
    LOADED_BY_PYTHON,
    MAIN,
    imported,
    plant_modules,
    run_console_script,
    run_module,
    run_planted,
)
from tests.support.command_line import CommandLine, write

ALL = (*LOADED_BY_PYTHON, *IMPORTED_BY_CODEBATCH)
PYTHON_PATHS = ["", ".", ":.", "TREE", "TREE/lib:.."]
SHARDS = "[shard]\nfiles_average = 2\nfiles_min = 2\nfiles_max = 2\n"


@pytest.fixture
def markers(tmp_path: Path) -> Path:
    """The directory in which imported modules write files."""
    return tmp_path / "markers"


@pytest.fixture
def line(tmp_path: Path) -> CommandLine:
    """The command line in a tree with a git repository and a few files."""
    tree = tmp_path / "tree"
    for number in range(6):
        write(tree / "source" / f"m{number}.txt", f"{number}\n")
    line = CommandLine(tree, {"TMPDIR": str(tmp_path)})
    line.shell("git init -q .")
    return line


def plant(line: CommandLine, markers: Path, names: tuple[str, ...] = ALL) -> None:
    for directory in (line.directory, line.directory / "lib", line.directory / "source"):
        plant_modules(directory, markers, names)


@pytest.mark.parametrize("python_path", PYTHON_PATHS)
def test_children_of_each_command_import_nothing_of_the_tree(
    line: CommandLine, markers: Path, python_path: str
) -> None:
    plant(line, markers)
    path = python_path.replace("TREE", str(line.directory))
    write(line.directory / "codebatch.toml", SHARDS + "[tasks.count]\npython = 'count.py:task'\n")
    write(
        line.directory / "count.py",
        "import os\nfrom codebatch_workers.api import Metric\n"
        "def task(file):\n"
        "    yield Metric(path=file.path.decode(), metric='m', value=len(os.environ.get('PYTHONPATH', '')))\n",
    )
    ran = run_planted(line, path, "run", ".", "-j", "2", "--json", "--pipeline", "full")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["status"] == "COMPLETED"
    values = line("query", "outputs", "--task", "count", "--limit", "1", "--json").records
    assert values[0]["value"] == len(path), "programs of tasks get PYTHONPATH"
    write(line.directory / "source" / "new.py", "x = (\n")
    ran = run_planted(line, path, "run", ".", "--on", "local:1", "--json")
    assert ran.returncode == 0, ran.stderr
    checked = run_planted(line, path, "engine", "check", "--on", "local:1", "--json")
    assert json.loads(checked.stdout)["processes"][0]["problem"] == ""
    assert imported(markers) == []


@pytest.mark.parametrize("python_path", PYTHON_PATHS)
def test_detached_runs_import_nothing_of_the_tree(line: CommandLine, markers: Path, python_path: str) -> None:
    plant(line, markers)
    path = python_path.replace("TREE", str(line.directory))
    write(line.directory / "work.toml", '[tasks.a]\nrun = "printf %s \\"$PYTHONPATH\\""\n')
    started = run_planted(line, path, "work", "run", "--detach", "--quiet")
    assert started.returncode == 0, started.stderr
    line("follow", "--quiet")
    assert line("work", "log", "a").text.strip() == path, "commands get PYTHONPATH"
    assert imported(markers) == []


def test_the_server_imports_nothing_of_the_tree(line: CommandLine, markers: Path) -> None:
    line("run", ".", "--quiet")
    write(line.directory / "source" / "new.py", "x = (\n")
    line("run", ".", "--quiet")
    plant(line, markers)
    command = [sys.executable, "-I", "-c", MAIN, ".", "serve"]
    server = subprocess.Popen(command, cwd=line.directory, env=line.environment, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        url, _, token = server.stdout.readline().decode().strip().partition("/#token=")
        api = f"{url}/api/v1/batches/latest"
        headers = {"Authorization": f"Bearer {token}", "Origin": url, "Content-Type": "application/json"}
        documents = []
        for address, body in [(f"{api}/regressions", None), (f"{api}/report", b"{}")]:
            with urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=120) as response:
                documents.append(json.load(response))
    finally:
        server.kill()
        server.communicate()
    assert documents[0]["count"] == 1
    assert documents[1]["path"].startswith("/report/")
    assert imported(markers) == []


@pytest.mark.parametrize("run", [run_console_script, run_module])
@pytest.mark.parametrize("python_path", PYTHON_PATHS)
def test_the_main_process_imports_no_dependency_from_the_tree(
    line: CommandLine,
    markers: Path,
    python_path: str,
    run: Callable[..., subprocess.CompletedProcess[bytes]],
) -> None:
    """What Python loads before codebatch begins is not planted here (SPEC.md "Threat model")."""
    plant(line, markers, IMPORTED_BY_CODEBATCH)
    path = python_path.replace("TREE", str(line.directory))
    for words in (["run", "source", "--quiet"], ["findings"], ["--store", ".codebatch", "errors"]):
        ran = run(line, path, *words)
        assert ran.returncode in (0, 3), ran.stderr
    assert imported(markers) == []


def test_a_pth_file_that_names_the_tree_has_no_effect(line: CommandLine, markers: Path, tmp_path: Path) -> None:
    """A virtual environment in which the tree is installed as editable. Python itself loads `sitecustomize`."""
    plant(line, markers, ("sitecustomize", "usercustomize", *IMPORTED_BY_CODEBATCH))
    for name in ("click", "msgspec", "zstandard"):
        (line.directory / f"{name}.py").unlink()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True, timeout=120)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    write(
        site / "a.pth", f"{line.directory}\n" + "".join(f"{entry}\n" for entry in sys.path if "site-packages" in entry)
    )
    own = Path(shutil.which("codebatch", path=line.environment["PATH"]) or "").resolve().parents[2]
    write(site / "b.pth", f"{own}\n{own / 'workers'}\n")
    process = subprocess.Popen(
        [tmp_path / "venv" / "bin" / "python", "-I", "-m", "codebatch", "run", ".", "-j", "2", "--json"],
        cwd=line.directory,
        env=line.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert {path.name for path in markers.iterdir()} == {f"{process.pid}-sitecustomize"}


def test_programs_of_the_tree_are_not_found_by_relative_entries_of_the_path(line: CommandLine, markers: Path) -> None:
    for name in ("git", "ruff"):
        write(line.directory / name, f"#!/bin/sh\ntouch {markers}\n").chmod(0o755)
    line.environment["PATH"] = f".::{line.environment['PATH']}:lib"
    write(line.directory / "a.py", "import os\n")
    assert line("run", ".", "--json").json["files"] == 9
    assert not markers.exists()


@pytest.mark.parametrize(
    ("entry", "is_safe"),
    [
        ("", False),
        (".", False),
        ("lib", False),
        ("../lib", False),
        ("/home/me/tree", False),
        ("/home/me/tree/lib", False),
        ("/home/me", False),  # `import tree` would import the tree.
        ("/", False),
        ("/home/me/tree-of-others", True),
        ("/home/me/lib", True),
        ("/home/here", False),
        ("/home/here/lib", True),
        ("/home/me/tree/.venv/lib/python3.11/site-packages", True),
        ("/home/me/tree/.venv/lib/python3.11/site-packages/more", False),
        ("/usr/lib/python3.11", True),
    ],
)
def test_only_installed_and_unrelated_directories_are_safe(entry: str, is_safe: bool) -> None:
    installed = ["/usr/lib/python3.11", "/home/me/tree/.venv/lib/python3.11/site-packages"]
    assert safe_entries([entry], ["/home/me/tree"], installed, "/home/here") == [entry] * is_safe


def test_links_to_the_tree_are_followed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "lib").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tree)
    entries = [str(tmp_path / "link" / "lib"), str(tmp_path / "other")]
    assert safe_entries(entries, [str(tree)], [], "/") == entries[1:]
    assert safe_entries(entries, [str(tmp_path / "link")], [], "/") == entries[1:]


def test_trees_that_the_arguments_name_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree is named by its path, as a value of an option, by its store, or by the current directory."""
    trees = [write(tmp_path / name / ".git" / "x", "").parents[1] for name in "abcd"]
    entries = [str(tree / "lib") for tree in trees]
    monkeypatch.chdir(trees[3])
    monkeypatch.setenv("CODEBATCH_STORE", str(trees[2]))
    monkeypatch.setattr(sys, "path", [*entries, str(tmp_path / "other" / "lib")])
    keep_tree_off_path(["run", str(trees[0]), f"--store={trees[1]}", "no-directory"])
    assert sys.path == [str(tmp_path / "other" / "lib")]


def test_a_removed_current_directory_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setattr(sys, "path", [*sys.path])
    keep_tree_off_path([])
    assert python_start("json.tool", environment={}).arguments[-2] == "json.tool"
    os.chdir("/")


@pytest.mark.parametrize(
    ("name", "value", "is_read"),
    [
        ("PYTHONPATH", "/usr", False),
        ("PYTHONSTARTUP", "/usr/x.py", False),
        ("PYTHONWARNINGS", "error::tree.Warning", False),
        ("PYTHONHOME", "/opt/python", True),
        ("PYTHONHOME", ".", False),
        ("PYTHONPYCACHEPREFIX", "TREE/cache", False),
        ("PYTHONUSERBASE", "TREE", False),
        ("PYTHONHASHSEED", "7", True),
        ("HOME", ".", True),
    ],
)
def test_variables_that_name_code_are_set_after_the_start(name: str, value: str, is_read: bool, tmp_path: Path) -> None:
    value = value.replace("TREE", str(tmp_path))
    start = python_start("m", environment={name: value}, trees=[str(tmp_path)])
    assert start.environment == ({name: value} if is_read else {})
    assert json.loads(start.arguments[-1])["environment"] == ({} if is_read else {name: value})
    isolated = python_start("m", environment=None).arguments
    assert "-I" in isolated
    assert "{" not in "".join(isolated), "Parsl formats command lines"
