"""PATH arguments: files and directories relative to the current directory, or to the project."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codebatch.cli import cli
from codebatch.cli.reference.interface import describe_interface
from tests.support.command_line import CommandLine, write

OTHER_WORDS = {
    "callers": ("shared",),
    "implementations": ("Base",),
    "references": ("shared",),
    "refs": ("shared",),
    "find": ("-l", "python", "--pattern", "shared($X)"),
}
"""The arguments that a command needs in addition to paths."""
COMMANDS = sorted(
    command.name
    for command in describe_interface(cli).commands
    if command.name != "run" and any(argument.name == "[PATH]..." for argument in command.arguments)
)


def module(seed: str) -> str:
    """Return a module with a finding, an import, a complex function, and a block shared by modules of a seed."""
    branches = "".join(f"    if x == {number}:\n        x = shared({number})\n" for number in range(12))
    block = "".join(f"    copied_{number} = compute_{seed}(number={number}, other='{seed}')\n" for number in range(12))
    imports = "import os\nfrom lib.shared import Base, shared\n"
    return f"{imports}\n\ndef hard_{seed}(x):\n{branches}\n\ndef copied():\n{block}\n\nclass Sub(Base): ...\n"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A tree and its batch. Tests only read it."""
    codebatch = CommandLine(tmp_path_factory.mktemp("paths"))
    root = codebatch.directory / "tree"
    for directory in ("app", "app/deep", "lib", "other [1]"):
        write(root / directory / "one.py", module(directory[0]))
        write(root / directory / "two.py", module(directory[0]))
    write(root / "lib" / "shared.py", "class Base: ...\n\n\ndef shared(x):\n    return x\n")
    codebatch("run", "tree", "--store", "store", "-q")
    return codebatch


def query_rows(codebatch: CommandLine, command: str, *paths: str, directory: str = ".") -> list[Any]:
    """Return the rows of an answer with --json."""
    words = (*command.split(), *OTHER_WORDS.get(command, ()), *paths)
    store = codebatch.directory / "store"
    answer = codebatch(*words, "--store", store, "--json", cwd=codebatch.directory / "tree" / directory).json
    if command == "query stats":
        return [answer["records"]]
    return next(answer[name] for name in ("rules", "rows", "blocks", "records") if name in answer)


def paths_in(rows: object) -> Iterator[str]:
    """Yield the files that occur in an answer."""
    if isinstance(rows, dict):
        for name, value in rows.items():
            if name in ("path", "source", "target") and isinstance(value, str):
                yield value
            yield from paths_in(value)
    elif isinstance(rows, list):
        for row in rows:
            yield from paths_in(row)


def test_commands_that_list_file_contents_accept_paths() -> None:
    assert COMMANDS == [
        "callers",
        "duplicates",
        "find",
        "findings",
        "graph",
        "hotspots",
        "implementations",
        "query diagnostics",
        "query duplicates",
        "query edges",
        "query failures",
        "query files",
        "query metrics",
        "query outputs",
        "query stats",
        "query symbols",
        "references",
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_path_is_relative_to_the_current_directory_and_limits_the_answer(tree: CommandLine, command: str) -> None:
    every, one, deep = (
        query_rows(tree, command, *paths, directory="app") for paths in ((), ("one.py",), ("deep", "../lib/two.py"))
    )
    if command == "query failures":
        assert every == one == deep == []
        return
    if command == "query stats":
        assert 0 < one[0]["metric"] < deep[0]["metric"] < every[0]["metric"]
        return
    assert {"lib/one.py", "app/one.py", "app/deep/two.py"} <= set(paths_in(every))
    if command in ("graph", "duplicates"):
        assert all(set(paths_in(row)) & {"app/one.py"} for row in one)
        assert all(set(paths_in(row)) & {"app/deep/one.py", "app/deep/two.py", "lib/two.py"} for row in deep)
        assert one
        assert deep
        return
    sources = [row["path"] for row in one if "path" in row] or list(paths_in(one))
    assert set(sources) == {"app/one.py"}
    sources = [row["path"] for row in deep if "path" in row] or list(paths_in(deep))
    assert set(sources) == {"app/deep/one.py", "app/deep/two.py", "lib/two.py"}


def test_paths_accept_dots_trailing_slashes_and_patterns(tree: CommandLine) -> None:
    def files(*paths: str, directory: str = "app") -> set[str]:
        return {row["path"] for row in query_rows(tree, "query files", *paths, directory=directory)}

    app = {"app/one.py", "app/two.py", "app/deep/one.py", "app/deep/two.py"}
    assert files(".") == files("./") == files("../app") == files("app", directory=".") == app
    assert files(str(tree.directory / "tree" / "app")) == app
    assert files("deep/") == {"app/deep/one.py", "app/deep/two.py"}
    assert len(files("..")) == len(files(".", directory=".")) == 9
    assert files("../other [1]") == files("other [1]/") == {"other [1]/one.py", "other [1]/two.py"}
    assert files("*two.py") == {
        f"{directory_name}/two.py" for directory_name in ("app", "app/deep", "lib", "other [1]")
    }


def test_path_without_files_is_an_error(tree: CommandLine) -> None:
    for words in (("findings", "nothing"), ("findings", "lib", "nothing"), ("query", "symbols", "nothing")):
        notes = tree(*words, "--store", "store", status=2).notes
        assert "the batch has no file in 'nothing'" in notes
    assert "did you mean 'lib/shared.py'?" in tree("findings", "sharde.py", "--store", "store", status=2).notes
    assert "a path is empty" in tree("findings", "", "--store", "store", status=2).notes
    beside = tree("findings", "lib", "--path", "one", "--store", "store", status=2).notes
    assert "--path cannot be used with PATH" in beside
    elsewhere = tree("findings", ".", "--store", tree.directory / "store", cwd=Path("/"), status=2).notes
    assert "no file in '.'" in elsewhere


def test_path_option_restricts_like_the_argument(tree: CommandLine) -> None:
    answers = [
        json.dumps(query_rows(tree, "findings", *words))
        for words in (("lib",), ("--path", "/lib"), ("--path", "/lib/"))
    ]
    assert len(set(answers)) == 1
    assert set(paths_in(json.loads(answers[0]))) == {"lib/one.py", "lib/two.py"}
    assert "the batch has no name 'nobody'" in tree("references", "nobody", "lib", "--store", "store", status=2).notes
