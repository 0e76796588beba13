"""Reuse of the results of command tasks: a wrapper program logs its calls, outside of the directory of the call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, write

FILES = 300
LINTER = """#!/bin/sh
[ "$1" = --version ] && { echo version >> "$CALLS"; cat "${0%/*}/version-output"; exit; }
echo "$*" >> "$CALLS"
for file; do echo "$file:1:1: error: bad"; done
exit "$(cat "${0%/*}/status")"
"""
TABLE = """
[tasks.check]
command = ["tools/linter", "{files}"]
match = ["*.txt"]
records = "gcc"
config_files = ["*.json"]
link = ["node_modules"]
lock = ["package-lock.json"]
exit_ok = [0, 1]
env = {CALLS = "CALLS_FILE"}

[tasks.other]
command = ["tools/linter", "{files}"]
match = ["*.none"]
records = "gcc"
env = {CALLS = "CALLS_FILE.other"}

[pipelines.ci]
tasks = ["check", "other"]
default = true
"""
PRINTER = """#!/bin/sh
[ "$1" = --version ] && { echo 1; exit; }
for file; do echo "$file:1:1: error: one"; done
"""
ELSEWHERE = """
[tasks.check]
command = ["PROGRAM", "{files}"]
match = ["*.txt"]
records = "gcc"
[pipelines.ci]
tasks = ["check"]
default = true
"""


class Linted:
    """A project with 300 files that a linter checks."""

    def __init__(self, codebatch: CommandLine, tmp_path: Path) -> None:
        self.codebatch = codebatch
        self.root = codebatch.directory
        self._calls = tmp_path.with_name(tmp_path.name + "-calls")
        self._calls.mkdir()
        write(self.root / "tools/linter", LINTER).chmod(0o755)
        write(self.root / "tools/version-output", "linter 1.0\n")
        write(self.root / "tools/status", "1")
        write(self.root / "package-lock.json", "{}")
        write(self.root / "node_modules/plugin.js", "")
        write(self.root / ".gitignore", "tools/\nnode_modules/\npackage-lock.json\n")
        write(self.root / "style.json", "{}")
        self.configure(TABLE)

    def configure(self, tables: str) -> None:
        """Write the configuration."""
        write(self.root / "codebatch.toml", tables.replace("CALLS_FILE", str(self._calls / "log")))

    def write_files(self, number: int, ending: str) -> None:
        """Write files in several directories."""
        for index in range(number):
            write(self.root / f"d{index % 9}/f{index}.{ending}", f"{index}\n")

    def run(self, *, status: int = 0) -> list[str]:
        """Run, and return the calls without those for the version: for each, the arguments."""
        self.codebatch("run", status=status)
        calls = Counter[str]()
        for log in self._calls.iterdir():
            calls.update(log.read_text().splitlines())
            log.unlink()
        assert calls.pop("version", 0) == self.versions
        return list(calls.elements())

    versions = 2
    """The number of calls for the version in each run: one for each of the two tasks."""


@pytest.fixture
def linted(codebatch: CommandLine, tmp_path: Path) -> Linted:
    """A project with a linter and 300 files, which have been checked."""
    project = Linted(codebatch, tmp_path)
    project.write_files(FILES, "txt")
    assert sum(len(call.split()) for call in project.run()) == FILES
    return project


def test_only_changed_files_are_checked_again(linted: Linted) -> None:
    assert linted.run() == []
    write(linted.root / "d7/f7.txt", "changed\n")
    assert linted.run() == ["d7/f7.txt"]
    write(linted.root / "d7/new.none.md", "not selected\n")
    assert linted.run() == []
    (linted.root / "d7/f7.txt").chmod(0o755)
    assert linted.run() == ["d7/f7.txt"]
    assert len(linted.codebatch("query", "diagnostics", "--limit", "999").lines) == FILES


@pytest.mark.parametrize(
    "change",
    [
        lambda linted: write(linted.root / "style.json", '{"rule": "off"}'),
        lambda linted: write(linted.root / "d1/style.json", "{}"),
        lambda linted: write(linted.root / "package-lock.json", '{"version": 2}'),
        lambda linted: write(linted.root / "tools/version-output", "linter 1.0 built today\n"),
        lambda linted: write(linted.root / "tools/linter", f"{LINTER}# edited\n"),
        lambda linted: linted.configure(TABLE.replace("exit_ok = [0, 1]", "exit_ok = [1]")),
        lambda linted: linted.configure(TABLE.replace('["*.txt"]', '["*.txt", "!x"]')),
    ],
    ids=["config file", "new config file", "lock", "version", "program", "exit_ok", "match"],
)
def test_changed_input_runs_only_this_task_again(linted: Linted, change: Callable[[Linted], object]) -> None:
    change(linted)
    assert sum(len(call.split()) for call in linted.run()) == FILES
    rows = {row["task"]: row for row in linted.codebatch("explain-miss", "--json").json["tasks"]}
    assert rows["check"]["reused"] == 0
    causes = {reason["cause"] for reason in rows["check"]["reasons"]}
    assert causes & {"context", "implementation", "tool", "program"}, causes
    assert ("implementation" in causes) == ("its settings, the whole output" in linted.codebatch("explain-miss").text)
    assert linted.run() == []


def test_changed_program_elsewhere_runs_again_here_and_its_results_join_elsewhere(
    codebatch: CommandLine, tmp_path: Path
) -> None:
    root = codebatch.directory
    program = write(tmp_path.with_name(f"{tmp_path.name}-bin") / "linter", PRINTER)
    program.chmod(0o755)
    write(root / "codebatch.toml", ELSEWHERE.replace("PROGRAM", str(program)))
    write(root / "a.txt", "x\n")
    first = codebatch("run", "--json").json
    assert codebatch("run", "--dry-run", "--json").json["batch_id"] == first["batch_id"]
    codebatch("run", "--part", "1/1", "--part-output", "../one.cbpart")
    program.write_text(PRINTER.replace(": one", ": two"))
    assert [task["cached"] for task in codebatch("run", "--dry-run", "--json").json["tasks"]] == [0]
    assert codebatch("verify", first["batch_id"], "--json", status=2).error["code"] == "tool_mismatch"
    joined = codebatch("join", "../one.cbpart", "--json").json
    assert (joined["result_digest"], joined["executed"]) == (first["result_digest"], 0)
    assert (codebatch("run", "--again", "--json").json["executed"]) == 2
    assert "two" in codebatch("query", "diagnostics").text
    program.write_text(PRINTER.replace(": one", ": three"))
    codebatch("run")
    assert "three" in codebatch("query", "diagnostics").text
    assert "another file outside of the project that its command names" in codebatch("explain-miss").text


def test_other_settings_of_one_task_leave_results_of_the_other_task(linted: Linted) -> None:
    linted.configure(TABLE.replace('["*.none"]', '["*.none", "*.md"]'))
    assert linted.run() == []
    rows = {row["task"]: row for row in linted.codebatch("explain-miss", "--json").json["tasks"]}
    assert rows["check"]["executed"] <= 1  # codebatch.toml itself has changed.
    assert rows["other"]["reused"] == 0


def test_files_that_no_linter_matches_cause_no_call(codebatch: CommandLine, tmp_path: Path) -> None:
    project = Linted(codebatch, tmp_path)
    project.write_files(3000, "md")
    assert project.run() == []


@pytest.mark.parametrize(
    ("changes", "is_reused"),
    [
        ({}, True),
        ({'lock = ["package-lock.json"]\n': "", 'link = ["node_modules"]\n': ""}, True),
        ({'lock = ["package-lock.json"]\n': ""}, False),
        ({"exit_ok": "version = false\nexit_ok"}, False),
        ({"exit_ok": 'home = "user"\nexit_ok'}, True),
        ({"exit_ok": 'home = "user"\nexit_ok', 'link = ["node_modules"]\nlock = ["package-lock.json"]\n': ""}, False),
    ],
    ids=["lock", "no link", "link without lock", "version false", "home and lock", "home without lock"],
)
def test_results_that_no_key_covers_are_not_reused(
    codebatch: CommandLine, tmp_path: Path, changes: dict[str, str], is_reused: bool
) -> None:
    project = Linted(codebatch, tmp_path)
    project.write_files(9, "txt")
    check, rest = TABLE.split("[tasks.other]")
    for old, new in changes.items():
        assert old in check
        check = check.replace(old, new)
    project.versions = 1 if "version = false" in check else 2
    project.configure(f"{check}[tasks.other]{rest}")
    assert sum(len(call.split()) for call in project.run()) == 9
    write(project.root / "d0/f0.txt", "changed\n")
    assert sum(len(call.split()) for call in project.run()) == (1 if is_reused else 9)


def test_status_that_is_not_ok_fails_the_files(linted: Linted) -> None:
    write(linted.root / "tools/status", "2")
    write(linted.root / "d7/f7.txt", "changed\n")
    assert linted.run(status=3) == ["d7/f7.txt"]
    assert linted.run(status=3) == []
    write(linted.root / "tools/status", "0")
    linted.codebatch("resume")
    assert len(linted.codebatch("query", "diagnostics", "--limit", "999").lines) == FILES
