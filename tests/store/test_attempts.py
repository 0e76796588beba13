"""Tests of the attempt reader: it returns each attempt's end once, whether a worker reported it or a file was read."""

from __future__ import annotations

from pathlib import Path

from codebatch.model.outcome import HolderId
from codebatch.model.work.command import Command, CommandId
from codebatch.store import layout
from codebatch.store.results.outcomes import OutcomeCommitter, OutcomeRegisters, attempt_outcome
from codebatch.store.work.attempts import AttemptReader
from tests.support.work_batches import Place, make_place


def _attempts(place: Place) -> AttemptReader:
    return AttemptReader(place.plan, OutcomeRegisters(place.batch.files, place.batch.root))


def test_attempts_are_reported_once_across_reads(tmp_path: Path) -> None:
    place = make_place(tmp_path, *(Command(id=CommandId(name), run="true") for name in "ab"))
    (place.batch.root / layout.OUTCOMES).mkdir(exist_ok=True)
    committer = OutcomeCommitter(place.batch.files, place.batch.root, HolderId("d" * 32))
    commits = [
        committer.commit_outcomes([attempt_outcome(place.unit(item), "result", None, 0)], epoch=1, round_=1)
        for item in (0, 1)
    ]
    committer.close()
    reader = _attempts(place)
    assert [one.item for one in reader.read().conclusions] == [0, 1]
    assert [one.item for one in reader.record_reported(commits[0])] == [0]
    assert [one.item for one in reader.read_all().conclusions] == [0, 1]

    for register in (place.batch.root / layout.OUTCOMES).iterdir():
        if f".{commits[0].outcomes[0].start}." in register.name:
            register.unlink()
            register.write_bytes(b"nothing that is read")
    listener = _attempts(place)
    listener.record_reported(commits[0])
    result = listener.read()
    assert ([one.item for one in result.conclusions], result.unreadable) == ([1], ())
    assert sorted(listener.read_all().conclusions, key=lambda one: one.item) == sorted(
        reader.read_all().conclusions, key=lambda one: one.item
    )
