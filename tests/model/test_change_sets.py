"""Change sets: their bytes, and what is refused when they are read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.model.change import (
    ChangeSet,
    ListedChange,
    TreeChange,
    UnrecordedPath,
    decode_change_set,
    encode_change_set,
)
from codebatch.model.digest import digest_bytes
from codebatch.model.documents import DocumentError

OLD, NEW = digest_bytes(b"old"), digest_bytes(b"new")


def listed(path: bytes = b"a", **members: object) -> ListedChange:
    change = TreeChange(path=path, **{"before": OLD, "after": NEW, **members})  # type: ignore[arg-type]
    return ListedChange(change=change, added=1, removed=0)


CHANGES = [
    listed(b"a"),
    listed(b"b/c\xff", before=None),
    listed(b"b\nc", after=None, was_executable=True),
    listed(b"link", kind="link"),
    listed(b"mode", after=OLD, executable=True),
]
UNRECORDED = [UnrecordedPath(path=b"a", reason="special"), UnrecordedPath(path=b"b/c\xff", reason="ignored")]


@given(st.permutations(CHANGES))
def test_equal_sets_have_equal_bytes_and_are_read_as_written(changes: list[ListedChange]) -> None:
    data = encode_change_set(changes, reversed(UNRECORDED))
    assert data == encode_change_set(CHANGES, UNRECORDED)
    decoded = decode_change_set(data)
    assert list(decoded.changes) == sorted(CHANGES, key=lambda each: each.change.path)
    assert list(decoded.unrecorded) == UNRECORDED
    assert decoded.lost == (UNRECORDED[0],)


HOSTILE = {
    "absolute": (encode_change_set([listed(b"/etc/passwd")]), "path is not safe"),
    "parent": (encode_change_set([listed(b"a/../b")]), "path is not safe"),
    "no path": (b'{"before":"%b"}\n' % OLD.encode(), "invalid change"),
    "no change": (encode_change_set([listed(after=OLD)]), "changes nothing"),
    "nothing": (encode_change_set([listed(before=None, after=None, executable=True)]), "changes nothing"),
    "digest": (encode_change_set([listed(after="../x")]), "digest is invalid"),
    "twice": (encode_change_set([listed()]) * 2, "listed twice"),
    "unsorted": (encode_change_set([listed(b"b")]) + encode_change_set([listed(b"a")]), "not sorted"),
    "kind": (encode_change_set([listed(kind="device")]), "invalid change"),
    "key": (b'{"path":"a","before":"%b","mode":4095}\n' % OLD.encode(), "invalid change"),
    "spaces": (b'{"path": "a","before":"%b"}\n' % OLD.encode(), "canonical"),
    "lines": (b'{"added":-1,"path":"a","before":"%b"}\n' % OLD.encode(), "negative"),
    "unrecorded absolute": (encode_change_set([], [UnrecordedPath(path=b"/a", reason="type")]), "path is not safe"),
    "unrecorded twice": (2 * encode_change_set([], UNRECORDED[:1]), "listed twice"),
    "unrecorded first": (encode_change_set([], UNRECORDED) + encode_change_set([listed()]), "canonical"),
    "unrecorded change": (b'{"path":"a","unrecorded":"type","added":1}\n', "canonical"),
    "unknown reason": (b'{"path":"a","unrecorded":"x"}\n', "invalid change"),
    "unended": (encode_change_set([listed()])[:-1], "canonical"),
}


@pytest.mark.parametrize(("data", "message"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_set_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        decode_change_set(data)


def test_empty_set() -> None:
    assert decode_change_set(encode_change_set([])) == ChangeSet()
