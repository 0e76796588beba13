"""Tables of tasks that call a program, and what is found out about the program before a run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from codebatch.errors import InvalidConfiguration
from codebatch.model.command_table import CommandTaskLocation
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.command_tasks import (
    LOCATION_SETTINGS,
    command_environment,
    command_task_location,
    config_files_context,
    find_program,
    resolve_commands,
)
from codebatch.plugins.entry_points import implementation_digest, load_declaration
from tests.support.command_line import write
from tests.support.source_files import Snapshot

TABLE: dict[str, object] = {"command": ["./check", "{files}"], "records": "gcc"}


def location(project: Path, table: Mapping[str, object]) -> CommandTaskLocation:
    return command_task_location("check", table, project, project_seconds=3600.0)


def resolved(project: Path, table: Mapping[str, object]) -> CommandTaskLocation:
    return resolve_commands({"check": location(project, table)})["check"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program `check` in a project. It prints its version."""
    path = tmp_path / "check"
    write(path, "#!/bin/sh\necho check 1.25.0-rc1\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"command": "check {files}"}, "`command` of the task 'check' must be a list, not a text"),
        ({"command": []}, "must be a list of a program and its arguments"),
        ({"command": ["check", 1]}, "Expected `str`"),
        ({"command": ["check"]}, "must have the argument {files} or {file}"),
        ({"command": ["{files}"]}, "must begin with a program"),
        ({"command": ["check", "{files}", "{files}"]}, "has {files} twice"),
        ({"command": ["check", "{files}", "{reprot}"]}, "'{reprot}' is no placeholder: did you mean '{report}'?"),
        ({"command": ["check", "{Files}"]}, "'{Files}' is no placeholder: did you mean '{files}'?"),
        ({"command": ["check", "{files}", "{file}"]}, "has both {files} and {file}"),
        ({"command": ["check", "--in={files}"]}, "{files} must be a whole argument"),
        ({"command": ["check", "{file}"], "scope": "project"}, "use {files} or no placeholder"),
        ({"python": "a.py:task"}, "has both `python` and `command`"),
        ({"match": ["*.{js,ts}"]}, "can match no path: braces are not expanded"),
        ({"match": ["!*.js"]}, "it is a negation, but no pattern comes before it"),
        ({"config_files": ["../x"]}, "can match no path"),
        ({"class": ["generatd"]}, "generatd"),
        ({"chunk": 0}, "`chunk` must be at least 1"),
        ({"records": "xml"}, "xml"),
        ({"records": {"format": "json", "path": "/file"}}, "`line` is missing"),
        ({"records": "exit"}, 'records = "exit" needs the argument {file}'),
        ({"exit_ok": [0, "1"]}, "Expected `int`"),
        ({"exit_ok": []}, "`exit_ok` must have at least one exit status from 0 to 255"),
        ({"exit_ok": [0, 256]}, "`exit_ok` must have at least one exit status from 0 to 255"),
        ({"exit_ok": [-9]}, "`exit_ok` must have at least one exit status from 0 to 255"),
        ({"link": ["lib", "lib/sub/"]}, "`link` has 'lib/sub', which is below 'lib'"),
        ({"env": {"A": "x" * 70_000}}, "must not be longer than 65,536 bytes"),
        ({"link": ["/etc"]}, "'/etc' in `link` must be a path in the project"),
        ({"lock": ["../lock"]}, "'../lock' in `lock` must be a path in the project"),
        ({"version": True}, "`version` must be a list"),
        ({"home": "root"}, "root"),
        ({"env": {"TOKEN": "$TOKEN"}}, "must not be a secret"),
        ({"env": {"A=B": "1"}}, "not a valid variable"),
        ({"seconds_max": 0}, "`seconds_max` must be more than 0"),
        ({"severity": "fatal"}, "fatal"),
        ({"mach": ["*.sh"]}, "the task 'check' has no setting 'mach'"),
    ],
    ids=str,
)
def test_wrong_tables_are_refused(tmp_path: Path, changes: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        location(tmp_path, TABLE | changes)
    assert problem in caught.value.message
    assert caught.value.hint


def test_refused_text_is_shown_as_a_shell_command(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        location(tmp_path, TABLE | {"command": 'a "b" | c'})
    assert caught.value.hint == r'to run it with a shell: command = ["sh", "-c", "a \"b\" | c"]'


def test_braces_around_another_word_are_an_argument_of_the_program(tmp_path: Path) -> None:
    command = ["check", "--line", "{line}", "{files}"]
    assert location(tmp_path, TABLE | {"command": command}).table.command == tuple(command)


@pytest.mark.parametrize("text", ["lang:bash", "*.sh"])
def test_exclusions_can_follow_a_language_or_a_pattern(tmp_path: Path, text: str) -> None:
    assert location(tmp_path, TABLE | {"match": [text, "!vendor/"]}).table.path_patterns[-1] == "!vendor/"


def test_relative_program_is_below_the_project_and_a_name_on_absolute_directories_of_path(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_program(location(tmp_path, TABLE)) == str(program)
    named = location(tmp_path, TABLE | {"command": ["check", "{files}"]})
    monkeypatch.setenv("PATH", f".{os.pathsep}")
    assert find_program(named) is None
    monkeypatch.setenv("PATH", f".{os.pathsep}{tmp_path}")
    assert find_program(named) == str(program)
    assert find_program(location(tmp_path / "sub", TABLE | {"command": ["../check", "{files}"]})) is None
    program.chmod(0o644)
    assert find_program(location(tmp_path, TABLE)) is None


def test_program_is_identified_by_its_version_or_by_its_errors(tmp_path: Path, program: Path) -> None:
    known = resolved(tmp_path, TABLE)
    assert (known.version_text, known.program) == ("1.25.0-rc1", str(program))
    write(program, "#!/bin/sh\necho broken >&2; exit 3\n")
    with pytest.raises(InvalidConfiguration) as caught:
        resolved(tmp_path, TABLE)
    assert "ended with status 3: broken" in caught.value.message
    with pytest.raises(InvalidConfiguration) as caught:
        resolved(tmp_path, TABLE | {"version": ["sh", "-c", "echo"]})
    assert caught.value.message.endswith("it printed nothing")
    assert resolved(tmp_path, TABLE | {"version": ["sh", "-c", "echo 7.5"]}).version_text == "7.5"
    assert resolved(tmp_path, TABLE | {"version": False}).version is None


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"command": ["./gone", "{files}"]}, "the program './gone' of the task 'check' is not an executable file in"),
        ({"command": ["no-such-program", "{files}"]}, "'no-such-program' of the task 'check' is not on your PATH"),
        ({"link": ["node_modules"]}, "the directory 'node_modules' in `link` of the task 'check' does not exist"),
        ({"lock": ["package-lock.json"]}, "cannot read 'package-lock.json' in `lock`"),
    ],
    ids=str,
)
def test_missing_inputs_are_refused_before_a_run(
    tmp_path: Path, program: Path, changes: dict[str, object], problem: str
) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        resolved(tmp_path, TABLE | changes)
    assert problem in caught.value.message


