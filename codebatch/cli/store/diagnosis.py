"""The command `diagnose`. It finds damage in a store and repairs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.context import CommandContext, with_common_options
from codebatch.cli.framework.percentages import parse_percentage
from codebatch.cli.run.run import RunListener
from codebatch.errors import InvalidInput, StoreCorrupt
from codebatch.model.text.quantities import count_text
from codebatch.operations.maintenance.diagnosis import DamageReport, Diagnosis, repair_store
from codebatch.operations.maintenance.diagnosis import diagnose_store as diagnose_store
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.runs.execution import ExecutionSettings

_NAMES_SHOWN_MAX = 3


@command()
@option("--full", "is_full", is_flag=True, help="Verify all data, not only metadata and sizes")
@option(
    "--sample",
    "share",
    callback=parse_percentage,
    default="",
    metavar="PERCENT",
    help="Also verify the data of this percentage of the result files",
    details="At least one file is verified. Each call verifies different files.",
)
@option("--repair", "is_repairing", is_flag=True, help="Verify all data, and repair damaged result files")
@common_option("jobs")
@with_common_options
def diagnose(context: CommandContext, is_full: bool, share: float, is_repairing: bool, jobs: int | None) -> int:
    """Check the store for damage and repair it.

    Checks metadata, snapshots and the result files of all batches. If several batches share a result file, it is
    counted once and listed with all its names.

    --repair replaces a damaged result file under all its names. It copies an identical file, or runs the task again.

    Exit status 4 if damage remains.
    """
    if share and (is_full or is_repairing):
        raise InvalidInput(
            f"--sample cannot be used with {'--full' if is_full else '--repair'}, which reads every byte"
        )
    store, signal_status = context.store_place.open(), 0
    if is_repairing:
        execution = ExecutionSettings(configuration=load_configuration(Path.cwd()), jobs=jobs)
        listener = RunListener(context)
        diagnosis, signal_status = repair_store(execution, store, listener)
    else:
        diagnosis = diagnose_store(store, is_full=is_full, share=share)
    context.print(diagnosis, _diagnosis_lines(diagnosis))
    if diagnosis.damaged and not signal_status:
        verb = "is" if len(diagnosis.damaged) == 1 else "are"
        message = f"{count_text(len(diagnosis.damaged), 'file')} of the store {verb} damaged"
        raise StoreCorrupt(message, hint=diagnosis.damaged[0].hint)
    return signal_status


def _diagnosis_lines(diagnosis: Diagnosis) -> Iterator[str]:
    for word, listed in (("repaired", diagnosis.repaired), ("damaged", diagnosis.damaged)):
        for damage in listed:
            yield f"{word:8} {_damaged_names_text(damage)}: {damage.problem}"
    files = f"{count_text(diagnosis.files, 'shard file')} ({count_text(diagnosis.names, 'path')})"
    batches = count_text(diagnosis.batches, "batch", "batches")
    counts = {"damaged": len(diagnosis.damaged), "repaired": len(diagnosis.repaired)}
    outcome = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count) or "no damage"
    if outcome == "no damage" and not diagnosis.full:
        sampled = f" or in the data of {diagnosis.fully_read:,} of these files" if diagnosis.fully_read else ""
        outcome += f" found in metadata and sizes{sampled}; verify all data with --full"
    yield f"{batches}, {count_text(diagnosis.snapshots, 'snapshot')}, {files}: {outcome}"


def _damaged_names_text(damage: DamageReport) -> str:
    more = len(damage.names) - _NAMES_SHOWN_MAX
    return ", ".join(damage.names[:_NAMES_SHOWN_MAX]) + (f" and {count_text(more, 'more name')}" if more > 0 else "")
