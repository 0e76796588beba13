"""Tests of stop requests: they name attempts that have their lease, and other attempts once they have it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codebatch.coordinator.work.stop_requests import StopRequests
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.request import Stop
from codebatch.store.batches.batch_directory import make_batch_directories
from codebatch.store.batches.holders import HolderFile, HolderRegistration, LeaseReader, new_holder_id
from codebatch.store.results.outcomes import OutcomeRegisters
from codebatch.store.work.attempts import AttemptReader
from codebatch.system.host import this_host
from tests.support.work_batches import Place, make_place

A, B = CommandId("a"), CommandId("b")


class _Leasing:
    """A batch of two commands whose attempts take their leases when the test says so."""

    def __init__(self, place: Place) -> None:
        self._place = place
        batch = place.batch
        make_batch_directories(batch)
        about = HolderFile(holder=new_holder_id(), role="worker", pid=1, host=this_host(), since_ns=time.time_ns())
        self.holder = HolderRegistration(batch.files, batch.root, about, is_durable=True)
        attempts = AttemptReader(place.plan, OutcomeRegisters(batch.files, batch.root))
        leases = LeaseReader(batch.files, batch.root)
        self.stops = StopRequests(place.requests, leases, attempts, [A, B], 7, time.time_ns)

    def lease(self, item: int) -> None:
        assert self.holder.try_lease(self._place.plan.shards[0].id, item, 1)

    def written_requests(self) -> list[dict[CommandId, int]]:
        bodies = [request.body for request in self._place.requests.read()]
        return [body.attempts for body in bodies if isinstance(body, Stop)]


@pytest.fixture
def leasing(tmp_path: Path) -> Iterator[_Leasing]:
    made = _Leasing(make_place(tmp_path, Command(id=A, run="true"), Command(id=B, run="true")))
    yield made
    made.holder.close()


def test_stop_request_names_an_attempt_after_it_has_its_lease(leasing: _Leasing) -> None:
    both = {A: 1, B: 1}
    leasing.lease(0)
    leasing.stops.append(Stop(cause="failure", attempts=both), both)
    assert leasing.written_requests() == [{A: 1}]
    leasing.stops.append_waiting(both)
    assert leasing.written_requests() == [{A: 1}]
    assert leasing.stops.is_waiting
    leasing.lease(1)
    leasing.stops.append_waiting(both)
    assert leasing.written_requests() == [{A: 1}, {B: 1}]
    assert not leasing.stops.is_waiting


def test_stop_request_omits_an_attempt_that_never_took_its_lease(leasing: _Leasing) -> None:
    """The next start gets the same epoch, so it must not count as stopped."""
    leasing.stops.append(Stop(cause="signal", attempts={A: 1}), {A: 1})
    leasing.stops.append_waiting({})
    leasing.lease(0)
    assert not leasing.stops.is_waiting
    assert leasing.written_requests() == []


def test_time_limit_is_written_immediately_and_once(leasing: _Leasing) -> None:
    leasing.stops.append(Stop(cause="timeout", attempts={A: 1}), {A: 1})
    leasing.stops.append_waiting({A: 1})
    assert leasing.written_requests() == [{}]
