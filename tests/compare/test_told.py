"""Tests of the matching of findings of two batches: each is in one pair or unmatched, and the result is symmetric."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from codebatch.compare.matching.finding_pairs import FindingsByPath, ReportedFinding, match_findings
from codebatch.compare.matching.trees import Side, TreeComparison
from codebatch.model.digest import Digest
from codebatch.model.entry import Entry
from codebatch.model.record import Diagnostic
from codebatch.query.sources.records import BatchRecords

_NO_SYMBOLS = cast("BatchRecords", SimpleNamespace(task_names=()))

Files = Mapping[bytes, bytes]


class _Trees(TreeComparison):
    """Two trees in memory."""

    def __init__(self, old: Files, new: Files) -> None:
        super().__init__(_NO_SYMBOLS, _NO_SYMBOLS)
        self._files: dict[Side, Files] = {"old": old, "new": new}

    @property
    def differing_files(self) -> tuple[Mapping[bytes, Entry], Mapping[bytes, Entry]]:
        old, new = ({path: _entry(path, text) for path, text in self._files[side].items()} for side in ("old", "new"))
        return (
            {path: entry for path, entry in old.items() if new.get(path) != entry},
            {path: entry for path, entry in new.items() if old.get(path) != entry},
        )

    def content(self, side: Side, path: bytes) -> bytes | None:
        return self._files[side][path]

    def object_digest(self, side: Side, path: bytes) -> str:
        return _entry(path, self._files[side][path]).object


def _entry(path: bytes, text: bytes) -> Entry:
    return Entry(path, "file", executable=False, size=len(text), object=Digest(hashlib.sha256(text).hexdigest()))


_lines = st.lists(st.sampled_from([b"a", b"b", b" a", b"", b"c d", b"e"]), max_size=7)
_trees = st.dictionaries(st.sampled_from([b"p.py", b"q.py", b"d/p.py", b"r.c"]), _lines, min_size=1, max_size=3)
_places = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 8), st.integers(1, 2), st.sampled_from("XY"), st.sampled_from("mn")),
    max_size=8,
)
_batches = st.tuples(_trees, _places)


def _reported_findings(files: Files, places: list[tuple[int, int, int, str, str]]) -> list[ReportedFinding]:
    paths = sorted(files)
    return [
        ReportedFinding(path, "lint" if at < 2 else "other", _diagnostic(path, line, column, code, message))
        for at, line, column, code, message in places
        for path in [paths[at % len(paths)]]
    ]


def _by_path(reported: Iterable[ReportedFinding]) -> FindingsByPath:
    by_path: dict[bytes, list[ReportedFinding]] = defaultdict(list)
    for finding in reported:
        by_path[finding.path].append(finding)
    return by_path


def _diagnostic(path: bytes, line: int, column: int, code: str, message: str) -> Diagnostic:
    return Diagnostic(
        path=path.decode(),
        line=line,
        column=column,
        end_line=line,
        end_column=column,
        severity="error",
        code=code,
        message=message,
        tool="t",
    )


@given(old=_batches, new=_batches)
def test_finding_matching_is_complete_and_symmetric(
    old: tuple[dict[bytes, list[bytes]], list[tuple[int, int, int, str, str]]],
    new: tuple[dict[bytes, list[bytes]], list[tuple[int, int, int, str, str]]],
) -> None:
    files = [{path: b"\n".join(lines) for path, lines in tree.items()} for tree, _ in (old, new)]
    old_findings, new_findings = _reported_findings(files[0], old[1]), _reported_findings(files[1], new[1])
    paired = match_findings(_Trees(*files), _by_path(old_findings), _by_path(new_findings))
    assert {*old_findings} == {pair.old for pair in paired.pairs} | {*paired.old}
    assert {*new_findings} == {pair.new for pair in paired.pairs} | {*paired.new}
    assert len(old_findings) == len(paired.pairs) + len(paired.old)
    assert len(new_findings) == len(paired.pairs) + len(paired.new)
    assert all(pair.old.code == pair.new.code for pair in paired.pairs)
    mirrored = match_findings(_Trees(*files[::-1]), _by_path(new_findings), _by_path(old_findings))
    assert {(pair.new, pair.old, pair.by) for pair in mirrored.pairs} == {*paired.pairs}


@given(batch=_batches)
def test_identical_findings_match_themselves(
    batch: tuple[dict[bytes, list[bytes]], list[tuple[int, int, int, str, str]]],
) -> None:
    files = {path: b"\n".join(lines) for path, lines in batch[0].items()}
    lines = {path: text.count(b"\n") + 1 for path, text in files.items()}
    findings = [
        finding for finding in _reported_findings(files, batch[1]) if 0 < finding.about.line <= lines[finding.path]
    ]
    paired = match_findings(_Trees(files, files), _by_path(findings), _by_path(findings))
    assert all((pair.old.about, pair.by) == (pair.new.about, "line") for pair in paired.pairs)
    assert (paired.old, paired.new) == ([], [])


def test_findings_of_two_tasks_are_matched_within_each_task_first() -> None:
    """Two imports of one program have the same finding.

    One import is missing in the other batch, where a line was inserted.
    """
    trees = _Trees({b"a.c": b"x\ny\n"}, {b"a.c": b"\nx\ny\n"})
    one, other = (ReportedFinding(b"a.c", task, _diagnostic(b"a.c", 2, 1, "X", "m")) for task in ("one", "other"))
    for task in ("one", "other"):
        left = ReportedFinding(b"a.c", task, _diagnostic(b"a.c", 3, 1, "X", "m"))
        for findings in ([one, other], [other, one]):
            paired = match_findings(trees, _by_path(findings), _by_path([left]))
            assert [(pair.old.task, pair.new) for pair in paired.pairs] == [(task, left)]
            assert [finding.task for finding in paired.old] == [{"one": "other", "other": "one"}[task]]
    renamed = ReportedFinding(b"a.c", "renamed", _diagnostic(b"a.c", 3, 1, "X", "m"))
    assert [pair.old for pair in match_findings(trees, _by_path([one]), _by_path([renamed])).pairs] == [one]
