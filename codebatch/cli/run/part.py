"""The answer of `run --part`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from codebatch import __version__
from codebatch.cli.framework.context import CommandContext
from codebatch.errors import InvalidInput
from codebatch.model.part import PartChoice, parse_part
from codebatch.model.text.quantities import count_text, human_bytes
from codebatch.operations.runs.execution import Listener
from codebatch.operations.runs.parts import PART_SECONDS_MIN, PartResult, run_part
from codebatch.operations.runs.run_request import RunArguments, prepare_request


class PartAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch run --part`.

    - `part`: the number of the part and of all parts, such as `3/8`.
    - `file`: the path of the part file, or null if a signal ended the run early.
    - `results`, `failures`: the numbers of results in the part, and of those that failed.
    - `reused`, `executed`: the numbers of results that were taken from earlier batches, or produced by this run.
    """

    part: str
    file: str | None
    bytes: int
    batch_id: str
    plan_digest: str
    shards: int
    files: int
    results: int
    failures: int
    reused: int
    executed: int
    seconds: float


def answer_part(
    context: CommandContext,
    arguments: RunArguments,
    listener: Listener,
    part: str | None,
    part_output: str | None,
    refused: Mapping[str, object],
    *,
    forces_rerun: bool,
    allow_empty: bool,
) -> int:
    """Run a part and print the result. Return the exit status.

    `refused` are the values of options that cannot be used with --part.
    """
    for option, value in refused.items():
        if value:
            raise InvalidInput(f"{option} cannot be used with --part")
    if part is None:
        raise InvalidInput("--part-output is used without --part", hint="for example: codebatch run --part 1/4 PATH")
    choice = _parse_choice(part)
    output = None if part_output is None else _output_path(part_output)
    result = run_part(
        prepare_request(*arguments),
        choice,
        output,
        listener,
        version=__version__,
        forces_rerun=forces_rerun,
        allow_empty=allow_empty,
    )
    context.batches.append(result.batch)
    file = result.file
    answer = PartAnswer(
        part=choice.text,
        file=None if file is None else str(file.path),
        bytes=0 if file is None else file.bytes,
        batch_id=result.batch.id,
        plan_digest=result.batch.about.plan_digest,
        shards=result.shards,
        files=result.items,
        results=result.results,
        failures=0 if file is None else file.header.failed,
        reused=result.executed.reused,
        executed=result.executed.executed,
        seconds=result.seconds,
    )
    lines = []
    if file is not None:
        size = f"{count_text(result.items, 'file')}, {count_text(result.results, 'result')}, {human_bytes(file.bytes)}"
        lines = [str(file.path), f"part {choice.text}: {size}, {result.seconds:.1f} s"]
    context.print(answer, lines, name="run-part")
    _report(context, result)
    return result.executed.signal_status


def _report(context: CommandContext, result: PartResult) -> None:
    if result.file is None:
        context.note("stopped; to continue, run the same command again")
        return
    if failed := result.file.header.failed:
        context.report(
            f"{failed:,} of {count_text(result.results, 'result')} failed; see: "
            f"codebatch errors --batch {result.batch.id}"
        )
    choice = result.choice
    better = max(1, int(result.estimated_seconds / PART_SECONDS_MIN))
    if not result.shards:
        context.note(f"the part is empty: the batch has fewer shards than {choice.count:,} parts")
    elif choice.count > 1 and result.estimated_seconds / choice.count < PART_SECONDS_MIN:
        context.note(
            f"a part has less than {PART_SECONDS_MIN:.0f} s of estimated work; "
            + (f"better: --part K/{better}" if better > 1 else "a run without --part is better")
        )


def _parse_choice(text: str) -> PartChoice:
    try:
        return parse_part(text, os.environ)
    except ValueError as error:
        raise InvalidInput(f"--part {text!r}: {error}", hint="for example: codebatch run --part 3/8 PATH") from error


def _output_path(text: str) -> Path:
    path = Path(text)
    is_other = path.exists() and not path.is_dir() and not path.is_file()
    if not text or is_other or not (path if path.is_dir() else path.parent).is_dir():
        raise InvalidInput(
            f"cannot write the part file {text!r}: no such directory, or not a regular file",
            hint="for example: codebatch run --part 3/8 --part-output part.cbpart PATH",
        )
    return path
