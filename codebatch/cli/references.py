"""`references`: where a name stands in the files of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import click

from codebatch.cli.asking import ask
from codebatch.cli.options import Answering, answering, asked_batch_option
from codebatch.errors import InvalidInput, ObjectMissing
from codebatch.model.entry import display_path, path_fields
from codebatch.query.completeness import Completeness
from codebatch.query.filters import JsonRecord
from codebatch.query.records import BatchRecords
from codebatch.system.plugins import load_question

ROLES = ("definition", "import", "call", "reference")


@click.command()
@click.argument("name")
@asked_batch_option
@click.option("--role", "roles", multiple=True, type=click.Choice(ROLES), help="Only these; may be repeated.")
@click.option("--path", "path", metavar="TEXT", default="", help="Only paths that contain this.")
@answering
def references(answering: Answering, name: str, batch_reference: str | None, roles: tuple[str, ...], path: str) -> int:
    """Every place where NAME stands as a name in the files of a batch, and as what.

    By name alone: what else is called so is told too. Comments and strings are no names.
    """
    if not name or any(character.isspace() for character in name):
        raise InvalidInput(f"{name!r} is no name", hint="name one identifier, without its scope")
    question = ask(answering, batch_reference)
    lost: list[bytes] = []
    found = [row for row in _found(answering, question.records, name, path, lost) if not roles or row["role"] in roles]
    files = len(question.records.items)
    whole = Completeness(planned=files, done=files, lost=len(lost))
    as_what = f" as {' or '.join(roles)}" if roles else ""
    where = f" whose path contains {path!r}" if path else ""
    return question.answer_rows(
        found, map(_line, found), whole, if_none=f"{name} stands{as_what} in no file of the batch{where}"
    )


def _found(
    answering: Answering, records: BatchRecords, name: str, path: str, lost: list[bytes]
) -> Iterator[JsonRecord]:
    """The rows, file by file; of which files the content is not there is noted in `lost`."""
    question = load_question("references_in")
    objects = records.store.objects()
    for item, entry in enumerate(records.items):
        if path not in display_path(entry.path):
            continue
        try:
            content = objects.read(entry.object, entry.size)
        except ObjectMissing as error:
            answering.note(f"{display_path(entry.path)} is passed over: {error.message}")
            lost.append(entry.path)
            continue
        text, encoded = path_fields(entry.path)
        place: JsonRecord = {"path": text} if isinstance(text, str) else {"path_b64": encoded}
        answer = question(name, entry.path, content, records.plan.context_of(item))
        for row in cast("Iterator[JsonRecord]", answer):
            yield {**place, "name": name, **row}


def _line(row: JsonRecord) -> str:
    scope = f" in {row['scope']}" if row["scope"] else ""
    return f"{row.get('path', row.get('path_b64'))}:{row['line']}:{row['column']}: {row['role']}{scope}"
