"""Tests of a store that is removed during a write: the error says that the store was removed, whatever call failed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch.errors import EnvironmentBroken, Stopped, StoreCorrupt, UnknownId
from codebatch.store.batches.store_directory import create_store
from codebatch.store.results.outcomes import removed_outcomes_error
from codebatch.system.files.files import RealFiles


def replace(root: Path) -> None:
    shutil.rmtree(root)
    create_store(RealFiles(), root)


@pytest.mark.parametrize("remove", [shutil.rmtree, replace])
@pytest.mark.parametrize(
    "error", [FileNotFoundError(2, "gone"), StoreCorrupt("x"), UnknownId("x"), EnvironmentBroken("x")]
)
def test_error_after_store_removal_is_reported_as_removal(
    tmp_path: Path, remove: Callable[[Path], None], error: Exception
) -> None:
    store, _ = create_store(RealFiles(), tmp_path / "store")

    def work() -> None:
        with store.writing():
            remove(store.root)
            raise error

    with pytest.raises(StoreCorrupt, match="was removed while it was in use") as raised:
        work()
    assert raised.value.__cause__ is error
    assert raised.value.hint is not None
    assert "resume" not in raised.value.hint


@pytest.mark.parametrize("error", [FileNotFoundError(2, "gone"), StoreCorrupt("x")])
def test_error_in_an_existing_store_is_unchanged(tmp_path: Path, error: Exception) -> None:
    store, _ = create_store(RealFiles(), tmp_path / "store")
    with pytest.raises(type(error)) as raised, store.writing():
        raise error
    assert raised.value is error


def test_signal_during_store_removal_is_not_replaced(tmp_path: Path) -> None:
    store, _ = create_store(RealFiles(), tmp_path / "store")

    def work() -> None:
        with store.writing():
            shutil.rmtree(store.root)
            raise Stopped("stopped")

    with pytest.raises(Stopped):
        work()


def test_hint_without_outcomes_is_resume_and_without_a_batch_a_new_run(tmp_path: Path) -> None:
    (tmp_path / "batch-1").mkdir()
    hints = [removed_outcomes_error(RealFiles(), tmp_path / name).hint or "" for name in ("batch-1", "batch-2")]
    assert ["resume --batch batch-1" in hint for hint in hints] == [True, False]
    assert ["codebatch work run" in hint for hint in hints] == [False, True]
