"""Tests of the file of untrusted result keys: it is kept completely, or its damage is reported."""

from __future__ import annotations

import pytest

from codebatch.errors import InvalidInput, StoreCorrupt
from codebatch.model.digest import Digest, digest_bytes
from codebatch.model.documents import encode_document
from codebatch.store.batches.batch_directory import BatchId
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.results.untrusted import (
    UntrustedFile,
    UntrustedKey,
    distrust_keys,
    load_untrusted,
    trust_key,
    untrusted_keys,
)

GOLDEN = (
    b'{"format":1,"keys":[{"key":"abAB","task":"lint","batch_id":"batch-1"},{"key":"cdAB","task":"parse","batch_id":'
    b'"batch-2"}]'
).replace(b"AB", b"0" * 62)


def key(name: str, task: str = "lint", batch: str = "batch-1") -> UntrustedKey:
    return UntrustedKey(key=Digest(name.ljust(64, "0")), task=task, batch_id=BatchId(batch))


def test_untrusted_keys_are_added_once_and_removed_by_unique_prefix(store: StoreDir) -> None:
    path = store.root / "untrusted.json"
    distrust_keys(store, [])
    assert (load_untrusted(store), path.exists()) == ((), False)
    distrust_keys(store, [key("cd", "parse", "batch-2"), key("ab")])
    assert path.read_bytes() == GOLDEN + b',"checksum":"' + digest_bytes(GOLDEN).encode() + b'"}\n'
    distrust_keys(store, [key("ab", "other"), key("ac")])
    assert load_untrusted(store) == (key("ab"), key("ac"), key("cd", "parse", "batch-2"))
    for unclear in ("a", "", "x", "abc"):
        with pytest.raises(InvalidInput, match="untrusted cache keys"):
            trust_key(store, unclear)
    assert trust_key(store, "ac") == key("ac")
    assert untrusted_keys(store) == {key("ab").key, key("cd").key}


def test_damaged_file_of_untrusted_keys_is_never_read_as_empty(store: StoreDir) -> None:
    path = store.root / "untrusted.json"
    distrust_keys(store, [key("ab")])
    sound = path.read_bytes()
    for place in range(len(sound)):
        for harmed in (sound[:place], sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :]):
            path.write_bytes(harmed)
            with pytest.raises(StoreCorrupt, match=r"untrusted\.json"):
                load_untrusted(store)
    path.write_bytes(sound[:-1])
    with pytest.raises(StoreCorrupt) as raised:
        distrust_keys(store, [key("cd")])
    assert "codebatch verify" in (raised.value.hint or "")
    assert path.read_bytes() == sound[:-1], "a damaged file was overwritten"


@pytest.mark.parametrize("keys", [(key("cd"), key("ab")), (key("ab"), key("ab", "parse")), (key("--"),)])
def test_untrusted_keys_out_of_order_are_damage(store: StoreDir, keys: tuple[UntrustedKey, ...]) -> None:
    (store.root / "untrusted.json").write_bytes(encode_document(UntrustedFile(keys=keys)))
    with pytest.raises(StoreCorrupt, match="out of order"):
        load_untrusted(store)
