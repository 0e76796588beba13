"""`import`: what another program found, beside what was found here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from codebatch.application.execution import Execution
from codebatch.application.importing import Unimportable, import_findings
from codebatch.cli.options import Answering, answering, batch_option
from codebatch.cli.run import Teller, executing
from codebatch.errors import BatchIncomplete, InvalidInput
from codebatch.model.imported import FORMATS, IMPORT_BYTES_MAX, ImportFormat, LeftOut
from codebatch.model.quantities import count_of
from codebatch.store.batches import resolve_batch
from codebatch.system.regular import read_regular


class ImportAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What `import --json` says: the batch that has the findings, and what of the file is none.

    `left_out` is null where that is not known any more; `action` is `ran` or `up to date`.
    """

    batch_id: str
    snapshot_id: str
    task: str
    format: str
    findings: int
    left_out: LeftOut | None
    status: str
    action: str


@click.command("import")
@click.argument("form", metavar="FORMAT", type=click.Choice(FORMATS))
@click.argument("file")
@click.option("--as", "task", metavar="TASK", required=True, help="The task that the findings are of, such as eslint.")
@batch_option
@click.option(
    "--root",
    metavar="DIR",
    help="Where the tree lay for the program that wrote FILE: absolute paths below it are taken. Default: where it is.",
)
@click.option("--allow-failed", is_flag=True, help="Take a file that says that the program did not do all.")
@answering
@executing
def import_(
    answering: Answering,
    execution: Execution,
    form: ImportFormat,
    file: str,
    task: str,
    batch_reference: str | None,
    root: str | None,
    allow_failed: bool,
) -> int:
    """Take in what another program found: FILE (- is standard input) is sarif, checkstyle, rdjson or jsonl.

    A new batch over the same snapshot has all that the batch has, earlier imports too, and the findings as records of
    TASK; it is the latest then. The same TASK again replaces what it was. What is of no file of the snapshot is counted
    and told.

    A later `run` is without it: import what the tools say of the tree that was run.
    """
    data = _read(file)
    store = answering.place.open()
    start = resolve_batch(store, batch_reference, answering.note, whole=True)
    try:
        imported = import_findings(
            execution,
            store,
            start,
            data,
            form=form,
            task=task,
            root=None if root is None else os.fsencode(os.path.abspath(root)),
            allow_failed=allow_failed,
            listener=Teller(answering),
        )
    except (BatchIncomplete, Unimportable) as error:
        raise type(error)(f"{file}: {error.message}", hint=error.hint) from error
    if imported.signal_status:
        answering.note("stopped; nothing was imported")
        return imported.signal_status
    answering.batches.append(imported.batch)
    for text in _left_out(imported.left_out):
        answering.tell(text)
    answer = ImportAnswer(
        batch_id=imported.batch.id,
        snapshot_id=imported.batch.about.snapshot_id,
        task=task,
        format=form,
        findings=imported.findings,
        left_out=imported.left_out,
        status=imported.standing.state.value,
        action=imported.action,
    )
    done = "" if imported.action == "ran" else ": up to date, nothing to do"
    answering.print(answer, [f"{count_of(imported.findings, 'finding')} of {task} in {imported.batch.id}{done}"])
    if imported.shortfall is not None:
        raise imported.shortfall
    if imported.findings:
        answering.note(f"next: codebatch query diagnostics --task {task}")
    return 0


def _read(file: str) -> bytes:
    """The bytes of a file, or of standard input. Raises InvalidInput."""
    if file == "-":
        data = sys.stdin.buffer.read(IMPORT_BYTES_MAX + 1)
        if len(data) > IMPORT_BYTES_MAX:
            raise InvalidInput(f"standard input has more than {IMPORT_BYTES_MAX:,} bytes, the most that is imported")
        return data
    try:
        return read_regular(Path(file), bytes_max=IMPORT_BYTES_MAX, is_link_followed=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidInput(f"cannot read {file}: {reason}") from error


def _left_out(left_out: LeftOut | None) -> Iterator[str]:
    """What of the file is no finding, and why."""
    if left_out is None:
        yield "how much of the file was left out is not known any more"
        return
    if left_out.no_file:
        examples = ", ".join(left_out.examples)
        yield f"left out: {count_of(left_out.no_file, 'finding')} of no file of the batch" + (
            f" (such as {examples}); --root DIR says where the tree lay" if examples else ""
        )
    if left_out.no_place:
        yield f"left out: {count_of(left_out.no_place, 'finding')} in lines that their files do not have"
    if left_out.dismissed:
        yield f"left out: {left_out.dismissed:,} that the file says are no findings"
    if left_out.has_failed:
        yield "the file says that the program did not do all: what it does not say may be there all the same"
