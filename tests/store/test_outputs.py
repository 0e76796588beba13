"""Tests of merged outputs: the choice among several outputs of a batch, and reading."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from codebatch.errors import StoreCorrupt
from codebatch.model.digest import Digest
from codebatch.model.documents import encode_document
from codebatch.store import layout
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import create_store
from codebatch.store.results.outputs import MergedOutputs, current_outputs
from codebatch.system.files.files import RealFiles
from tests.support.stores import make_merged


@pytest.fixture
def batch(tmp_path: Path) -> BatchDir:
    return make_merged(create_store(RealFiles(), tmp_path / "store")[0], [b"a", b"b", b"c"])


def _outputs(batch: BatchDir) -> MergedOutputs:
    outputs = current_outputs(batch)
    assert outputs is not None
    return outputs


def test_outputs_with_another_number_of_items_are_rejected(batch: BatchDir) -> None:
    outputs = _outputs(batch)
    forged = msgspec.structs.replace(outputs.manifest, items=4)
    (outputs.root / layout.MANIFEST_FILE).write_bytes(encode_document(forged))
    with pytest.raises(StoreCorrupt, match="belongs to another batch"):
        current_outputs(batch)


def test_outputs_of_the_highest_generation_are_current(batch: BatchDir) -> None:
    outputs = _outputs(batch)
    for name, generation in ((Digest("0" * 64), 2), (Digest("f" * 64), 1)):
        copied = outputs.root.with_name(name)
        shutil.copytree(outputs.root, copied)
        manifest = msgspec.structs.replace(outputs.manifest, result_digest=name, generation=generation)
        (copied / layout.MANIFEST_FILE).write_bytes(encode_document(manifest))
    assert _outputs(batch).manifest.generation == 2


def test_iter_some_returns_the_whole_shard_for_an_unknown_item(batch: BatchDir) -> None:
    outputs = _outputs(batch)
    task = outputs.manifest.tasks[0]
    whole = list(outputs.iter_shard(task, 0))
    assert whole
    assert list(outputs.iter_selected_items(task, 0, [7])) == whole
