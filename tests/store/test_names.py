"""Tests of the names of batches: valid names, the batch of a name, and retention of named batches."""

from __future__ import annotations

import pytest

from codebatch.errors import InvalidId, UnknownId
from codebatch.store.batches.batch_directory import BatchId, batch_ids, new_batch_id, read_batch_names
from codebatch.store.batches.pins import assign_name, pin_reference, unpin_reference
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import StoreDir, create_store, open_store
from codebatch.system.files.files import RealFiles
from tests.support.batches import make_batch
from tests.support.command_line import write
from tests.support.crashes import PLACE, killed_at_each_write
from tests.support.disk import Disk
from tests.support.stores import collect_all, make_merged


def test_named_batch_resolves_and_is_retained_until_unpinned(store: StoreDir) -> None:
    first, second, third = (make_merged(store, [b"%d" % second], second=second) for second in range(3))
    assert assign_name(store, first.id, "before") is None
    assert assign_name(store, first.id, "v1.0-rc_2") is None
    assert resolve_batch(store, "@before").id == resolve_batch(store, "@v1.0-rc_2").id == first.id
    assert pin_reference(store, "@before") == first.id
    unpin_reference(store, first.id)
    collect_all(store, keep=1)
    assert batch_ids(store) == [first.id, third.id]
    assert (unpin_reference(store, "@before"), unpin_reference(store, "@v1.0-rc_2")) == ("@before", "@v1.0-rc_2")
    collect_all(store, keep=1)
    assert batch_ids(store) == [third.id]
    assert second.id not in batch_ids(store)


def test_moving_a_name_returns_its_previous_batch(store: StoreDir) -> None:
    first, second = (make_merged(store, [b"%d" % second], second=second) for second in range(2))
    assert [assign_name(store, batch.id, "x") for batch in (first, first, second, second, first)] == [
        None, None, first.id, None, second.id,
    ]  # fmt: skip
    assert read_batch_names(store) == {"x": first.id}


@pytest.mark.parametrize("wrong", ["", ".x", "-x", "a/b", "../a", "a@b", "a b", "ü", "x" * 65, "a\n", "a\0"])
def test_invalid_batch_name_is_rejected(store: StoreDir, wrong: str) -> None:
    batch = make_merged(store, [b"a"])
    for act in (lambda: assign_name(store, batch.id, wrong), lambda: unpin_reference(store, f"@{wrong}")):
        with pytest.raises(InvalidId):
            act()
    with pytest.raises(InvalidId):
        resolve_batch(store, f"@{wrong}")
    assert read_batch_names(store) == {}


def test_unknown_name_and_name_of_a_missing_batch_are_reported(store: StoreDir) -> None:
    batch = make_merged(store, [b"a"])
    for act in (
        lambda: resolve_batch(store, "@x"),
        lambda: unpin_reference(store, "@x"),
        lambda: pin_reference(store, "@x"),
    ):
        with pytest.raises(UnknownId, match="no batch is named @x"):
            act()
    assign_name(store, batch.id, "x")
    store.files.remove_tree(batch.root)
    with pytest.raises(UnknownId, match=batch.id):
        resolve_batch(store, "@x")
    assert unpin_reference(store, "@x") == "@x"


def test_invalid_pin_files_are_ignored_and_the_latest_of_a_name_wins(store: StoreDir) -> None:
    first, second = (make_merged(store, [b"%d" % second], second=second) for second in range(2))
    # Python regards this digit as a digit like those of ASCII.
    digits = f"batch-{chr(0x662) * 8}-000000-000000-ffffff@y"
    ids = (f"{first.id}@x", f"{second.id}@x", "@x", f"{first.id}@", f"{first.id}@a b", "batch-1@y", "x@y@z", digits)
    for planted in ids:
        write(store.root / "pins" / planted, "")
    assert read_batch_names(store) == {"x": second.id}


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_moving_a_name_killed_at_any_write_leaves_a_single_owner(seed: int | None) -> None:
    """After a kill at any write and a power loss, the old or the new batch has the name, and no other batch."""
    before = Disk()
    store = create_store(RealFiles(before.calls()), PLACE)[0]
    first, second = (make_batch(store, [b"a"], shard_items=1, at_ns=at).id for at in range(2))
    assign_name(store, first, "x")
    before.sync()
    for left, is_over in killed_at_each_write(
        before, lambda files: assign_name(open_store(files, PLACE), second, "x"), seed=seed, least=2
    ):
        names = read_batch_names(open_store(RealFiles(left.calls()), PLACE))
        assert names["x"] in ((second,) if is_over else (first, second))


@pytest.mark.parametrize("hostile", ["batch-20261399-000000-000000-abcdef", "batch-00010101-000000-000000-abcdef"])
def test_batch_id_before_another_is_not_the_latest_and_bad_dates_are_ignored(store: StoreDir, hostile: str) -> None:
    first, second = (make_merged(store, [b"%d" % second], second=second) for second in (1, 2))
    assert first.id < new_batch_id(store, 9, before=second.id) < second.id
    assert new_batch_id(store, 9, before=BatchId(hostile)) > second.id
