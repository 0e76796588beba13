"""The words of texts for readers: help, messages, documents, and the docstrings of the public API and of all modules.

`language-exceptions.json` counts the remaining violations by text. The counts may only shrink: after you improve a
text, run `python -m tests.test_language` to write the lower counts.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click

import codebatch
import codebatch.errors
import codebatch.work
import codebatch_workers.api
from codebatch.cli import cli

ROOT = Path(__file__).parent.parent
EXCEPTIONS = Path(__file__).with_name("language-exceptions.json")
WORDS_MAX = 25

_BANNED = re.compile(
    r"\b(told|tells|taken over|takes over|mend(s|ed|ing)?|grave|gravest|unsound|unkeyed|held against|whoever|nobody"
    r"|somebody|be it|anew|hushed|silenced|untold|withheld|conducts?|means nothing|so many|gone on"
    r"|(?<!there )(is|are) no(?! longer)|of which there|in a circle|what became|what came of"
    r"|stands? (at|in|there|so)|had from|lived with)\b",
    re.IGNORECASE,
)
"""Words and forms of the private English of early versions. Each has a usual word: SPEC.md "Terminology"."""
_HEADLESS = re.compile(r"(What|Who|How|Where|Which|Of|By|As|That|Those|So)\b")
"""First words of texts that do not name what they describe."""
_CODE = re.compile(r"```(?s:.*?)```|`[^`\n]*`|<[^>\n]*>|^\|.*$|^ {4}.*$|^#.*$", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n(?=[-*] |\d+\. )")
_MESSAGE_CALLS = frozenset({"note", "warn", "UsageError", "BadParameter", "ClickException"})
_ERRORS = frozenset(
    name
    for name in codebatch.__all__
    if isinstance(exported := getattr(codebatch, name), type) and issubclass(exported, Exception)
)


def violations(text: str, *, limit: int | None = WORDS_MAX, is_description: bool = False) -> list[str]:
    """Return the violations in a text. `limit` is the maximum number of words of a sentence."""
    prose = _CODE.sub("x", text)
    wrong = [match[0] for match in _BANNED.finditer(prose)]
    if is_description and _HEADLESS.match(prose):
        wrong.append(prose.split()[0])
    sentences = [sentence.split() for sentence in _SENTENCE.split(prose)]
    wrong += [f"{len(words)} words: {' '.join(words)}" for words in sentences if limit and len(words) > limit]
    return wrong


def _help_texts(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    yield name, command.help or ""
    yield name, command.epilog or ""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            yield f"{name} {parameter.opts[0]}", parameter.help or ""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for subcommand in command.list_commands(context):
            inner = command.get_command(context, subcommand)
            if inner is not None:
                yield from _help_texts(inner, f"{name} {subcommand}")


def _messages(path: Path) -> Iterator[str]:
    """Yield the texts of errors, hints, notes and warnings in a module. An inserted value counts as one word."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        texts = [keyword.value for keyword in node.keywords if keyword.arg == "hint"]
        if name in _MESSAGE_CALLS | _ERRORS:
            texts += node.args[:1]
        for text in texts:
            yield from _literals(text)


def _literals(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr():
            yield "".join(part.value if isinstance(part, ast.Constant) else "x" for part in node.values)  # type: ignore[misc]
        case ast.IfExp():
            yield from _literals(node.body)
            yield from _literals(node.orelse)
        case _:
            pass


def _public_docstrings() -> Iterator[tuple[str, str]]:
    for package in (codebatch, codebatch.work, codebatch_workers.api):
        yield from _docstrings_of(package)


def _docstrings_of(package: ModuleType) -> Iterator[tuple[str, str]]:
    for name in package.__all__:
        exported = getattr(package, name)
        if isinstance(exported, type) and "codebatch" in exported.__module__:
            yield name, vars(exported).get("__doc__") or ""
            for member, value in vars(exported).items():
                if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                    yield f"{name}.{member}", value.__doc__ or ""
        elif inspect.isfunction(exported):
            yield name, exported.__doc__ or ""


def _docstrings_in(path: Path) -> Iterator[str]:
    """Yield the docstrings of a module, and of its classes and functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def _documents() -> list[Path]:
    pages = sorted((ROOT / "codebatch" / "help").glob("*.md"))
    return [
        ROOT / "README.md",
        ROOT / "SPEC.md",
        ROOT / "workers" / "TASKS.md",
        ROOT / ".github" / "CHANGELOG.md",
        *pages,
    ]


def counted() -> dict[str, list[str]]:
    """Return all violations, grouped by text. A module counts as one text."""
    violations_by_text: dict[str, list[str]] = {}

    def add(key: str, wrong: list[str]) -> None:
        if wrong:
            violations_by_text.setdefault(key, []).extend(wrong)

    for name, text in _help_texts(cli, "codebatch"):
        add(f"help: {name}", violations(text, is_description=True))
    for path in sorted((ROOT / "codebatch").rglob("*.py")) + sorted((ROOT / "workers").rglob("*.py")):
        for text in _messages(path):
            add(f"messages: {path.relative_to(ROOT)}", violations(text))
        for text in _docstrings_in(path):
            add(f"docstrings: {path.relative_to(ROOT)}", violations(text, limit=None, is_description=True))
    for path in _documents():
        add(f"document: {path.relative_to(ROOT)}", violations(path.read_text(encoding="utf-8"), limit=None))
    for name, text in _public_docstrings():
        add(f"docstring: {name}", violations(text, limit=None, is_description=True))
    return violations_by_text


def test_texts_use_plain_words_and_exceptions_only_shrink() -> None:
    violations_by_text = counted()
    allowed = json.loads(EXCEPTIONS.read_text(encoding="utf-8"))
    for key in sorted({*violations_by_text, *allowed}):
        wrong = violations_by_text.get(key, [])
        assert len(wrong) <= allowed.get(key, 0), f"{key}: {wrong}"
        assert len(wrong) == allowed.get(key, 0), f"{key} is better: run python -m tests.test_language"


def test_violation_is_detected() -> None:
    assert violations("Tells what is mended in `told`") == ["Tells", "mended"]
    assert violations("What is it", is_description=True) == ["What"]
    assert violations("a " * 26) == [f"26 words: {('a ' * 26).strip()}"]
    assert violations("List the findings of a batch.", is_description=True) == []


if __name__ == "__main__":
    known = json.loads(EXCEPTIONS.read_text(encoding="utf-8")) if EXCEPTIONS.exists() else None
    now = Counter({key: len(wrong) for key, wrong in counted().items()})
    if known is None or all(count <= known.get(key, 0) for key, count in now.items()):
        EXCEPTIONS.write_text(json.dumps(dict(sorted(now.items())), indent=1) + "\n", encoding="utf-8")
    else:
        raise SystemExit("more violations than before: improve the texts")
