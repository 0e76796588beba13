"""`diagnose`: what of a store is damaged, and mending it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from codebatch.application.configuration import load_configuration
from codebatch.application.diagnosis import Damage, Diagnosis, repair
from codebatch.application.diagnosis import diagnose as diagnose_store
from codebatch.application.execution import Execution
from codebatch.cli.options import Answering, answering
from codebatch.cli.run import Teller
from codebatch.cli.shares import share_of
from codebatch.errors import InvalidInput, StoreCorrupt
from codebatch.model.quantities import count_of

_NAMES_SHOWN_MAX = 3


@click.command()
@click.option("--full", "is_full", is_flag=True, help="Read every byte of it, not lengths and documents alone.")
@click.option(
    "--sample",
    "share",
    callback=share_of,
    default="",
    metavar="PERCENT",
    help="Read every byte of so many of the shard files, others each time; at least one.",
)
@click.option("--repair", "is_repairing", is_flag=True, help="Read every byte, and mend damaged shard files.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), help="Worker processes. Default: the usable cores.")
@answering
def diagnose(answering: Answering, is_full: bool, share: float, is_repairing: bool, jobs: int | None) -> int:
    """Look for damage: in documents, in snapshots, and in the files that hold the results of all batches.

    A file that several batches share counts once, with all its names. --repair replaces it under each of them: by an
    equal one, or by executing again what it held. Exit status 4 where something is damaged and was not mended.
    """
    if share and (is_full or is_repairing):
        raise InvalidInput(
            f"--sample cannot be used with {'--full' if is_full else '--repair'}, which reads every byte"
        )
    store, signal_status = answering.place.open(), 0
    if is_repairing:
        execution = Execution(configuration=load_configuration(Path.cwd()), jobs=jobs)
        teller = Teller(answering)
        diagnosis, signal_status = repair(execution, store, teller)
    else:
        diagnosis = diagnose_store(store, is_full=is_full, share=share)
    answering.print(diagnosis, _lines(diagnosis))
    if diagnosis.damaged and not signal_status:
        told = f"{count_of(len(diagnosis.damaged), 'file')} of the store {_are(len(diagnosis.damaged))} damaged"
        raise StoreCorrupt(told, hint=diagnosis.damaged[0].hint)
    return signal_status


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    for word, listed in (("repaired", diagnosis.mended), ("damaged", diagnosis.damaged)):
        for each in listed:
            yield f"{word:8} {_names(each)}: {each.problem}"
    files = f"{count_of(diagnosis.files, 'shard file')} ({count_of(diagnosis.names, 'name')})"
    batches = count_of(diagnosis.batches, "batch", "batches")
    counts = {"damaged": len(diagnosis.damaged), "repaired": len(diagnosis.mended)}
    found = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count) or "no damage"
    if found == "no damage" and not diagnosis.full:
        sampled = f" or in the data of {diagnosis.read:,} of these files" if diagnosis.read else ""
        found += f" found in metadata and sizes{sampled}; verify all data with --full"
    yield f"{batches}, {count_of(diagnosis.snapshots, 'snapshot')}, {files}: {found}"


def _names(damage: Damage) -> str:
    more = len(damage.names) - _NAMES_SHOWN_MAX
    return ", ".join(damage.names[:_NAMES_SHOWN_MAX]) + (f" and {count_of(more, 'more name')}" if more > 0 else "")


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
