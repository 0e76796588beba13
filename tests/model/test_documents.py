"""Documents on disk: golden bytes of each kind, and detection of truncation, flipped bits and foreign bytes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codebatch.errors import StoreCorrupt
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.documents import Document, DocumentError, decode_json, encode_document
from codebatch.model.entry import SnapshotId
from codebatch.model.outcome import HolderId, decode_commit
from codebatch.model.plan import decode_plan
from codebatch.model.record_counts import RecordCounts
from codebatch.model.shard import ShardId
from codebatch.store.batches.batch_directory import BatchFile, BatchId, decode_batch
from codebatch.store.batches.holders import HolderFile, decode_holder
from codebatch.store.batches.source_places import SourcePlace
from codebatch.store.documents import read_document
from codebatch.store.results.compaction import CompactedBatch, decode_compacted
from codebatch.store.results.outputs import Manifest, OutputShard, TaskOutput, decode_manifest
from codebatch.store.snapshots.index_frames import IndexFrame
from codebatch.store.snapshots.snapshots import SnapshotDocument, SnapshotSource, decode_snapshot
from codebatch.system.files.files import RealFiles
from codebatch.system.host import HostBoot
from tests.model.test_formats import COMMIT, GOLDEN, PLAN

BATCH = BatchFile(
    batch_id=BatchId("batch-20261121-120000-000000-0123ab"),
    snapshot_id=SnapshotId("snap-2222222222222222"),
    pipeline="full",
    plan_digest=Digest("1" * 64),
    sources=("/home/é".encode(),),
    commit="3" * 40,
    is_clean=True,
    created_at_ns=1_800_000_000_000_000_000,
    shards=1,
    items=5,
    place=SourcePlace(
        device=7, is_on_store_device=True, parent=9, work_tree=b"/home/\xe9", repository=b"/m/.git", directory=b"s"
    ),
)
SNAPSHOT = SnapshotDocument(
    snapshot_id="snap-2222222222222222",
    digest="2" * 64,
    files=2,
    bytes=20,
    entries=3,
    created_at="2026-11-21T12:00:00Z",
    source=SnapshotSource(base="/home", roots=("/home/a",), listing="git"),
    frames=(
        IndexFrame(
            path="caf\xe9".encode(), entries=3, files=2, size=20, length=170, content=400, digest=Digest("3" * 64)
        ),
    ),
)
HOLDER = HolderFile(
    holder=HolderId("0" * 32),
    role="worker",
    pid=17,
    host=HostBoot(name="here", boot="3" * 32),
    since_ns=1_800_000_000_000_000_000,
    parent=HolderId("1" * 32),
)
MANIFEST = Manifest(
    plan_digest=Digest("1" * 64),
    result_digest=Digest("2" * 64),
    generation=0,
    items=5,
    tasks=(
        TaskOutput(
            task="parse",
            scope="file",
            digest=digest_bytes(b""),
            length=17,
            bytes=90,
            failed=0,
            cancelled=0,
            counts=RecordCounts(kinds={"file": 5}),
            shards=(
                OutputShard(
                    shard=ShardId("0123abcd"),
                    length=17,
                    trailer=300,
                    digest=Digest("3" * 64),
                    bytes=90,
                    counts=RecordCounts(kinds={"file": 5}),
                ),
            ),
        ),
    ),
)
SETTLED = CompactedBatch(plan_digest=Digest("1" * 64), result_digest=Digest("2" * 64))
KINDS: dict[str, tuple[Document, Callable[[bytes], Document]]] = {
    "plan": (PLAN, decode_plan),
    "commit": (COMMIT, decode_commit),
    "batch": (BATCH, decode_batch),
    "snapshot": (SNAPSHOT, decode_snapshot),
    "holder": (HOLDER, decode_holder),
    "settled": (SETTLED, decode_compacted),
    "manifest": (MANIFEST, decode_manifest),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def _signed_document(body: bytes) -> bytes:
    """Return a document with a valid checksum. `body` is the JSON object without its closing brace."""
    return body + b',"checksum":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'


@every_kind
def test_document_matches_the_golden_file(kind: str) -> None:
    document, decode = KINDS[kind]
    data = encode_document(document)
    assert data == (GOLDEN / f"{kind}.json").read_bytes()
    assert decode(data) == document


@every_kind
def test_document_truncated_anywhere_is_rejected(kind: str) -> None:
    document, decode = KINDS[kind]
    data = encode_document(document)
    for length in range(len(data)):
        with pytest.raises(DocumentError):
            decode(data[:length])


@every_kind
def test_document_with_any_flipped_bit_is_rejected(kind: str) -> None:
    document, decode = KINDS[kind]
    data = bytearray(encode_document(document))
    for place in range(len(data)):
        for bit in range(8):
            data[place] ^= 1 << bit
            with pytest.raises(DocumentError):
                decode(bytes(data))
            data[place] ^= 1 << bit


@every_kind
def test_field_of_a_later_version_is_ignored(kind: str) -> None:
    document, decode = KINDS[kind]
    assert decode(_signed_document(msgspec.json.encode(document)[:-1] + b',"later":[1,{"a":"b"}]')) == document


@every_kind
def test_document_of_another_format_is_reported(kind: str) -> None:
    document, decode = KINDS[kind]
    later = msgspec.structs.replace(document, format=99)
    with pytest.raises(DocumentError, match="it has format 99, but this version reads"):
        decode(encode_document(later))


@every_kind
@pytest.mark.parametrize(
    "body",
    [
        b'{"format":"\xff"',
        b'{"format":' + b"[" * 100_000 + b"]" * 100_000,
        b'{"format":1' + b"0" * 5000,
        b"[1",
        b'{"format":null',
        b'{"format":2',
        b"{",
        b"",
    ],
    ids=["no UTF-8", "deep", "huge number", "no object", "wrong type", "fields missing", "empty object", "nothing"],
)
def test_invalid_document_with_a_valid_checksum_is_rejected(kind: str, body: bytes) -> None:
    with pytest.raises(DocumentError):
        KINDS[kind][1](_signed_document(body))


@every_kind
@pytest.mark.parametrize("data", [b"", b"\n", b"null\n", b"\0" * 4096, b'"}\n' * 40])
def test_arbitrary_bytes_are_rejected_as_a_document(kind: str, data: bytes) -> None:
    with pytest.raises(DocumentError):
        KINDS[kind][1](data)


def test_trailing_bytes_after_a_document_are_damage() -> None:
    data = encode_document(BATCH)
    for more in (b"\n", b" ", b"\0", data):
        with pytest.raises(DocumentError):
            decode_batch(data + more)


def test_document_is_a_single_line_of_json() -> None:
    data = encode_document(BATCH)
    assert data.count(b"\n") == 1
    assert json.loads(data)["checksum"] == hashlib.sha256(data[: data.rindex(b',"checksum"')]).hexdigest()


def test_deeply_nested_json_is_rejected() -> None:
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
    with pytest.raises(DocumentError):
        decode_json(b"[" * 100_000, decoder.decode)


def test_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "batch.json"
    path.write_bytes(b"\xff")
    with pytest.raises(StoreCorrupt, match=r"batch\.json is damaged: it does not end with its checksum") as raised:
        read_document(RealFiles(), path, decode_batch, hint="remove it")
    assert raised.value.hint == "remove it"
    with pytest.raises(FileNotFoundError):
        read_document(RealFiles(), tmp_path / "nothing", decode_batch, hint="")


def test_oversized_document_is_damaged_and_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codebatch.store.documents.DOCUMENT_BYTES_MAX", 1 << 20)
    path = tmp_path / "batch.json"
    path.touch()
    os.truncate(path, 40 << 30)
    with pytest.raises(StoreCorrupt, match=r"batch\.json is damaged: it is longer than 1048576 bytes"):
        read_document(RealFiles(), path, decode_batch, hint="")
