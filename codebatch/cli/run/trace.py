"""The command `trace`. It writes the timeline of a batch for trace viewers."""

from __future__ import annotations

import sys

import msgspec

from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.context import CommandContext, batch_option, with_common_options
from codebatch.cli.framework.output_files import STANDARD_OUTPUT, refuse_in_store, resolve_output, write_target
from codebatch.cli.framework.read_report import explain_option
from codebatch.errors import InvalidInput
from codebatch.model.text.quantities import human_bytes
from codebatch.work.control.trace import make_trace


class TraceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch trace`: the path and the size of the file that was written."""

    batch_id: str
    path: str
    bytes: int


@command()
@batch_option
@option("-o", "--output", metavar="FILE", default=STANDARD_OUTPUT, default_text="standard output", help="File to write")
@explain_option
@with_common_options
def trace(context: CommandContext, batch_reference: str | None, output: str) -> None:
    """Write a timeline of a batch for Perfetto.

    Open the file in https://ui.perfetto.dev or chrome://tracing.

    For an analysis, each track is a worker process, or a slot of a machine of an engine. For a task list, each track is
    a slot, which runs one task at a time; arrows are dependencies.
    """
    if output == STANDARD_OUTPUT:
        if context.as_json:
            raise InvalidInput("--json cannot be used with a trace on standard output; write it to a file with -o FILE")
        data = make_trace(*context.batch(batch_reference, "any"))
        context.display.erase_for_output()
        sys.stdout.buffer.write(data + b"\n")
        sys.stdout.flush()
        return
    target = resolve_output(output, "codebatch trace -o FILE")
    store, batch = context.batch(batch_reference, "any")
    refuse_in_store(target, store.root)
    data = make_trace(store, batch)
    write_target(target, data)
    written = TraceAnswer(batch_id=batch.id, path=output, bytes=len(data))
    line = f"{output}: {human_bytes(len(data))}; open it with https://ui.perfetto.dev"
    context.print(written, context.unless_quiet([line]))
