"""Tests of the durations of commands: they are kept, and files with impossible values are ignored."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from codebatch.model.digest import Digest, digest_bytes
from codebatch.store import layout
from codebatch.store.batches.store_directory import create_store
from codebatch.store.cache_files import write_cached
from codebatch.store.work import durations
from codebatch.store.work.durations import SAMPLES_MAX, CommandDuration, CommandDurations
from codebatch.system.files.files import RealFiles

ROOT = b"/project"
DEFINITION, OTHER = Digest("a" * 64), Digest("b" * 64)


def test_durations_prefer_the_same_definition_and_keep_the_latest_samples(tmp_path: Path) -> None:
    store, _ = create_store(RealFiles(), tmp_path / "store")
    known = CommandDurations(store, ROOT)
    for seconds in range(SAMPLES_MAX + 2):
        known.add(CommandDuration("build", DEFINITION, "make", float(seconds)))
    known.save_durations()
    reloaded = CommandDurations(store, ROOT)
    assert reloaded.command_seconds("build", DEFINITION) == tuple(float(value) for value in range(2, SAMPLES_MAX + 2))
    assert reloaded.command_seconds("build", OTHER) == reloaded.command_seconds("build", DEFINITION)
    reloaded.add(CommandDuration("build", OTHER, "make", 99.0))
    reloaded.save_durations()
    assert CommandDurations(store, ROOT).command_seconds("build", OTHER) == (99.0,)
    assert len(reloaded.program_seconds("make")) == SAMPLES_MAX + 3
    assert CommandDurations(store, b"/elsewhere").program_seconds("make") == ()


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1.0, 1e30])
def test_durations_reject_impossible_values(tmp_path: Path, seconds: float) -> None:
    store, _ = create_store(RealFiles(), tmp_path / "store")
    CommandDurations(store, ROOT)
    name = layout.durations_cache_name(digest_bytes(ROOT))
    value = [{"build": [("a" * 12, seconds)]}, {}]
    write_cached(store, name, durations._MAGIC, value)
    assert CommandDurations(store, ROOT).command_seconds("build", DEFINITION) == ()
