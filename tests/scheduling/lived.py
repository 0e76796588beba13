"""A simulated world, lived out and checked all the way."""

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
    """A world that knows what must hold in it."""

    def is_at_rest(self) -> bool:
        """Whether the coordinator is through, and nobody of its own has anything to say."""
        return self.end is not None and not self.inbox and all(one.start is None for one in self.mine.values())

    def check(self) -> None:
        """What holds whenever a coordinator is through."""
        if isinstance(self.end, EndBroken | EndDrained):
            return
        assert all(used == 0 for used in self.used().values()), f"tokens are left: {self.used()}"
        states = [self.conductor.state(item) for item in range(self.count)]
        assert not set(states) & set(STATES_OVER), states
        verdict = self.conductor.batch_state()
        assert verdict not in (BatchState.RUNNING, BatchState.PENDING), verdict
        is_stopped = self.agenda.on_failure == "stop" and CommandState.FAILED in states
        is_stopped = is_stopped or self.conductor.is_expired
        for item, state in enumerate(states):
            if state is CommandState.PENDING and not is_stopped:
                waits = (CommandState.PENDING, CommandState.BLOCKED, CommandState.CANCELLED)
                assert any(states[need.item] in waits for need in self.agenda.needs[item]), "it waits for nothing"

    def used(self) -> dict[str, int]:
        """How much of each pool is taken."""
        return dict(self.conductor._queue.used)

    def check_tokens(self) -> None:
        """Nothing is taken that there is not, but by what was adopted; an exclusive command runs alone."""
        assert min(self.used().values()) >= 0, "more is given back than was taken"
        if self.conductor.adopted_items or any(isinstance(request.body, Set) for request in self.requests):
            return
        over = {pool for pool, used in self.used().items() if used > self.agenda.capacity[pool]}
        assert not over, f"more is taken of {over} than there is"
        active = [worker.start.item for worker in self.mine.values() if worker.start and not worker.asks]
        assert len(active) <= self.agenda.capacity[SLOTS_POOL], "more run at once than may"
        assert len(active) < 2 or not any(self.agenda.policies[item].exclusive for item in active), "not alone"

    def check_starts(self) -> None:
        """At most once where that was asked for, and no more restarts than were allowed."""
        for (item, round_), count in self.execs.items():
            policy = self.agenda.policies[item]
            most = 1 + policy.restarts_max if policy.if_interrupted == "restart" else 1
            most += len(self.stops(item))
            assert count <= most, f"item {item} was begun {count} times in round {round_}"

    def check_fold(self) -> None:
        """Who reads the disk comes to the states of the conductor that runs, once it has heard all."""
        self._look_at_foreign()
        is_quiet = not self.inbox and self.conductor.handled_request_count == len(self.requests)
        if not is_quiet or self.conductor.adopted_items or any(worker.start for worker in self.workers.values()):
            return
        fresh = self.fresh()
        for item in range(self.count):
            mine, theirs = self.conductor.state(item), fresh.state(item)
            if (mine, theirs) == (CommandState.READY, CommandState.WAITING):
                continue  # Who comes anew waits anew.
            if fresh.last_epoch(item) > self.conductor.last_epoch(item):
                continue  # A lease of which it hears once it wants it.
            if theirs is CommandState.RUNNING and None in [self.registers.get((item, r), "") for r in range(1, 100)]:
                continue  # That its worker is through with it stood in what cannot be read.
            assert mine is theirs, f"item {item} is {mine.value} here, {theirs.value} by the disk"


def live_out(world: CheckedWorld, *, drains: bool = False) -> None:
    """Let a world go on until coordinators are through a few times, and check it all the way."""
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
            again = [
                item for item in last if world.conductor.state(item) in (CommandState.FAILED, CommandState.CANCELLED)
            ]
            world.write(Open(rounds={world.agenda.ids[item]: last[item] for item in again}))
            world.begin()
    raise AssertionError(f"no end: {[world.conductor.state(item).value for item in range(world.count)]}")
