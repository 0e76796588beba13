"""Completion offers files and batches to a shell, and nothing if they cannot be determined."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from codebatch.cli.framework.exit import join_split_names
from codebatch.operations.project.stores import open_store
from codebatch.operations.queries.completion import batches_beginning, files_beginning
from tests.support.command_line import SCRIPT, CommandLine, write

_FILES = (
    "app/db/models.py",
    "app/db/model_fields.py",
    "app/web/view.py",
    "README.md",
    "app2.py",
    "it's.py",
    "$x.py",
)


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A project of several directories. Some of its file names have a special meaning in a shell."""
    root = tmp_path_factory.mktemp("named")
    codebatch = CommandLine(root)
    for path in _FILES:
        write(root / "tree" / path, "x = 1\n")
    (root / "tree" / os.fsdecode(b"app/\xff.py")).write_text("x = 1\n")
    codebatch("run", "tree", "--store", "store", "--name", "main", "-j", "1", "--pipeline", "parse")
    codebatch("run", "tree/app/web", "--store", "store", "--name", "web", "-j", "1", "--pipeline", "parse")
    return codebatch


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("", ["$x.py", "README.md", "app/", "app2.py", "it's.py"]),
        ("app", ["app/", "app2.py"]),
        ("app/", ["app/db/", "app/web/"]),
        ("app/d", ["app/db/model_fields.py", "app/db/models.py"]),
        ("app/db/models", ["app/db/models.py"]),
        ("app/w", ["app/web/view.py"]),
        ("db", []),
        ("app/db/models.py/", []),
    ],
)
def test_completion_offers_paths_up_to_their_first_difference(
    analysed: CommandLine, word: str, expected: list[str]
) -> None:
    assert files_beginning(open_store(analysed.directory / "store"), "@main", word) == expected


def test_completion_offers_paths_relative_to_the_directory_of_the_user(analysed: CommandLine) -> None:
    store = open_store(analysed.directory / "store", analysed.directory / "tree" / "app")
    assert files_beginning(store, "@main", "d") == ["db/model_fields.py", "db/models.py"]
    assert files_beginning(store, "@main", "app/w") == ["app/web/view.py"]
    assert files_beginning(store, "@web", "") == ["web/view.py"]


def test_completion_offers_batches_by_name_and_id(analysed: CommandLine) -> None:
    store = open_store(analysed.directory / "store")
    latest, at_main, at_web, *ids = batches_beginning(store, "")
    assert (latest, at_main, at_web) == ("latest", "@main", "@web")
    assert ids == sorted(ids, reverse=True)
    assert len(ids) == 2
    assert batches_beginning(store, "@m") == ["@main"]
    assert batches_beginning(store, ids[0][:-1]) == [ids[0]]


@pytest.mark.parametrize(
    ("words", "store", "offered"),
    [
        ("inspect --batch @main app", "store", "plain,app/ plain,app2.py"),
        ("inspect --batch @main ", "store", "plain,README.md plain,app/ plain,app2.py"),
        ("impact --batch @nope app", "store", ""),
        ("--store store outline --batch @web a", "", "plain,app/web/view.py"),
        ("summary --batch @w", "store", "plain,@web"),
        ("summary --batch @", "nowhere", ""),
        ("inspect a", "tree", ""),
    ],
)
def test_completion_omits_unsafe_names_and_ignores_errors(
    analysed: CommandLine, words: str, store: str, offered: str
) -> None:
    given = ["codebatch", *words.split(" ")]
    variables = {
        "_CODEBATCH_COMPLETE": "bash_complete",
        "COMP_WORDS": "\n".join(given),
        "COMP_CWORD": str(len(given) - 1),
        **({"CODEBATCH_STORE": store} if store else {}),
    }
    ended = CommandLine(analysed.directory, variables)()
    assert (ended.text.split(), ended.stderr) == (offered.split(), b"")


def test_batch_name_split_by_bash_is_joined() -> None:
    words = {"COMP_WORDS": "codebatch\ninspect\n--batch\n@\nmain\na", "COMP_CWORD": "5"}
    environment = {"_CODEBATCH_COMPLETE": "bash_complete", **words}
    join_split_names(environment)
    assert environment["COMP_WORDS"].split("\n") == ["codebatch", "inspect", "--batch", "@main", "a"]
    assert environment["COMP_CWORD"] == "4"


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(("words", "replies"), [("--batch @ m", ["@main"]), ("--batch @ main app/d", None)])
def test_completion_works_in_bash(analysed: CommandLine, words: str, replies: list[str] | None) -> None:
    """The words are split as bash splits a line: `@` is a separate word."""
    given = ["codebatch", "inspect", *words.split()]
    script = f"""eval "$(codebatch completion bash)"
        COMP_WORDS=({" ".join(given)}); COMP_CWORD={len(given) - 1}
        _codebatch_completion codebatch; printf '%s\n' "${{COMPREPLY[@]}}\""""
    path = f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**analysed.environment, "PATH": path, "CODEBATCH_STORE": "store"}
    ended = subprocess.run(
        ["bash", "-c", script], cwd=analysed.directory, env=environment, capture_output=True, check=True
    )
    assert ended.stdout.decode().split() == (replies or ["app/db/model_fields.py", "app/db/models.py"])
    assert ended.stderr == b""
