"""`report`: what a batch found as one page."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import click
import msgspec

from codebatch.cli.asking import answer_document, answer_written, ask
from codebatch.cli.options import Answering, answering, asked_batch_option
from codebatch.errors import InvalidInput
from codebatch.model.quantities import human_bytes
from codebatch.report.making import make_report
from codebatch.system.files import RealFiles

_STANDARD_OUTPUT = "-"


class ReportWritten(msgspec.Struct, frozen=True, kw_only=True):
    """`report`: the page that was written, where, and how long it is. How true it is, as in SummaryAnswer."""

    batch_id: str
    path: str
    bytes: int
    complete: bool
    percent: float
    stale: bool | None
    paths: tuple[str, ...]


@click.command()
@asked_batch_option
@click.option("-o", "--output", metavar="FILE", required=True, help="Where to; - is standard output.")
@answering
def report(answering: Answering, batch_reference: str | None, output: str) -> int:
    """What a batch found as one HTML page, which needs no network: where to look first, a map of the code, functions,
    copies side by side, which directory imports which, findings by rule.

    A file that is there is replaced, in one step. The same batch gives the same page, while the history of its tree is
    the same.
    """
    if output == _STANDARD_OUTPUT:
        if answering.as_json:
            raise InvalidInput("--json tells where a page was written, and standard output is taken by the page")
        answer = make_report(ask(answering, batch_reference))
        page = answer.found

        def write() -> None:
            sys.stdout.buffer.write(page)

        return answer_written(answering, answer, write)
    target = _target(output)
    batch = ask(answering, batch_reference)
    if target.is_relative_to(os.path.realpath(batch.question.store.root)):
        raise InvalidInput(f"{output!r} is in the store", hint="name a file outside of it")
    answer = make_report(batch)
    RealFiles().write_atomic(target, answer.found)
    size = len(answer.found)
    document: dict[str, object] = {"batch_id": answer.question.batch.id, "path": output, "bytes": size}
    return answer_document(answering, answer, document, [f"{output}: {human_bytes(size)}"])


def _target(output: str) -> Path:
    """Where a page goes: behind a link, if it is one. Raises InvalidInput where it cannot."""
    target = Path(os.path.realpath(output))
    if not output or target.is_dir():
        raise InvalidInput(f"{output!r} is no name of a file", hint="such as: codebatch report -o report.html")
    if not target.parent.is_dir():
        raise InvalidInput(f"there is no directory {str(target.parent)!r} to write {target.name!r} into")
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        raise InvalidInput(f"{output!r} is no plain file", hint="standard output is: codebatch report -o -")
    return target
