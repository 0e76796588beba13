"""Simulated batches of commands that run to their end, with checks after every step."""

from __future__ import annotations

from codebatch.model.work.request import Open, Set
from codebatch.scheduling.actions import EndBroken, EndDrained
from codebatch.scheduling.events import DrainRequested
from codebatch.scheduling.lifecycle import BatchState, CommandState
from codebatch.scheduling.work.command_plan import SLOTS_POOL
from codebatch.scheduling.work.events import SignalReceived
from tests.scheduling.stream import check_told
from tests.scheduling.work.commands import World

STEPS_MAX = 20_000
STATES_OVER = (CommandState.READY, CommandState.RUNNING, CommandState.WAITING)


class CheckedWorld(World):
    """A world with checks of its invariants."""

    def is_at_rest(self) -> bool:
        """Return whether the coordinator has ended, and its workers are idle and have no undelivered messages."""
        return self.end is not None and not self.inbox and all(worker.start is None for worker in self.mine.values())

    def check(self) -> None:
        """Check the invariants of a batch whose coordinator has ended."""
        if isinstance(self.end, EndBroken | EndDrained):
            return
        assert all(used == 0 for used in self.used().values()), f"tokens are left: {self.used()}"
        states = [self.conductor.state(item) for item in range(self.count)]
        assert not set(states) & set(STATES_OVER), states
        batch_state = self.conductor.batch_state()
        assert batch_state not in (BatchState.RUNNING, BatchState.PENDING), batch_state
        is_stopped = self.agenda.on_failure == "stop" and CommandState.FAILED in states
        is_stopped = is_stopped or self.conductor.is_expired
        for item, state in enumerate(states):
            if state is CommandState.PENDING and not is_stopped:
                waits = (CommandState.PENDING, CommandState.BLOCKED, CommandState.CANCELLED)
                assert any(states[need.item] in waits for need in self.agenda.needs[item]), (
                    f"the pending item {item} waits for nothing"
                )

    def used(self) -> dict[str, int]:
        """Return the number of tokens of each pool that are in use."""
        return dict(self.conductor._queue.used)

    def check_tokens(self) -> None:
        """Check that no pool is overdrawn, except by adopted commands, and that an exclusive command runs alone."""
        assert min(self.used().values()) >= 0, "more tokens were returned than were taken"
        if self.conductor.adopted_items or any(isinstance(request.body, Set) for request in self.requests):
            return
        over = {pool for pool, used in self.used().items() if used > self.agenda.capacity[pool]}
        assert not over, f"more tokens of {over} are in use than exist"
        active = [worker.start.item for worker in self.mine.values() if worker.start and not worker.asks]
        assert len(active) <= self.agenda.capacity[SLOTS_POOL], "more commands run at once than allowed"
        assert len(active) < 2 or not any(self.agenda.policies[item].exclusive for item in active), (
            "an exclusive command does not run alone"
        )

    def check_starts(self) -> None:
        """Check that no command was started more often than its policy allows."""
        for (item, round_), count in self.execs.items():
            policy = self.agenda.policies[item]
            most = 1 + policy.restarts_max if policy.if_interrupted == "restart" else 1
            most += len(self.stops(item))
            assert count <= most, f"item {item} was started {count} times in round {round_}"

    def check_fold(self) -> None:
        """Check that a conductor made from the disk has the states of the running one, if that has read everything."""
        self._look_at_foreign()
        is_quiet = not self.inbox and self.conductor.handled_request_count == len(self.requests)
        if not is_quiet or self.conductor.adopted_items or any(worker.start for worker in self.workers.values()):
            return
        fresh = self.fresh()
        for item in range(self.count):
            running, stored = self.conductor.state(item), fresh.state(item)
            if (running, stored) == (CommandState.READY, CommandState.WAITING):
                continue  # A new conductor starts the delay again.
            if fresh.last_epoch(item) > self.conductor.last_epoch(item):
                continue  # The running conductor learns of the new lease only when it wants to lease the item.
            if stored is CommandState.RUNNING and None in [self.registers.get((item, r), "") for r in range(1, 100)]:
                continue  # The outcome that ended the attempt is unreadable.
            assert running is stored, f"item {item} is {running.value} in memory, {stored.value} according to the disk"


def live_out(world: CheckedWorld, *, drains: bool = False) -> None:
    """Run a world until three coordinators have ended, and check it after every step."""
    world.begin()
    for step in range(STEPS_MAX):
        world.step()
        if drains and step == 40:
            world.handle(DrainRequested())
            world.handle(SignalReceived("SIGTERM", ends=False))
        if drains and step == 50:
            world.handle(SignalReceived("SIGTERM", ends=True))
        world.check_tokens()
        world.check_starts()
        if step % 7 == 0:
            world.check_fold()
        if world.is_at_rest():
            world.check()
            check_told(world)
            world.ends.append(type(world.end).__name__)
            if len(world.ends) >= 3:
                return
            last = dict(sorted(world.registers))
            reopened = [
                item for item in last if world.conductor.state(item) in (CommandState.FAILED, CommandState.CANCELLED)
            ]
            world.write(Open(rounds={world.agenda.ids[item]: last[item] for item in reopened}))
            world.begin()
    raise AssertionError(
        f"the batch does not end: {[world.conductor.state(item).value for item in range(world.count)]}"
    )
