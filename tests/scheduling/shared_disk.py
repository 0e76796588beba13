"""What outlives every process of a world of commands: registers, leases, and what people asked."""

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
    Unpause,
)
from codebatch.scheduling.work.command_plan import CommandPlan
from codebatch.scheduling.work.conductor import Conductor
from codebatch.scheduling.work.events import AttemptOutcome, OutcomesConcluded
from tests.scheduling.faults import Faults


class SharedDisk:
    """The disk, and people who write requests to it."""

    random: random.Random
    faults: Faults
    agenda: CommandPlan
    count: int
    conductor: Conductor
    registers: dict[tuple[int, int], AttemptOutcome | None]
    leases: dict[tuple[int, int], int]
    requests: list[Request]

    def concluded(self) -> OutcomesConcluded:
        """What the registers say."""
        known = [one for one in self.registers.values() if one is not None]
        return OutcomesConcluded(known, [place for place, one in self.registers.items() if one is None])

    def epochs(self) -> dict[int, int]:
        """The highest epoch of each item, by leases alone."""
        found: dict[int, int] = {}
        for item, epoch in self.leases:
            found[item] = max(epoch, found.get(item, 0))
        return found

    def commit(self, one: AttemptOutcome) -> None:
        """Link a register: the first one wins, be it that its bytes say nothing."""
        place = one.item, one.round
        if place not in self.registers and self.random.random() < self.faults.torn:
            self.registers[place] = None
        if place in self.registers and self.registers[place] is None:
            return
        assert place not in self.registers, f"a second end of round {place}"
        self.registers[place] = one

    def has_end(self, item: int, epoch: int) -> bool:
        return any(one is not None and one.item == item and one.epoch >= epoch for one in self.registers.values())

    def ask(self) -> None:
        """Somebody asks something."""
        self.write(self._body())

    def write(self, body: RequestBody) -> None:
        """Make a request the next one."""
        self.requests.append(Request(RequestHead(n=len(self.requests) + 1, at_ns=0, by="somebody"), body))

    def _body(self) -> RequestBody:
        item = self.random.randrange(self.count)
        last = max((round_ for known, round_ in self.registers if known == item), default=0)
        id_ = self.agenda.ids[item]
        kind = self.random.choice("caasooopuS" if self.random.random() < 0.8 else "o")
        if kind == "c":
            running = {
                self.agenda.ids[item]: self.conductor.last_epoch(item) for item in sorted(self.conductor.running_items)
            }
            return Cancel(attempts=running if self.random.random() < 0.5 else {})
        if kind == "a":
            known = self.registers.get((item, last))
            ours = coordinator_question_digest(self.random.choice(("interrupted", "stall", "exhausted")), id_, last)
            question = known.question if known is not None and known.question else ours
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
            return Set(max_parallel=self.random.randint(1, 4), pools={"db": self.random.randint(1, 3)})
        over_ = last - (self.random.random() < 0.2)
        lifts: Literal["all", "named"] = self.random.choice(("all", "named"))
        return Open(rounds={id_: over_} if self.random.random() < 0.8 else {}, lifts=lifts)
