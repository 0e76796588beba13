"""Work batches in simulated machines: nothing runs twice at once, nothing more often than it may, nothing is lost.

CODEBATCH_PROOF_SEEDS says how many seeds.
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
from codebatch.model.work.request import Answer, Request
from codebatch.scheduling.work.conductor import Conductor
from codebatch.store.work.requests import RequestStore
from codebatch.system.files.files import RealFiles
from codebatch_workers.commands import attempt_inputs
from codebatch_workers.commands.attempt_inputs import AnswerRow
from tests.proof.commands.drawn import draw_world
from tests.proof.commands.world import FaultKind

SEEDS = int(os.environ.get("CODEBATCH_PROOF_SEEDS", "50"))
BLOCK = 50
SEEDS_OF_CONTROL_MAX = 400
KINDS: tuple[FaultKind, ...] = get_args(FaultKind)


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_simulated_work_batch_loses_and_repeats_no_command(first: int) -> None:
    happened = given_behind = 0
    for seed in range(first, first + BLOCK):
        world = draw_world(seed, KINDS)
        try:
            world.run()
        except (AssertionError, CodebatchError) as error:
            raise AssertionError(f"seed {seed} fails: {error}") from error
        happened += world.happened.total()
        given_behind += world.given_behind
    assert given_behind > BLOCK / 4, "too little was given at once for this to prove anything"
    assert happened > BLOCK, "too little went wrong for this to prove anything"


class _ReplacingFiles(RealFiles):
    """A register that the last writer wins, as with rename(2)."""

    def create_exclusive(self, source: Path | str, path: Path | str) -> bool:
        self.remove(path)
        return super().create_exclusive(source, path)


class _LazyFiles(RealFiles):
    """Never syncs a directory: a lease is not on disk when its command begins."""

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
        except (AssertionError, CodebatchError, FileExistsError):  # So ends a log that two attempts write.
            return
    pytest.fail("it was not found out")


class _IgnoresSkips(Conductor):
    """A Skip ends what runs, and no more."""

    def _note_request(self, request: Request) -> list[int]:
        touched = super()._note_request(request)
        self._requests._skips.clear()
        return touched


def _use_last_answer(questions: Sequence[Question], requests: RequestStore) -> list[AnswerRow]:
    """The last answer to a question is the one that is told."""
    bodies = [request.body for request in requests.read()]
    last = {body.question: body.text for body in bodies if isinstance(body, Answer)}
    return [
        AnswerRow(question=each.text, answer=last[each.digest], round=each.round)
        for each in questions
        if each.digest in last
    ]


def _omit_answers(questions: Sequence[Question], requests: RequestStore) -> list[AnswerRow]:
    """Who is begun again for an answer is not told of it."""
    return []


@pytest.mark.parametrize(
    ("place", "planted", "said", "found_by"),
    [
        (loop, {"Conductor": _IgnoresSkips}, "was skipped|RUNNING|PENDING", 4),
        (attempt_inputs, {"first_answers": _use_last_answer}, "first was", 188),
        (attempt_inputs, {"first_answers": _omit_answers}, "does not hear", 26),
    ],
)
def test_planted_bug_is_detected(
    monkeypatch: pytest.MonkeyPatch, place: ModuleType, planted: dict[str, object], said: str, found_by: int
) -> None:
    """The seed that found it last is tried first; what is drawn may have changed since."""
    for name, made in planted.items():
        monkeypatch.setattr(place, name, made)
    with pytest.raises(AssertionError, match=said):  # noqa: PT012 - whichever seed it is
        for seed in chain([found_by], range(SEEDS_OF_CONTROL_MAX)):
            draw_world(seed, ("request",)).run()
