"""The attempts of commands: when each began, how long it took, and how it ended. By journals, which may be gone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from codebatch.model.outcome import CommandReport
from codebatch.model.work.command import CommandId
from codebatch.scheduling.work.events import Conclusion
from codebatch.scheduling.work.request_log import AttemptStop
from codebatch.store import layout
from codebatch.store.batches.journal import Began, Ran, read_journal
from codebatch.store.results.outcomes import Outcomes
from codebatch.store.work.attempts import Attempts
from codebatch.work.control.batches import WorkBatch
from codebatch.work.control.requests import named


class AttemptInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt of a task. `round` and `epoch` identify the attempt.

    - `number`: the number of the try.
    - `ended`: the type of its outcome. Without an outcome, it is `stopped`, `interrupted` or `running`. If the outcome
      is damaged, it is `unreadable`.
    - `stopped`: the reason why the attempt was ended early, or None.
    - `said`: values from its JSON output, or None.

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
    said: CommandReport | None
    log: Path


def attempts_of(found: WorkBatch, tasks: Sequence[str] = ()) -> list[AttemptInfo]:
    """The attempts of some commands of a batch, by default all, in the order of its file and of their beginnings.

    Raises InvalidInput for a command that there is not.
    """
    batch = found.batch
    attempts = Attempts(batch.plan(), Outcomes(batch.files, batch.root))
    began: dict[tuple[int, int, int], int] = {}
    ran: dict[tuple[int, int, int], Ran] = {}
    for line in read_journal(batch.files, batch.root):
        event = line.event
        if isinstance(event, Began | Ran) and event.epoch is not None:
            item = attempts.places.item(event.shard, event.start)
            if item is not None and isinstance(event, Began):
                began[item, event.round, event.epoch] = line.at_ns
            elif item is not None and isinstance(event, Ran):
                ran[item, event.round, event.epoch] = event
    concluded = attempts.read()
    ended = {(one.item, one.round, one.epoch): one for one in concluded.conclusions if one.reason != "unbegun"}
    # A damaged outcome does not say any more of which epoch it is: of the last one of its round.
    last = {place[:2]: place for place in sorted({*began, *ran})}
    damaged = {last[each] for each in concluded.unreadable if each in last}
    of_item: dict[int, list[tuple[int, int, int]]] = {}
    for place in sorted({*began, *ran, *ended}):
        of_item.setdefault(place[0], []).append(place)
    made: list[AttemptInfo] = []
    for command in named(found, tasks) if tasks else found.standing.commands:
        for place in of_item.get(command.item, ()):
            one, told = ended.get(place), ran.get(place)
            stopped = None if one is not None else command.stops.get(place[2])
            runs = command.holder is not None and place[1:] == (command.round, command.epoch)
            made.append(
                AttemptInfo(
                    task=command.id,
                    round=place[1],
                    epoch=place[2],
                    number=None if told is None else told.tried + 1,
                    began_ns=began.get(place),
                    seconds=None if told is None else told.seconds,
                    ended=_ended(one, stopped, runs=runs, is_damaged=place in damaged),
                    reason=None if one is None else one.reason,
                    exit_status=None if one is None else one.exit_status,
                    stopped=stopped,
                    memory_peak_bytes=(told.memory_peak_bytes or None) if told is not None else None,
                    said=None if one is None else one.said,
                    log=batch.root / layout.LOGS / layout.log_name(*attempts.places.place(place[0]), *place[1:]),
                )
            )
    return made


def _ended(conclusion: Conclusion | None, stopped: AttemptStop | None, *, runs: bool, is_damaged: bool) -> str:
    if runs:
        return "running"
    if conclusion is not None:
        return conclusion.type
    if stopped is not None and not is_damaged:
        return "stopped"
    return "unreadable" if is_damaged else "interrupted"
