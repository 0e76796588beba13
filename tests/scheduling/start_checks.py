"""What a coordinator of simulated commands may start, by what it has read."""

from __future__ import annotations

from codebatch.model.work.request import Answer, Cancel, Open, Pause, Stop, Unpause
from codebatch.scheduling.lifecycle import CommandState
from codebatch.scheduling.work.events import CommitInterrupted, StartCommand
from tests.scheduling.shared_disk import SharedDisk
from tests.scheduling.work.open_reference import own_of


class StartChecks(SharedDisk):
    """Checks each start against requests, outcomes and needs, and each judgement of an attempt against its starts."""

    is_spacing: bool
    due: set[tuple[int, int]]

    def stops(self, item: int) -> dict[int, bool]:
        """Epochs of an item that requests named as stopped, and whether they were to be ended."""
        found: dict[int, bool] = {}
        may_repeat = self.agenda.policies[item].if_interrupted == "restart"
        for body in (request.body for request in self.requests[: self.conductor.handled_request_count]):
            if isinstance(body, Stop | Cancel) and (epoch := body.attempts.get(self.agenda.ids[item])) is not None:
                ends = isinstance(body, Cancel) or body.terminates
                if ends or may_repeat:
                    found[epoch] = ends or found.get(epoch, False)
        return found

    def _check_settled(self, settle: CommitInterrupted) -> None:
        """What was stopped is no accident, and no accident is judged before its time."""
        item = settle.item
        before = [one.epoch for one in self.registers.values() if one is not None and one.item == item]
        begun = range(max(before, default=0) + 1, settle.epoch + 1)
        stops = self.stops(item)
        assert settle.epoch not in stops, f"item {item} was stopped, and is judged"
        policy = self.agenda.policies[item]
        accidents = sum(epoch not in stops for epoch in begun)
        assert policy.if_interrupted != "restart" or accidents > policy.restarts_max, f"item {item} is judged too soon"

    def _is_expired(self) -> bool:
        """Whether the time limit was reached among the requests that the coordinator saw, and no Open came since."""
        found = False
        for request in self.requests[: self.conductor.handled_request_count]:
            is_limit = isinstance(request.body, Stop) and request.body.cause == "timeout"
            found = is_limit or (found and not isinstance(request.body, Open))
        return found

    def _stands(self, kind: type[Cancel | Pause], item: int) -> bool:
        """Whether a Cancel or Pause stands for an item among the requests that the coordinator saw."""
        stands = False
        for request in self.requests[: self.conductor.handled_request_count]:
            body = request.body
            if isinstance(body, Open):
                stands = stands and body.lifts == "named" and self.agenda.ids[item] not in body.rounds
            elif isinstance(body, Answer):
                stands = stands and body.task != self.agenda.ids[item]
            elif isinstance(body, Unpause):
                stands = stands and kind is Cancel
            else:
                stands = stands or isinstance(body, kind)
        return stands

    def _check_start(self, start: StartCommand) -> None:
        """What a coordinator starts is open by what it has read, and its time has come."""
        item = start.item
        assert not self.is_spacing, f"item {item} starts too soon after another"
        self.is_spacing = self.agenda.start_every_seconds > 0
        assert not self._stands(Cancel, item), "a start after a Cancel was seen"
        assert not self._stands(Pause, item), "a start after a Pause was seen"
        assert not self._is_expired(), "a start after the time limit"
        closed = self._closed_pools().intersection(self.agenda.policies[item].pools)
        assert not closed, f"item {item} takes of the closed {closed}"
        known = {round_: one for (at, round_), one in self.registers.items() if at == item and one is not None}
        rounds = {round_: one for round_, one in known.items() if round_ < start.round}
        requests = self.requests[: self.conductor.handled_request_count]
        policy = self.agenda.policies[item]
        own = own_of(self.agenda.ids[item], policy, rounds, requests)
        assert own in ("open", "retry"), f"item {item} is begun in round {start.round} while it is {own}"
        last = self.conductor.last_outcome(item)
        is_limited = last is not None and last.reason == "limited"
        is_due = (item, start.round) in self.due or not (policy.backoff_seconds or is_limited)
        assert own == "open" or is_due, f"item {item} is begun again before its time"

    def _closed_pools(self) -> set[str]:
        """Pools of commands that wait for a rate limit to end, as far as the coordinator knows of it."""
        closed: set[str] = set()
        requests = self.requests[: self.conductor.handled_request_count]
        for item, policy in enumerate(self.agenda.policies):
            last = self.conductor.last_outcome(item)
            if last is None or last.reason != "limited" or (item, last.round + 1) in self.due:
                continue
            rounds = {one.round: one for one in self.registers.values() if one is not None and one.item == item}
            rounds = {round_: one for round_, one in rounds.items() if round_ <= last.round}
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
