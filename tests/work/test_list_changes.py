"""Tests of definitions reloaded between rounds, and of batches that do not record how their list was read."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from codebatch.errors import StoreCorrupt
from codebatch.model.work.command import Command, CommandId
from codebatch.model.work.request import Reload
from codebatch.model.work.work_batch import TaskPolicy, WorkEdge
from codebatch.store.batches.store_directory import create_store
from codebatch.store.work.work_batches import CommandDefinitions, make_work_batch, read_command, read_work
from codebatch.system.files.files import RealFiles
from codebatch.work.control.batches import load_work_batch
from codebatch.work.control.list_changes import list_changes
from tests.support.work_batches import Place, coordinating, make_place
from tests.work.reading import read

A, B = CommandId("a"), CommandId("b")
LIST = '[tasks.a]\nrun = "true"\n[tasks.b]\nrun = "true"\nneeds = ["a"]\n'


def command(run: str, id_: CommandId = A, title: str = "") -> Command:
    return Command(id=id_, run=run, title=title)


def reload(place: Place, request: Reload) -> None:
    """Send a reload request to the batch."""
    place.requests.append(request, by="a test", at_ns=time.time_ns())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A batch of two commands."""
    return make_place(tmp_path, command("echo old"), command("true", B))


def test_reloaded_definition_applies_to_later_rounds(place: Place) -> None:
    reload(place, Reload(rounds={A: 1}, commands=(command("echo new"),)))
    reload(place, Reload(rounds={A: 3}, commands=(command("echo newer"),)))
    stored = CommandDefinitions(place.store, place.batch)
    runs = [stored.read("a", round_).run for round_ in (1, 2, 3, 4)]
    assert runs == ["echo old", "echo new", "echo new", "echo newer"]
    assert read_command(place.store, place.batch, "a").run == "echo newer"
    assert [stored.is_unchanged(command("echo new"), round_) for round_ in (1, 2, 4)] == [False, True, False]
    assert stored.is_unchanged(command("true", B))


def test_reload_does_not_concern_a_completed_task(tmp_path: Path) -> None:
    listed = read(tmp_path, LIST, PATH=os.defpath)
    store = create_store(RealFiles(), tmp_path / "store")[0]
    batch = make_work_batch(store, listed.commands, listed.work, at_ns=time.time_ns())
    place = Place(store, batch, batch.plan(), tmp_path)
    with coordinating(place) as coordinator:
        coordinator.do(0)
    reload(place, Reload(rounds={A: 1}, commands=(command("false"),)))
    assert list_changes(load_work_batch(store, batch)).is_nothing


def test_worker_executes_the_definition_of_the_round(place: Place) -> None:
    with coordinating(place) as coordinator:
        coordinator.do()
        reload(place, Reload(rounds={A: 1}, commands=(command("echo new"),)))
        coordinator.do(round_=2, epoch=2)
    assert (place.log(), place.log(round_=2, epoch=2)) == (b"old\n", b"new\n")


def test_reload_replaces_every_property_of_a_command(place: Place) -> None:
    first = Reload(
        rounds={A: 0},
        commands=(command("true", title="A"),),
        policies={A: TaskPolicy(priority=3)},
        edges=(WorkEdge(A, B), WorkEdge(A, CommandId("elsewhere"))),
    )
    reload(place, first)
    work = read_work(place.batch)
    assert (work.titles, work.task_policy(A).priority, work.edges) == ({A: "A"}, 3, (WorkEdge(A, B),))
    assert work.satisfied_needs == (WorkEdge(A, CommandId("elsewhere")),)
    reload(place, Reload(rounds={A: 0, CommandId("unknown"): 0}, commands=(command("true"),)))
    work = read_work(place.batch)
    assert (work.titles, work.policies, work.edges, work.satisfied_needs) == ({}, {}, (), ())


def test_invalid_reload_is_damage(place: Place) -> None:
    reload(place, Reload(rounds={A: 0}, commands=(command("true"),), policies={A: TaskPolicy(pools={"p": 1})}))
    with pytest.raises(StoreCorrupt, match="invalid reload request: a task takes more of a pool than the pool has"):
        read_work(place.batch)