def test_key_covers_the_table_the_version_and_the_lock_files(tmp_path: Path, program: Path) -> None:
    lock = tmp_path / "lock.json"
    write(lock, "1")

    def key(**changes: object) -> str:
        catalogue = TaskCatalogue({"check": location(tmp_path, TABLE | {"lock": ["lock.json"]} | changes)})
        catalogue.look_up_commands(["check"])
        return implementation_digest(catalogue, load_declaration(catalogue, "check"))

    before = key()
    assert key() == before
    assert key(scope="file") == before, "a default value that is written out changes nothing"
    assert key(exit_ok=[0, 1]) != before
    write(lock, "2")
    with_other_lock = key()
    assert with_other_lock != before
    write(program, "#!/bin/sh\necho check 1.26\n")
    assert key() != with_other_lock


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"version": False}, "version = false"),
        ({"link": ["node_modules"]}, "link = ['node_modules'] without lock"),
        ({"link": ["node_modules"], "lock": ["package-lock.json"]}, ""),
        ({"home": "user"}, 'home = "user" without lock'),
        ({"home": "user", "lock": ["go.sum"]}, ""),
    ],
    ids=str,
)
def test_inputs_outside_the_key(tmp_path: Path, changes: dict[str, object], reason: str) -> None:
    catalogue = TaskCatalogue({"check": location(tmp_path, TABLE | changes)})
    assert catalogue.unkeyed_input("check") == reason


