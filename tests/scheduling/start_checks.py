"""Checks of the commands that a simulated coordinator starts, by the requests and outcomes it has read."""

from __future__ import annotations

from codebatch.model.work.request import Answer, Cancel, Open, Pause, Stop, Unpause
from codebatch.scheduling.lifecycle import CommandState
from codebatch.scheduling.work.events import CommitInterrupted, StartCommand
from tests.scheduling.shared_disk import SharedDisk
from tests.scheduling.work.open_reference import own_of


class StartChecks(SharedDisk):
    """A disk with checks of each start, and of each attempt that the coordinator judges as interrupted."""

    is_spacing: bool
    due: set[tuple[int, int]]

    def stops(self, item: int) -> dict[int, bool]:
        """Return the epochs of an item that requests stopped, and whether the request also ends the attempt."""
        stops: dict[int, bool] = {}
        may_repeat = self.agenda.policies[item].if_interrupted == "restart"
        for body in (request.body for request in self.requests[: self.conductor.handled_request_count]):
            if isinstance(body, Stop | Cancel) and (epoch := body.attempts.get(self.agenda.ids[item])) is not None:
                ends = isinstance(body, Cancel) or body.terminates
                if ends or may_repeat:
                    stops[epoch] = ends or stops.get(epoch, False)
        return stops

    def _check_settled(self, settle: CommitInterrupted) -> None:
        """Check that an attempt judged as interrupted was not stopped on request, and has no restarts left."""
        item = settle.item
        before = [outcome.epoch for outcome in self.registers.values() if outcome is not None and outcome.item == item]
        begun = range(max(before, default=0) + 1, settle.epoch + 1)
        stops = self.stops(item)
        assert settle.epoch not in stops, f"item {item} was stopped on request, but is judged as interrupted"
        policy = self.agenda.policies[item]
        accidents = sum(epoch not in stops for epoch in begun)
        assert policy.if_interrupted != "restart" or accidents > policy.restarts_max, f"item {item} still has restarts"

    def _is_expired(self) -> bool:
        """Return whether the handled requests reach the time limit without a later Open."""
        is_expired = False
        for request in self.requests[: self.conductor.handled_request_count]:
            is_limit = isinstance(request.body, Stop) and request.body.cause == "timeout"
            is_expired = is_limit or (is_expired and not isinstance(request.body, Open))
        return is_expired

    def _is_in_force(self, kind: type[Cancel | Pause], item: int) -> bool:
        """Return whether a Cancel or Pause among the handled requests is in force for an item."""
        is_in_force = False
        for request in self.requests[: self.conductor.handled_request_count]:
            body = request.body
            if isinstance(body, Open):
                is_in_force = is_in_force and body.lifts == "named" and self.agenda.ids[item] not in body.rounds
            elif isinstance(body, Answer):
                is_in_force = is_in_force and body.task != self.agenda.ids[item]
            elif isinstance(body, Unpause):
                is_in_force = is_in_force and kind is Cancel
            else:
                is_in_force = is_in_force or isinstance(body, kind)
        return is_in_force

    def _check_start(self, start: StartCommand) -> None:
        """Check that a started command is open by the outcomes and requests read so far, and that its delay is over."""
        item = start.item
        assert not self.is_spacing, f"item {item} starts too soon after another"
        self.is_spacing = self.agenda.start_every_seconds > 0
        assert not self._is_in_force(Cancel, item), f"item {item} starts after a Cancel"
        assert not self._is_in_force(Pause, item), f"item {item} starts after a Pause"
        assert not self._is_expired(), f"item {item} starts after the time limit"
        closed = self._closed_pools().intersection(self.agenda.policies[item].pools)
        assert not closed, f"item {item} takes tokens of the closed pools {closed}"
        known = {
            round_: outcome for (at, round_), outcome in self.registers.items() if at == item and outcome is not None
        }
        rounds = {round_: outcome for round_, outcome in known.items() if round_ < start.round}
        requests = self.requests[: self.conductor.handled_request_count]
        policy = self.agenda.policies[item]
        own = own_of(self.agenda.ids[item], policy, rounds, requests)
        assert own in ("open", "retry"), f"item {item} starts in round {start.round} although it is {own}"
        last = self.conductor.last_outcome(item)
        is_limited = last is not None and last.reason == "limited"
        is_due = (item, start.round) in self.due or not (policy.backoff_seconds or is_limited)
        assert own == "open" or is_due, f"item {item} starts again before its delay is over"

    def _closed_pools(self) -> set[str]:
        """Return the pools of commands that wait for the end of a rate limit, as far as the coordinator knows."""
        closed: set[str] = set()
        requests = self.requests[: self.conductor.handled_request_count]
        for item, policy in enumerate(self.agenda.policies):
            last = self.conductor.last_outcome(item)
            if last is None or last.reason != "limited" or (item, last.round + 1) in self.due:
                continue
            rounds = {
                outcome.round: outcome
                for outcome in self.registers.values()
                if outcome is not None and outcome.item == item
            }
            rounds = {round_: outcome for round_, outcome in rounds.items() if round_ <= last.round}
            if own_of(self.agenda.ids[item], policy, rounds, requests) == "retry":
                closed.update(policy.pools)
        return closed

    def _check_needs(self, item: int) -> None:
        for need in self.agenda.needs[item]:
            state = self.conductor.state(need.item)
            ended = (CommandState.DONE, CommandState.FAILED, CommandState.SKIPPED, CommandState.CANCELLED)
            is_met = state is CommandState.DONE or (
                state in ended and (not need.must_succeed or self.agenda.on_failure == "continue")
            )
            assert is_met, f"item {item} starts while {need.item} is {state.value}"
