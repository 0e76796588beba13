"""Files that the command of a task names: those in the project are part of its key, others decide about local reuse."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from codebatch.errors import InvalidConfiguration
from codebatch.model.command_table import CommandTable
from codebatch.plugins.command_inputs import CommandInputs, read_command_inputs
from tests.support.command_line import write


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project and a directory of programs beside it."""
    for name in ("project/check", "project/tools/lint.py", "bin/wrapped", "bin/check"):
        write(tmp_path / name, f"#!/bin/sh\n# {name}\n").chmod(0o755)
    for name in ("project/tools/rules.txt", "project/.venv/pyvenv.cfg", "rules.txt"):
        write(tmp_path / name, name)
    for name in ("project/.venv/bin/check", "project/node_modules/.bin/check", "project/lib/check"):
        write(tmp_path / name, name).chmod(0o755)
    return tmp_path / "project"


def read(project: Path, command: list[str], program: str = "", /, **settings: object) -> CommandInputs:
    table = msgspec.convert({"command": [*command, "{files}"], "records": "gcc", **settings}, CommandTable)
    environment = {"PATH": f"{project.parent}/bin", "PYTHONPATH": "/x"}
    return read_command_inputs("check", table, project, program or f"{project}/check", environment)


@pytest.mark.parametrize(
    ("command", "settings", "paths"),
    [
        (["./check"], {}, ["check"]),
        (["./check", "tools/lint.py"], {}, ["check", "tools/lint.py"]),
        (["./check", "PROJECT/tools/lint.py"], {}, ["check", "tools/lint.py"]),
        (["./check", "--rules=tools/rules.txt"], {}, ["check", "tools/rules.txt"]),
        (["./check", "-c", 'exec "PROJECT/tools/lint.py" "$@"'], {}, ["check", "tools/lint.py"]),
        (["./check", "-c", "cd x;tools/lint.py<tools/rules.txt"], {}, ["check", "tools/lint.py", "tools/rules.txt"]),
        (["./check", "-c", "check > tools/rules.txt; echo >>tools/lint.py"], {}, ["check"]),
        (["./check"], {"env": {"RULES": "tools/rules.txt", "A": "b"}}, ["check", "tools/rules.txt"]),
        (["./check", "tools", "missing.py", "{report}"], {}, ["check"]),
        (["./check", "../rules.txt", ".venv/bin/check", "node_modules/.bin/check"], {}, ["check"]),
        (["./check", "lib/check"], {}, ["check", "lib/check"]),
        (["./check", "lib/check"], {"link": ["lib/"]}, ["check"]),
    ],
)
def test_files_of_the_project_are_part_of_the_key(
    project: Path, command: list[str], settings: dict[str, object], paths: list[str]
) -> None:
    written = [argument.replace("PROJECT", str(project)) for argument in command]
    assert list(read(project, written, **settings).project) == paths


def test_content_of_a_file_of_the_project_changes_the_key_only(project: Path) -> None:
    before = read(project, ["./check", "tools/rules.txt"])
    write(project / "tools/rules.txt", "other")
    after = read(project, ["./check", "tools/rules.txt"])
    assert (before.project == after.project, before.build == after.build) == (False, True)
    assert list(after.states) == [f"{project}/check"]


@pytest.mark.parametrize(
    ("file", "command", "is_input"),
    [
        ("bin/check", ["check"], True),
        ("bin/wrapped", ["sh", "-c", 'wrapped "$@"'], True),
        ("bin/wrapped", ["sh", "-c", 'PARENT/bin/wrapped "$@"'], True),
        ("rules.txt", ["check", "--rules=PARENT/rules.txt"], True),
        ("rules.txt", ["check", "PARENT/rules.txt"], True),
        ("rules.txt", ["sh", "-c", "tee -a PARENT/rules.txt"], False),
        ("project/.venv/bin/check", [".venv/bin/check"], True),
        ("project/node_modules/.bin/check", ["./check", "node_modules/.bin/check"], True),
    ],
)
def test_content_of_a_file_elsewhere_changes_the_build_only(
    project: Path, file: str, command: list[str], is_input: bool
) -> None:
    parent = project.parent
    program = f"{parent}/bin/check" if "/" not in command[0] else os.path.join(project, command[0])
    written = [argument.replace("PARENT", str(parent)) for argument in command]
    before = read(project, written, program)
    (parent / file).write_text("other")
    after = read(project, written, program)
    assert (before.project == after.project, before.build != after.build) == (True, is_input)
    assert (str(parent / file) in after.states) == (is_input and "rules" not in file)


def test_link_to_a_file_elsewhere_is_a_file_elsewhere(project: Path) -> None:
    (project / "linked").symlink_to(project.parent / "bin/wrapped")
    before = read(project, ["./linked"], f"{project}/linked")
    (project.parent / "bin/wrapped").write_text("other")
    after = read(project, ["./linked"], f"{project}/linked")
    assert (before.project, before.build != after.build) == ({}, True)


def test_inherited_variables_change_the_build(project: Path) -> None:
    table = msgspec.convert({"command": ["./check", "{files}"], "records": "gcc"}, CommandTable)
    environments: list[dict[str, str]] = [{}, {"PATH": "/bin"}, {"PYTHONPATH": "/x"}, {"VIRTUAL_ENV": "/x"}]
    builds = [read_command_inputs("check", table, project, f"{project}/check", each).build for each in environments]
    assert builds[0] == builds[1]
    assert len(set(builds)) == 3


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every file")
def test_unreadable_file_of_the_project_is_an_error(project: Path) -> None:
    (project / "tools/rules.txt").chmod(0)
    with pytest.raises(InvalidConfiguration, match=r"cannot read .*rules.txt' in `command` of the task 'check'"):
        read(project, ["./check", "tools/rules.txt"])
