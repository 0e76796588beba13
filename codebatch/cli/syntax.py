"""`ast` and `rules`: what the grammars and the rules of this installation say, without a batch."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import cast

import click

from codebatch.application.configuration import load_configuration
from codebatch.cli.asking import answer_document, ask
from codebatch.cli.groups import Group, answering_group
from codebatch.cli.options import Answering, SourcePath, answering, asked_batch_option, table
from codebatch.cli.reading import explain_option
from codebatch.cli.show import record_line
from codebatch.coordinator.planning import check_overrides
from codebatch.errors import InvalidInput, SourceUnreadable
from codebatch.model.likeness import closest
from codebatch.model.quantities import count_of
from codebatch.model.task import Json
from codebatch.query.filters import JsonRecord
from codebatch.store.batches import batch_ids
from codebatch.system.plugins import load_question
from codebatch.system.regular import read_regular

_FILE_BYTES_MAX = 256 << 20


@click.command()
@click.argument("path", metavar="FILE", type=SourcePath())
@click.option("--batch", "batch_reference", metavar="ID", help="The file as it is in this batch, not on disk.")
@click.option("--language", metavar="NAME", help="What to read it as, where its name says another thing or nothing.")
@explain_option
@answering
def ast(answering: Answering, path: Path, batch_reference: str | None, language: str | None) -> None:
    """The syntax tree of FILE, whole, as JSON: a flat list of nodes, parents first."""
    contexts: dict[str, bytes] = {}
    if batch_reference is None:
        name, content = os.fsencode(path), _read(path)
    else:
        name, content, contexts = ask(answering, batch_reference).content(str(path))
    if language is not None:
        contexts["attributes"] = b"language=" + language.encode()
    tree = cast("bytes", load_question("syntax_tree")(name, content, contexts))
    answering.display.make_way()
    sys.stdout.buffer.write(tree)
    sys.stdout.flush()


@click.group(cls=Group)
@answering_group
def rules() -> None:
    """The rules of lint, and one of them; trying out those of your own."""


@rules.command("list")
@click.option("--on", "only_on", is_flag=True, help="Only those that are on.")
@answering
def list_(answering: Answering, only_on: bool) -> None:
    """Every rule, as this configuration has it."""
    rows = [row for row in _every_rule() if row["on"] or not only_on]
    cells = ((row["code"], row["severity"], "on" if row["on"] else "off", row["tool"], row["summary"]) for row in rows)
    answering.print(rows, table(cells, ("code", "severity", "", "tool", "finds")))


@rules.command()
@click.argument("code")
@asked_batch_option
@answering
def show(answering: Answering, code: str, batch_reference: str | None) -> int:
    """What a rule finds and why, how grave that is here, and how often a batch, where there is one, has it."""
    every = {str(row["code"]): row for row in _every_rule()}
    if code not in every:
        meant = closest(code, every)
        hint = f"did you mean {meant!r}?" if meant else "see: codebatch rules list"
        raise InvalidInput(f"there is no rule {code!r}", hint=hint)
    rule = every[code] | cast("dict[str, object]", load_question("explain_rule")(code))
    lines = [
        f"{code} {rule['name']}".rstrip(),
        f"{rule['severity']}, {'on' if rule['on'] else 'off'}, of {rule['tool']}",
        str(rule["summary"]),
        *(["", *str(rule["explanation"]).rstrip().split("\n")] if rule["explanation"] else []),
    ]
    batch = ask(answering, batch_reference) if batch_reference or _has_batch(answering) else None
    if batch is None or "lint" not in batch.tasks:
        answering.print(rule, lines)
        why = f"batch {batch.id} has no lint" if batch else "there is no batch"
        answering.note(f"how often it is found is not known: {why}")
        return 0
    answer = batch.summary("lint")
    findings, batch_id = answer.found.codes.get(code, 0), answer.found.batch_id
    lines[2:2] = [f"{count_of(findings, 'finding')} in batch {batch_id}"]
    return answer_document(answering, answer, {**rule, "findings": findings, "batch_id": batch_id}, lines)


def _has_batch(answering: Answering) -> bool:
    return answering.place.exists() and bool(batch_ids(answering.place.open()))


@rules.command("test")
@click.argument("paths", nargs=-1, type=SourcePath(), metavar="[FILE]...")
@answering
def test(answering: Answering, paths: tuple[Path, ...]) -> int:
    """Try the rules of [[tasks.lint.rules]]: on their own `bad` and `good` sources, and on FILES as they are on disk.

    Exit status 1 where an example is not as it should be.
    """
    files = [(os.fsencode(path), _read(path)) for path in paths]
    answer = cast("dict[str, list[JsonRecord]]", load_question("test_rules")(_lint_settings(), files))
    lines = [record_line(found) for found in answer["findings"]]
    is_wrong = False
    for row in answer["rules"]:
        wrong = cast("list[dict[str, object]]", row["wrong"])
        is_wrong = is_wrong or bool(wrong)
        lines.append(f"{row['id']}: {count_of(cast('int', row['examples']), 'example')}, {len(wrong)} wrong")
        for each in wrong:
            said = "nothing is found in the bad" if each["example"] == "bad" else "something is found in the good"
            lines.append(f"  {said} example: {each['text']}")
    answering.print(answer, lines)
    if not answer["rules"]:
        answering.note("there are no rules of your own: add [[tasks.lint.rules]] to codebatch.toml")
    return 1 if is_wrong else 0


def _every_rule() -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", load_question("list_rules")(_lint_settings()))


def _lint_settings() -> dict[str, Json]:
    """What the configuration says of lint, checked. Raises InvalidConfiguration."""
    configuration = load_configuration(Path.cwd())
    settings = configuration.settings.tasks.get("lint", {})
    check_overrides(configuration.catalogue, {"lint": settings})
    return settings


def _read(path: Path) -> bytes:
    """A file as it is on disk. Raises InvalidInput where there is none, and SourceUnreadable."""
    try:
        return read_regular(path, bytes_max=_FILE_BYTES_MAX, is_link_followed=True)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    except OSError as error:
        raise SourceUnreadable(f"cannot read {path}: {error.strerror}") from error
