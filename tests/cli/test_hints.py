"""Commands and options that messages, help and documents name: each exists, with these options and values."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from codebatch.cli import cli

ROOT = Path(__file__).parents[2]
PRODUCT = sorted(path for folder in ("codebatch", "workers") for path in (ROOT / folder).rglob("*.py"))
DOCUMENTS = sorted([*(ROOT / "codebatch" / "help").glob("*.md"), ROOT / "README.md", ROOT / "SPEC.md"])
_VALUE = "\ue000"
"""The place of a value that is only known at run time."""
_COMMAND = re.compile(r"(?:(?<=`)|(?<=: )|(?<=\$ )|^)codebatch ([a-z\ue000-][^`\n;|&#…]*)", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+(?![\w-])")
_END_OF_WORD = re.compile(r"[.,:)]+$")


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each string of a module. A value in an f-string is _VALUE.

    Of docstrings, only those of commands are shown to users.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inner, docstrings = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inner |= {id(value) for value in node.values}
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and isinstance(node.body[0], ast.Expr):
            has_help = isinstance(node, ast.FunctionDef) and node.decorator_list and "cli" in path.parts
            docstrings |= set() if has_help else {id(node.body[0].value)}
    for node in ast.walk(tree):
        if id(node) in inner or id(node) in docstrings:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else _VALUE for part in node.values)
            yield node.lineno, "".join(parts)


def _named_commands(text: str) -> Iterator[tuple[list[str], bool]]:
    """Yield the words of each command in a text, and whether the command is to be run: it follows a colon."""
    for match in _COMMAND.finditer(text):
        is_run = text.endswith(": ", 0, match.start())
        words = re.split(r", (?:or|and) |(?<=\w)\.\s+(?=[A-Z])", match[1])[0].replace("\n", " ")
        try:
            split = shlex.split(words)
        except ValueError:  # A quote is beside the command.
            split = words.replace("'", "").replace('"', "").split()
        yield [_END_OF_WORD.sub("", word) for word in split], is_run


def _take_command(words: list[str]) -> click.Command | str:
    """Remove the names of a command from its words. Return the command, or what is wrong."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words and _VALUE not in words[0]:
        if words[0].startswith("-"):
            return command if words[0] in {"--version", "--help", "-h"} else f"no global option {words[0]}"
        below = command.get_command(click.Context(cli), words[0])
        if below is None:  # `snapshot PATH` means `snapshot take PATH`.
            return command if command.name == "snapshot" else f"no command {words[0]!r}"
        command = below
        words.pop(0)
    return command


def _problem(words: list[str], is_run: bool = True) -> str | None:
    """Return what is wrong with the words of a command, or None. Only a command that is run needs all arguments."""
    words, has_values = list(words), any(_VALUE in word for word in words)
    command = _take_command(words)
    if isinstance(command, click.Group | str):
        return command if isinstance(command, str) else None
    options = {name: option for option in command.params for name in (*option.opts, *option.secondary_opts)}
    given = 0
    while words:
        word = words.pop(0)
        if _VALUE in word and not word.startswith("-"):
            given += word == _VALUE
        elif word.startswith("-") and word != "-":
            name, has_value, value = word.partition("=")
            option = options.get(name)
            if option is None:
                return None if name == "--help" else f"no option {name}"
            is_flag = isinstance(option, click.Option) and (option.is_flag or option.count)
            value = value if has_value else "" if is_flag or not words else words.pop(0)
            if isinstance(option.type, click.Choice) and value.islower() and value not in option.type.choices:
                return f"{name} has no value {value!r}"
        else:
            given += 1
    arguments = [option for option in command.params if isinstance(option, click.Argument)]
    least = sum(argument.required for argument in arguments) if is_run and not has_values else 0
    limit = sum(argument.nargs if argument.nargs > 0 else max(given, 1) for argument in arguments)
    return None if least <= given <= limit else f"{given} arguments, not {least} to {limit}"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("gc --unapplied", None),
        ("gc --unaplied", "no option --unaplied"),
        ("fnidings", "no command 'fnidings'"),
        ("work rerun", "no command 'rerun'"),
        ("files --parse partial --store STORE", None),
        ("files --parse partail", "--parse has no value 'partail'"),
        ("inspect a.py b.py", "2 arguments, not 1 to 1"),
        ("work skip", "0 arguments, not 1 to 1"),
        (f"work skip {_VALUE}", None),
        (f"{_VALUE} --any", None),
        (f"run {_VALUE} --batch={_VALUE} b", None),
    ],
)
def test_mistakes_in_commands_are_found(words: str, problem: str | None) -> None:
    assert _problem(words.split()) == problem


def _wrong(texts: Iterator[tuple[str, str]]) -> Iterator[str]:
    for place, text in texts:
        for words, is_run in _named_commands(text):
            if (problem := _problem(words, is_run)) is not None:
                yield f"{place}: codebatch {' '.join(words)}: {problem}"


def _product_texts() -> Iterator[tuple[str, str]]:
    for path in PRODUCT:
        yield from ((f"{path.relative_to(ROOT)}:{line}", text) for line, text in _texts(path))


def test_every_command_in_messages_and_help_exists_with_its_options() -> None:
    texts = list(_product_texts())
    assert sum(1 for _, text in texts for _ in _named_commands(text)) > 200
    assert list(_wrong(iter(texts))) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_in_documents_exists_with_its_options(path: Path) -> None:
    """A line that begins with the word is a command only in a fenced block."""
    text = re.sub(r"<<.*?>>", _VALUE, path.read_text(encoding="utf-8"))
    parts = re.split(r"^```.*\n", text, flags=re.MULTILINE)
    prose = (re.sub(r"^codebatch ", "", part, flags=re.MULTILINE) for part in parts[::2])
    wrong = list(_wrong((path.name, part) for part in (*prose, *parts[1::2])))
    assert [line for line in wrong if "--nmae" not in line] == [], "--nmae is an example of a mistake"


def test_every_option_in_messages_exists() -> None:
    """Options of other programs are words of their own, or follow the name of the program."""
    known = {"--help", "--version"}
    pending: list[click.Command] = [cli]
    for command in pending:
        known |= {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
        if isinstance(command, click.Group):
            context = click.Context(command)
            names = command.list_commands(context)
            pending += [below for name in names if (below := command.get_command(context, name)) is not None]
    wrong = [
        f"{place}: {option}"
        for place, text in _product_texts()
        if "linter_recipes" not in place
        and " " in text
        and not re.search(r"\b(git|ruff|uv|pipx|pip|ssh|eslint|mypy|golangci-lint|gcc|dask|parsl) ", text)
        for option in _OPTION.findall(text)
        if option not in known
    ]
    assert wrong == []