def test_environment_is_that_of_workers_with_a_home_in_the_scratch(tmp_path: Path) -> None:
    variables = {"HOME": "/home/me", "PATH": "/bin", "TOKEN": "secret", "TMPDIR": "/tmp/me"}
    table = location(tmp_path, TABLE | {"env": {"LC_ALL": "C", "X": "1"}}).table
    environment = command_environment(variables, table, "/scratch")
    assert {"HOME": "/scratch", "TMPDIR": "/scratch", "PATH": "/bin", "LC_ALL": "C", "X": "1"}.items() <= (
        environment.items()
    )
    assert "TOKEN" not in environment
    with_home = location(tmp_path, TABLE | {"home": "user"}).table
    assert command_environment(variables, with_home, "/scratch")["HOME"] == "/home/me"


def test_git_of_a_program_does_not_take_an_analysed_directory_for_a_repository(tmp_path: Path) -> None:
    for name in ("objects", "refs"):
        (tmp_path / name).mkdir()
    (tmp_path / "HEAD").write_text("ref: refs/heads/x")
    (tmp_path / "config").write_text("[user]\nname = canary\n")
    environment = command_environment(os.environ, location(tmp_path, TABLE).table, str(tmp_path))
    for variables, status in ((environment, 1), (dict(os.environ), 0)):
        command = ["git", "config", "user.name"]
        ended = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, check=False)
        assert (ended.returncode, ended.stdout) == (status, b"" if status else b"canary\n")


def test_settings_of_the_table_and_of_the_plan_do_not_overlap() -> None:
    assert not {"off", "severities"} & set(LOCATION_SETTINGS)


def test_configuration_file_behind_a_link_is_that_of_the_snapshot() -> None:
    links = {"a.json": b"lib/rules.json", "lib/b.json": b"../a.json", "c.json": b"lib", "d.txt": b"/etc/passwd"}
    snapshot = Snapshot("lib/rules.json", "x.py", links=links)
    value = config_files_context("check", ["*.json"])(snapshot)(snapshot.entries[0])
    assert [path for path, _, _ in msgspec.msgpack.decode(value)] == [b"a.json", b"lib/b.json", b"lib/rules.json"]


@pytest.mark.parametrize("target", [b"/etc/passwd", b"../x", b"../../proj/x", b"a.json"])
def test_configuration_file_behind_a_link_out_of_the_project_is_refused(target: bytes) -> None:
    snapshot = Snapshot("x.py", links={"a.json": target})
    with pytest.raises(InvalidConfiguration, match=r"selects a\.json, a link that leads out of the project"):
        config_files_context("check", ["*.json"])(snapshot)


def test_lock_file_behind_a_link_is_a_file_of_the_project(program: Path) -> None:
    project = program.parent
    write(project / "lib/lock", "1")
    (project / "lock").symlink_to("lib/lock")
    assert resolved(project, {**TABLE, "lock": ["lock"]}).lock.keys() == {"lock"}
    write(project.with_name(f"{project.name}-x") / "lock", "1")
    (project / "other").symlink_to(f"../{project.name}-x/lock")
    with pytest.raises(InvalidConfiguration, match="'other' in `lock` of the task 'check' is outside the project"):
        resolved(project, {**TABLE, "lock": ["other"]})
