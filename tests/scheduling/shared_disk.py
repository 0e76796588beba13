"""The disk of a simulated batch of commands, which outlives every process: registers, leases and requests."""

from __future__ import annotations

import random
from typing import Literal

from codebatch.model.work.question import coordinator_question_digest
from codebatch.model.work.request import (
    Answer,
    Cancel,
    Open,
    Pause,
    Request,
    RequestBody,
    RequestHead,
    Set,
    Skip,
    TaskSettings,
    Unpause,
)
from codebatch.scheduling.work.command_plan import CommandPlan
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.events import AttemptOutcome, OutcomesConcluded
from tests.scheduling.faults import Faults


class SharedDisk:
    """The disk, and users who write random requests to it."""

    random: random.Random
    faults: Faults
    agenda: CommandPlan
    count: int
    conductor: Conductor
    registers: dict[tuple[int, int], AttemptOutcome | None]
    leases: dict[tuple[int, int], int]
    requests: list[Request]

    def concluded(self) -> OutcomesConcluded:
        """Return the content of all registers: outcomes, and places of unreadable registers."""
        outcomes = [outcome for outcome in self.registers.values() if outcome is not None]
        return OutcomesConcluded(outcomes, [place for place, outcome in self.registers.items() if outcome is None])

    def epochs(self) -> dict[int, int]:
        """Return the highest epoch of each item according to its leases."""
        highest: dict[int, int] = {}
        for item, epoch in self.leases:
            highest[item] = max(epoch, highest.get(item, 0))
        return highest

    def commit(self, outcome: AttemptOutcome) -> None:
        """Link a register. The first link wins, even if its content is unreadable."""
        place = outcome.item, outcome.round
        if place not in self.registers and self.random.random() < self.faults.torn:
            self.registers[place] = None
        if place in self.registers and self.registers[place] is None:
            return
        assert place not in self.registers, f"the attempt {place} has a second end"
        self.registers[place] = outcome

    def has_end(self, item: int, epoch: int) -> bool:
        outcomes = [outcome for outcome in self.registers.values() if outcome is not None]
        return any(outcome.item == item and outcome.epoch >= epoch for outcome in outcomes)

    def ask(self) -> None:
        """Write a random request."""
        self.write(self._body())

    def write(self, body: RequestBody) -> None:
        """Append a request."""
        self.requests.append(Request(RequestHead(n=len(self.requests) + 1, at_ns=0, by="somebody"), body))

    def _last_round(self, item: int) -> int:
        return max((round_ for known, round_ in self.registers if known == item), default=0)

    def _body(self) -> RequestBody:
        item = self.random.randrange(self.count)
        last = self._last_round(item)
        id_ = self.agenda.ids[item]
        kind = self.random.choice("caasooopuS" if self.random.random() < 0.8 else "o")
        if kind == "c":
            running = {
                self.agenda.ids[item]: self.conductor.last_epoch(item) for item in sorted(self.conductor.running_items)
            }
            return Cancel(attempts=running if self.random.random() < 0.5 else {})
        if kind == "a":
            known = self.registers.get((item, last))
            coordinator_question = coordinator_question_digest(
                self.random.choice(("interrupted", "stall", "exhausted")), id_, last
            )
            question = known.question if known is not None and known.question else coordinator_question
            text = self.random.choice(("again", "failed", "done", "perhaps"))
            return Answer(task=id_, round=last, question=question, text=text)
        if kind == "s":
            over = last + (self.conductor.last_attempt(item)[0] > last)
            return Skip(task=id_, round=over, marked_done=self.random.random() < 0.5)
        if kind == "p":
            return Pause()
        if kind == "u":
            return Unpause()
        if kind == "S":
            tasks = {
                self.agenda.ids[other]: TaskSettings(
                    after_round=self._last_round(other),
                    retries=self.random.randint(0, 3),
                    priority=self.random.randint(-2, 2),
                )
                for other in range(self.count)
                if self.random.random() < 0.5
            }
            return Set(max_parallel=self.random.randint(1, 4), pools={"db": self.random.randint(1, 3)}, tasks=tasks)
        over_ = last - (self.random.random() < 0.2)
        lifts: Literal["all", "named"] = self.random.choice(("all", "named"))
        return Open(rounds={id_: over_} if self.random.random() < 0.8 else {}, lifts=lifts)
