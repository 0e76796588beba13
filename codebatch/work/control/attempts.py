"""The attempts of commands, each with start, duration and outcome.

Start and duration are read from journals. They are unknown if the journals have been deleted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec

from codebatch.model.outcome import CommandReport
from codebatch.model.work.command import CommandId
from codebatch.query.status.work_status import CommandStatus
from codebatch.scheduling.work.events import AttemptOutcome, OutcomesConcluded
from codebatch.scheduling.work.request_log import AttemptStop
from codebatch.store import layout
from codebatch.store.batches.journal import Began, Ran, read_journal
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.work.attempts import AttemptReader
from codebatch.work.control.batches import WorkBatch
from codebatch.work.control.requests import find_commands


class AttemptInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt of a task. `round` and `epoch` identify the attempt.

    - `number`: the number of the try: 1, plus the number of failures before. An interrupted attempt is repeated with
      the same number. If a request or an answer retries the task, numbers start again from 1.
    - `ended`: the type of the outcome, such as `failed`. An attempt without an outcome is `stopped`, `interrupted` or
      `running`. If the outcome is damaged, `ended` is `unreadable`.
    - `stopped`: the reason why the attempt was ended early, or None.
    - `notes`: the limit that ended the attempt, and what was ignored, cut or replaced by a default.
    - `report`: values that the key `result` of the task extracts from the output, or None.

    Values that are recorded only in journals are None if the journals no longer exist.
    """

    task: CommandId
    round: int
    epoch: int
    number: int | None
    began_ns: int | None
    seconds: float | None
    ended: str
    reason: str | None
    exit_status: int | None
    stopped: AttemptStop | None
    memory_peak_bytes: int | None
    report: CommandReport | None
    notes: tuple[str, ...] = ()
    log: Path


def list_attempts(work_batch: WorkBatch, tasks: Sequence[str] = ()) -> list[AttemptInfo]:
    """Return the attempts of some commands, by default of all commands.

    The attempts are sorted by the order of commands in the list, then by start. Raises InvalidInput for an unknown
    command.
    """
    batch = work_batch.batch
    attempts = AttemptReader(batch.plan(), OutcomeRegisters(batch.files, batch.root))
    began: dict[tuple[int, int, int], int] = {}
    durations: dict[tuple[int, int, int], Ran] = {}
    for line in read_journal(batch.files, batch.root):
        event = line.event
        if isinstance(event, Began | Ran) and event.epoch is not None:
            item = attempts.places.item_at_place(event.shard, event.start)
            if item is not None and isinstance(event, Began):
                began[item, event.round, event.epoch] = line.at_ns
            elif item is not None and isinstance(event, Ran):
                durations[item, event.round, event.epoch] = event
    concluded = attempts.read()
    ended = {
        (conclusion.item, conclusion.round, conclusion.epoch): conclusion
        for conclusion in concluded.conclusions
        if conclusion.reason != "unbegun"
    }
    commands = find_commands(work_batch, tasks) if tasks else work_batch.standing.commands
    unrecorded = _unrecorded_attempts(commands, concluded, {(item, epoch) for item, _, epoch in {*began, *durations}})
    # A damaged outcome lacks its epoch. The epoch is assumed to be that of the last attempt of its round.
    last = {place[:2]: place for place in sorted({*began, *durations, *unrecorded})}
    damaged = {last[place] for place in concluded.unreadable if place in last}
    attempts_of_item: dict[int, list[tuple[int, int, int]]] = {}
    for place in sorted({*began, *durations, *ended, *unrecorded}):
        attempts_of_item.setdefault(place[0], []).append(place)
    attempt_infos: list[AttemptInfo] = []
    for command in commands:
        for place in attempts_of_item.get(command.item, ()):
            conclusion, journal_entry = ended.get(place), durations.get(place)
            stopped = None if conclusion is not None else command.stops.get(place[2])
            runs = command.holder is not None and place[1:] == (command.round, command.epoch)
            attempt_infos.append(
                AttemptInfo(
                    task=command.id,
                    round=place[1],
                    epoch=place[2],
                    number=None if journal_entry is None else journal_entry.tried + 1,
                    began_ns=began.get(place),
                    seconds=None if journal_entry is None else journal_entry.seconds,
                    ended=_attempt_end_text(conclusion, stopped, runs=runs, is_damaged=place in damaged),
                    reason=None if conclusion is None else conclusion.reason,
                    exit_status=None if conclusion is None else conclusion.exit_status,
                    stopped=stopped,
                    memory_peak_bytes=(journal_entry.memory_peak_bytes or None) if journal_entry is not None else None,
                    report=None if conclusion is None else conclusion.said,
                    notes=_attempt_notes(command, conclusion),
                    log=batch.root
                    / layout.LOGS
                    / layout.log_name(*attempts.places.place_of_item(place[0]), *place[1:]),
                )
            )
    return attempt_infos


def _unrecorded_attempts(
    commands: Sequence[CommandStatus], concluded: OutcomesConcluded, recorded: set[tuple[int, int]]
) -> list[tuple[int, int, int]]:
    """Return the attempts that took a lease and left nothing else, as (item, round, epoch).

    `recorded` are the attempts in journals, as (item, epoch). A worker that is killed can lose the last lines of its
    journal, but its lease is on disk before its command starts.
    """
    rounds: dict[int, dict[int, int]] = defaultdict(dict)
    for one in concluded.conclusions:
        rounds[one.item][one.epoch] = one.round
    unrecorded: list[tuple[int, int, int]] = []
    for command in commands:
        ended = rounds[command.item]
        for epoch in range(1, command.epoch + 1):
            if epoch not in ended and (command.item, epoch) not in recorded:
                earlier = (round_ for ended_epoch, round_ in ended.items() if ended_epoch < epoch)
                unrecorded.append((command.item, 1 + max(earlier, default=0), epoch))
    return unrecorded


def _attempt_notes(command: CommandStatus, conclusion: AttemptOutcome | None) -> tuple[str, ...]:
    """Return the notes of an attempt. Those of the last one also name the limit that ended its waits."""
    if conclusion is None:
        return ()
    return command.notes if conclusion.round == command.ended else conclusion.notes


def _attempt_end_text(
    conclusion: AttemptOutcome | None, stopped: AttemptStop | None, *, runs: bool, is_damaged: bool
) -> str:
    if runs:
        return "running"
    if conclusion is not None:
        return conclusion.type
    if stopped is not None and not is_damaged:
        return "stopped"
    return "unreadable" if is_damaged else "interrupted"
