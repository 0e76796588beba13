"""Records of applied change sets: numbered, write-once files."""

from __future__ import annotations

import itertools
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from codebatch.errors import CorruptFile
from codebatch.model.digest import Digest
from codebatch.model.documents import DocumentError
from codebatch.model.work.application import (
    AppliedChangeSet,
    ChangesApplication,
    applied_change_sets,
    decode_application,
    encode_application,
)
from codebatch.model.work.command import CommandId
from codebatch.store.work.applications import ApplicationStore
from codebatch.system.files.files import RealFiles

A, B = (AppliedChangeSet(task=CommandId(name), changes=Digest(name * 64)) for name in "ab")


def application(*change_sets: AppliedChangeSet, is_reversed: bool = False, n: int = 1) -> ChangesApplication:
    return ChangesApplication(n=n, at_ns=0, root=b"/r", is_reversed=is_reversed, change_sets=change_sets)


@pytest.fixture
def applications(tmp_path: Path) -> ApplicationStore:
    return ApplicationStore(RealFiles(), tmp_path)


def test_applications_are_numbered_and_read_in_order(tmp_path: Path, applications: ApplicationStore) -> None:
    assert applications.read() == []
    first = applications.append([B, A], root=b"/r\xff", at_ns=5)
    assert first == ChangesApplication(n=1, at_ns=5, root=b"/r\xff", change_sets=(A, B))
    second = applications.append([A], root=b"/r", at_ns=6, is_reversed=True, branch="x")
    assert [path.name for path in sorted((tmp_path / "applied").iterdir())] == ["000001.json", "000002.json"]
    assert applications.read() == [first, second]
    assert applications.read_applied() == {B}


def test_number_of_a_concurrent_application_is_not_used_again(tmp_path: Path, applications: ApplicationStore) -> None:
    class RacedFiles(RealFiles):
        def create_exclusive(self, source: Path | str, path: Path | str) -> bool:
            if Path(path).name == "000001.json":
                applications.append([A], root=b"/r", at_ns=1)
            return super().create_exclusive(source, path)

    assert ApplicationStore(RacedFiles(), tmp_path).append([B], root=b"/r", at_ns=2).n == 2
    assert [each.change_sets for each in applications.read()] == [(A,), (B,)]


@pytest.mark.parametrize("damage", [b"", b"{}", encode_application(application(n=2))])
def test_damaged_file_is_reported(tmp_path: Path, applications: ApplicationStore, damage: bytes) -> None:
    applications.append([A], root=b"/r", at_ns=1)
    (tmp_path / "applied" / "000001.json").write_bytes(damage)
    with pytest.raises(CorruptFile, match=r"applied/000001\.json is damaged"):
        applications.read()


def test_other_files_are_ignored(tmp_path: Path, applications: ApplicationStore) -> None:
    applications.append([A], root=b"/r", at_ns=1)
    for name in ("1.json", "0000001.json", ".x.tmp", "000002.json.bak", "x"):
        (tmp_path / "applied" / name).write_bytes(b"x")
    assert len(applications.read()) == 1


def test_document_is_decoded_as_it_was_encoded() -> None:
    document = application(A, B, is_reversed=True, n=3)
    assert decode_application(encode_application(document), 3) == document
    with pytest.raises(DocumentError, match="it has number 3"):
        decode_application(encode_application(document), 4)


@given(st.lists(st.tuples(st.booleans(), st.sets(st.sampled_from([A, B])))))
def test_last_application_of_a_change_set_counts(calls: list[tuple[bool, set[AppliedChangeSet]]]) -> None:
    numbers = itertools.count(1)
    documents = [application(*sorted(sets), is_reversed=is_reversed, n=next(numbers)) for is_reversed, sets in calls]
    expected = {
        one for one in (A, B) if next((not is_reversed for is_reversed, sets in reversed(calls) if one in sets), False)
    }
    assert applied_change_sets(documents) == expected
