"""Tests of the environment of tasks: the order of its layers, expansion, and the use of env files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codebatch.errors import InvalidWork
from codebatch.model.work.command import Command, encode_command
from codebatch.system.processes.command_processes import ProcessNotStarted
from codebatch.work.definition.settings import WorkOptions
from codebatch_workers.commands.attempt_inputs import AttemptFiles
from codebatch_workers.commands.context import make_process_start
from codebatch_workers.commands.masking import SecretMasker
from tests.work.reading import read

NOTHING = Path(os.devnull)
MATERIALS = AttemptFiles(
    task_text="",
    text=NOTHING,
    question=NOTHING,
    answers=NOTHING,
    needs=NOTHING,
    previous_log=NOTHING,
    number=1,
    session="",
)
RUN = "run = 'true'\n"


def environment(command: Command, root: Path, **caller_variables: str) -> dict[str, str]:
    """Return the environment of a command without our own variables."""
    start = make_process_start(
        command,
        command.run,
        MATERIALS,
        batch="b",
        round_=1,
        root=root,
        base_environment=caller_variables,
        mark="",
        tree_variables={},
        masker=SecretMasker(),
    )
    ours = ("CODEBATCH_", "PWD")
    return {name: value for name, value in start.environment.items() if not name.startswith(ours)}


def task_environment(
    directory: Path, text: str, options: WorkOptions | None = None, **caller_variables: str
) -> dict[str, str]:
    """Return the environment of the only task of a list."""
    (command,) = read(directory, text, options or WorkOptions(), **caller_variables).commands
    return environment(command, directory, **caller_variables)


def test_environment_layers_override_in_order(tmp_path: Path) -> None:
    names = ("caller", "file-env-file", "file-env", "defaults-env-file", "defaults-env", "env-file", "env", "option")
    for place, name in enumerate(names):
        if name.endswith("env-file"):
            lines = [f"V{number}={name}\n" for number in range(len(names)) if number >= place]
            (tmp_path / name).write_text("".join(lines), encoding="utf-8")

    def env(name: str) -> str:
        pairs = [f"V{number} = '{name}'" for number in range(len(names)) if number >= names.index(name)]
        return f"env_file = '{name}-file'\nenv = {{ {', '.join(pairs)} }}\n"

    text = env("file-env") + "[defaults]\n" + env("defaults-env") + "[tasks.a]\n" + RUN + env("env")
    caller_variables = {f"V{number}": "caller" for number in range(len(names))}
    variables = task_environment(tmp_path, text, WorkOptions(env=[f"V{len(names) - 1}=option"]), **caller_variables)
    assert variables == {f"V{place}": name for place, name in enumerate(names)}


def test_included_file_overrides_the_including_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "more.toml").write_text(
        f"env = {{ A = 'inner' }}\nenv_file = 'i.env'\n[tasks.a]\n{RUN}", encoding="utf-8"
    )
    (tmp_path / "sub" / "i.env").write_text("B=inner\nC=inner\n", encoding="utf-8")
    (tmp_path / "o.env").write_text("C=outer\nD=outer\n", encoding="utf-8")
    variables = task_environment(
        tmp_path, "include = ['sub/more.toml']\nenv_file = 'o.env'\nenv = { A = 'outer', B = 'outer' }\n"
    )
    assert variables == {"A": "inner", "B": "inner", "C": "inner", "D": "outer"}


def test_variables_and_placeholders_are_expanded_once(tmp_path: Path) -> None:
    env = {
        "PATH": "/x:${PATH}", "ONE": "$GIVEN", "ID": "${GIVEN}-{id}", "TWICE": "${GIVEN}${GIVEN}",
        "TEXT": "$${GIVEN} $$", "BARE": "a$GIVEN", "DEFAULT": "${NONE:-d e}", "EMPTY": "${EMPTY:-d}",
        "LITERAL": "{{id}}",
    }  # fmt: skip
    text = f"[tasks.a]\n{RUN}env = {{ {', '.join(f'{name} = {value!r}' for name, value in env.items())} }}\n"
    caller_variables = {"PATH": "/bin", "GIVEN": "{id}${PATH}", "EMPTY": ""}
    assert task_environment(tmp_path, text, WorkOptions(), **caller_variables) == caller_variables | {
        "PATH": "/x:/bin", "ONE": "{id}${PATH}", "ID": "{id}${PATH}-a", "TWICE": "{id}${PATH}{id}${PATH}",
        "TEXT": "${GIVEN} $$", "BARE": "a$GIVEN", "DEFAULT": "d e", "EMPTY": "d", "LITERAL": "{id}",
    }  # fmt: skip
    notes = read(tmp_path, text, WorkOptions(), **caller_variables).notes
    message = "sets the variable BARE to 'a$GIVEN', in which $GIVEN is not expanded: write ${GIVEN}"
    assert notes == (f"work.toml: [tasks.a] {message}",)


def test_env_file_syntax_is_parsed(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(
        b'\xef\xbb\xbf# a comment\r\n\nexport A=1 # one\nB=\'${A} # "x\'\nC="a\\nb ${A}"\nD=\nHOME\nGONE\n'
        b'F = ${NO:-z}\nG="two\nlines"\nH=pa$$w$A#x\nA=2\nI=${A}${HOME}\nJ=$A\n'
    )
    assert task_environment(tmp_path, f"env_file = '.env'\nclean_env = true\n[tasks.a]\n{RUN}", HOME="/h") == {
        "A": "2", "B": '${A} # "x', "C": "a\nb 1", "D": "", "HOME": "/h", "F": "z", "G": "two\nlines", "H": "pa$w1#x",
        "I": "2/h", "J": "2",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"A=1\n\nno such thing\n", ".env:3 is not NAME=VALUE"),
        (b"A='1\n", ".env:1 is not NAME=VALUE"),
        (b"A=\0\n", ".env:1 is not NAME=VALUE"),
        (b"A=1\nB=${NO}\n", ".env:2: ${NO} is not set"),
        (b"A=1\nB=x$NO\n", ".env:2: ${NO} is not set"),
        (b"B=${NO:?give a token}\n", ".env:1: NO: give a token"),
        (b"A=\xff\n", ".env is not UTF-8"),
        (b"#" * (1 << 20) + b"##", "cannot read .env: it is longer than 1048576 bytes"),
    ],
)
def test_unreadable_env_file_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / ".env").write_bytes(content)
    with pytest.raises(InvalidWork) as raised:
        read(tmp_path, f"[tasks.a]\n{RUN}env_file = ['.env']")
    assert raised.value.message == f"work.toml: [tasks.a]: {message}"


def test_env_file_values_are_read_at_each_attempt_and_never_stored(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TOKEN=s3cret\n", encoding="utf-8")
    text = f"env_file = ['.env', {{ path = 'no.env', required = false }}]\n[tasks.a]\n{RUN}env.B = 'x ${{TOKEN}}'\n"
    (command,) = read(tmp_path, text).commands
    assert b"s3cret" not in encode_command(command)
    assert environment(command, tmp_path) == {"TOKEN": "s3cret", "B": "x s3cret"}
    (tmp_path / ".env").write_text("TOKEN=other\n", encoding="utf-8")
    assert environment(command, tmp_path) == {"TOKEN": "other", "B": "x other"}
    (tmp_path / ".env").unlink()
    with pytest.raises(
        ProcessNotStarted, match=r"cannot build its environment: cannot read \.env: No such file or directory"
    ):
        environment(command, tmp_path)


def test_env_file_is_resolved_from_the_list_and_stored_from_the_root(tmp_path: Path) -> None:
    (tmp_path / "list").mkdir()
    (tmp_path / "list" / ".env").write_text("A=1\n", encoding="utf-8")
    (command,) = read(tmp_path / "list", f"root = '..'\nenv_file = '.env'\n[tasks.a]\n{RUN}").commands
    assert command.env_under
    assert [file.path for file in command.env_under[0].files] == ["list/.env"]
    assert environment(command, tmp_path) == {"A": "1"}
