"""Work batches in simulated machines: no command runs twice at once or more often than allowed, and no outcome is lost.

CODEBATCH_PROOF_SEEDS is the number of seeds.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from codebatch.coordinator.work import loop
from codebatch.errors import CodebatchError
from codebatch.model.work.question import Question
from codebatch.model.work.request import Add, Answer, Request, added_commands
from codebatch.scheduling.work import command_states
from codebatch.scheduling.work.command_graph import CommandGraph
from codebatch.scheduling.work.command_plan import CommandNeed
from codebatch.scheduling.work.conductor import Conductor
from codebatch.store.work.requests import RequestStore
from codebatch.system.files.files import RealFiles
from codebatch_workers.commands import attempt_inputs, supervisor
from codebatch_workers.commands.attempt_inputs import AnswerRow
from tests.proof.commands.drawn import draw_world
from tests.proof.commands.world import FaultKind

SEEDS = int(os.environ.get("CODEBATCH_PROOF_SEEDS", "50"))
BLOCK = 50
SEEDS_OF_CONTROL_MAX = 400
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_simulated_work_batch_loses_and_repeats_no_command(first: int) -> None:
    fault_count = given_behind = added = 0
    for seed in range(first, first + BLOCK):
        world = draw_world(seed, KINDS)
        try:
            world.run()
        except (AssertionError, CodebatchError) as error:
            raise AssertionError(f"seed {seed} fails: {error}") from error
        fault_count += world.happened.total()
        given_behind += world.given_behind
        added += world.happened["added"]
    assert given_behind > BLOCK / 4, "too few commands were queued to prove anything"
    assert fault_count > BLOCK, "too few faults happened to prove anything"
    assert added > BLOCK / 10, "too few tasks were added to prove anything"


class _ReplacingFiles(RealFiles):
    """Files whose last writer wins a register, as with rename(2)."""

    def create_exclusive(self, source: Path | str, path: Path | str) -> bool:
        self.remove(path)
        return super().create_exclusive(source, path)


class _LazyFiles(RealFiles):
    """Files that never sync a directory, so a lease is not durable when its command starts."""

    def sync_directory(self, path: Path) -> None:
        pass


@pytest.mark.parametrize(
    ("make_files", "kinds"),
    [
        (_ReplacingFiles, ("kill coordinator", "second coordinator", "pause")),
        (_LazyFiles, ("lose power", "kill coordinator", "second coordinator", "kill worker")),
    ],
)
def test_broken_store_is_detected(make_files: type[RealFiles], kinds: tuple[FaultKind, ...]) -> None:
    for seed in range(SEEDS_OF_CONTROL_MAX):
        try:
            draw_world(seed, kinds, make_files=make_files).run()
        except (AssertionError, CodebatchError, FileExistsError):  # Two attempts create the same log.
            return
    pytest.fail("no seed detected the bug")


class _IgnoresSkips(Conductor):
    """A conductor whose Skip ends running commands only."""

    def _note_request(self, request: Request) -> list[int]:
        touched = super()._note_request(request)
        self._requests._skips.clear()
        return touched


def _use_last_answer(questions: Sequence[Question], requests: RequestStore) -> list[AnswerRow]:
    """Return the last answer to each question, instead of the first."""
    bodies = [request.body for request in requests.read()]
    last = {body.question: body.text for body in bodies if isinstance(body, Answer)}
    return [
        AnswerRow(question=question.text, answer=last[question.digest], round=question.round)
        for question in questions
        if question.digest in last
    ]


def _omit_answers(questions: Sequence[Question], requests: RequestStore) -> list[AnswerRow]:
    """Return no answers, although the command starts again because of one."""
    return []


class _IgnoresAdditions(Conductor):
    """A conductor that knows only the tasks that the batch had when it started."""

    def _note_request(self, request: Request) -> list[int]:
        return [] if isinstance(request.body, Add) else super()._note_request(request)


class _ForgetsStates(CommandGraph):
    """A graph in which an added item waits for all its needs, also for those that are met."""

    def add(self, needs: Sequence[Sequence[CommandNeed]]) -> None:
        first = len(self._needs)
        super().add(needs)
        for item, item_needs in enumerate(needs, first):
            self._unmet_counts[item] = len(item_needs)


@pytest.mark.parametrize(
    ("module", "planted"),
    [
        (loop, {"Conductor": _IgnoresAdditions}),
        (command_states, {"CommandGraph": _ForgetsStates}),
        (supervisor, {"added_commands": lambda requests: added_commands(requests)[::-1]}),
    ],
)
def test_bug_in_added_tasks_is_detected(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, planted: dict[str, object]
) -> None:
    for name, replacement in planted.items():
        monkeypatch.setattr(module, name, replacement)
    with pytest.raises(AssertionError):  # noqa: PT012 - any seed may detect the bug
        for seed in range(SEEDS_OF_CONTROL_MAX):
            draw_world(seed, ("add tasks",)).run()


@pytest.mark.parametrize(
    ("module", "planted", "message", "found_by"),
    [
        (loop, {"Conductor": _IgnoresSkips}, "was skipped|RUNNING|PENDING", 4),
        (attempt_inputs, {"first_answers": _use_last_answer}, "first was", 188),
        (attempt_inputs, {"first_answers": _omit_answers}, "does not get the answer", 34),
    ],
)
def test_planted_bug_is_detected(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, planted: dict[str, object], message: str, found_by: int
) -> None:
    """The seed that last found the bug is tried first. The simulation may draw other worlds since then."""
    for name, replacement in planted.items():
        monkeypatch.setattr(module, name, replacement)
    with pytest.raises(AssertionError, match=message):  # noqa: PT012 - any seed may detect the bug
        for seed in chain([found_by], range(SEEDS_OF_CONTROL_MAX)):
            draw_world(seed, ("request",)).run()
