"""Estimates of the durations of commands. They are based on this batch and on earlier batches in the same directory."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from codebatch.errors import StoreError
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.documents import DocumentError
from codebatch.model.entry import Entry
from codebatch.model.plan import plan_items
from codebatch.model.work.command import Command, CommandId, decode_command, encode_command
from codebatch.model.work.request import reloaded_command
from codebatch.model.work.work_batch import Work
from codebatch.scheduling.work.command_plan import CommandPlan
from codebatch.scheduling.work.estimate import Eta, RemainingWork, forecast_remaining
from codebatch.store.batches.batch_directory import BatchDir, load_batch_snapshot
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.work.durations import CommandDuration, CommandDurations, program_name
from codebatch.store.work.work_batches import CommandDefinitions, iter_reloads

PROGRAMS_READ_MAX = 500
"""Maximum number of commands of unknown duration for which the name of their program is read from the definition.

If there are more such commands, none of their definitions is read.
"""


class DefinedCommand(NamedTuple):
    """A command and the digest of its definition.

    `program` is a function that reads the name of its program. It is called only if the command's durations are
    unknown.
    """

    id: CommandId
    definition: Digest
    program: Callable[[], str]


class DurationEstimator:
    """Estimator of the durations of the commands of one batch."""

    def __init__(self, durations: CommandDurations, work: Work, commands: Sequence[DefinedCommand]) -> None:
        """Load known durations. `commands` are the commands of the batch in item order.

        If requests add commands later, their durations are unknown until one of them has finished.
        """
        self._durations = durations
        self._commands = commands
        self._known_durations = [durations.command_seconds(each.id, each.definition) for each in commands]
        unseen = [item for item, known in enumerate(self._known_durations) if not known]
        self._program_names: dict[int, str] = {}
        for item in unseen if len(unseen) <= PROGRAMS_READ_MAX else ():
            with contextlib.suppress(StoreError, DocumentError):
                self._program_names[item] = commands[item].program()
        for item in unseen:
            declared = work.task_policy(commands[item].id).expected_seconds
            self._known_durations[item] = (
                (declared,) if declared else durations.program_seconds(self._program_names.get(item, ""))
            )
        self._seen_seconds: list[float] = []
        self._ratios: list[float] = []

    @property
    def estimated_seconds(self) -> list[float]:
        """The estimated seconds of each item.

        An unknown duration is estimated by the mean of the known durations.
        """
        known = [_median(durations) for durations in self._known_durations if durations]
        other = sum(known) / len(known) if known else 1.0
        return [_median(durations) if durations else other for durations in self._known_durations]

    def expected(self, item: int) -> float | None:
        """Return the estimated seconds of an item.

        Return None if no duration is recorded for the item and no command has finished yet.
        """
        samples = self._known(item) or self._seen_seconds
        return round(_median(samples), 3) if samples else None

    def record_duration(self, item: int, seconds: float) -> None:
        """Record the duration of a finished command."""
        if known := self._known(item):
            self._ratios.append(max(seconds, 0.01) / max(_median(known), 0.01))
        self._seen_seconds = [*self._seen_seconds[-31:], seconds]
        for command in self._commands[item : item + 1]:
            name = self._program_names.get(item, "")
            self._durations.add(CommandDuration(command.id, command.definition, name, seconds))

    def _known(self, item: int) -> Sequence[float]:
        return self._known_durations[item] if item < len(self._commands) else ()

    def save_durations(self) -> None:
        """Save the recorded durations for later batches."""
        self._durations.save_durations()

    def make_forecast(
        self,
        agenda: CommandPlan,
        waiting: Sequence[int],
        running: Mapping[int, float],
        delays: Mapping[int, float] | None = None,
    ) -> Eta | None:
        """Return an estimate of the remaining time of waiting and running items. Return None if no duration is known.

        `running` maps items to the seconds since their start, and `delays` to the seconds until their pools open.
        """
        samples = {item: self._known(item) or self._seen_seconds for item in (*waiting, *running)}
        remaining = RemainingWork(
            waiting=waiting, running=running, samples=samples, ratios=self._ratios, delays=delays or {}
        )
        return forecast_remaining(agenda, remaining)


def load_estimator(store: StoreDir, batch: BatchDir, work: Work) -> DurationEstimator:
    """Return an estimator for a work batch. Raises StoreCorrupt."""
    objects = store.objects()
    reloads = list(iter_reloads(batch))

    def defined_now(command: Command) -> DefinedCommand:
        digest = digest_bytes(encode_command(command))
        return DefinedCommand(command.id, digest, functools.partial(program_name, command))

    def defined(entry: Entry) -> DefinedCommand:
        command = reloaded_command(reloads, entry.text)
        if command is not None:
            return defined_now(command)
        read = functools.partial(objects.read, entry.object, entry.size)
        return DefinedCommand(CommandId(entry.text), entry.object, lambda: program_name(decode_command(read())))

    commands = [*map(defined, plan_items(load_batch_snapshot(store, batch).entries))]
    definitions = CommandDefinitions(store, batch)
    commands += [defined_now(definitions.read(id_)) for id_ in definitions.added]
    return DurationEstimator(CommandDurations(store, work.root), work, commands)


def _median(values: Sequence[float]) -> float:
    """Return the median. The module `statistics` is not used, because importing it is slow."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
