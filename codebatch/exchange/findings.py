"""The findings that go out of a batch: in what order, and by what each is known again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from codebatch.compare.batches import read_items
from codebatch.compare.matching.fingerprints import fingerprints
from codebatch.compare.matching.scopes import NO_SCOPES, Scopes, have_scopes, read_scopes
from codebatch.compare.matching.texts import Texts
from codebatch.compare.states import State
from codebatch.exchange.sources import BatchSources
from codebatch.model.record import SEVERITIES, Diagnostic
from codebatch.query.secondary_files import SecondaryFiles
from codebatch.query.sources.parsed_files import files_apart
from codebatch.query.sources.records import BatchRecords


class Outgoing(NamedTuple):
    """A finding that goes out, of which file; `state` is what became of it where two batches are compared, and why.

    `is_changed`: it stands on a line that the older batch has not. `fingerprint` is empty where its file is lost.
    """

    found: Diagnostic
    path: bytes
    state: State | None = None
    reason: str | None = None
    is_changed: bool = False
    fingerprint: str = ""


def worst_first(records: BatchRecords, outgoing: Iterable[Outgoing]) -> list[Outgoing]:
    """Findings on changed lines before others; then the gravest, of these last those in tests and the like; by place.

    Raises StoreCorrupt.
    """
    apart = SecondaryFiles(files_apart(records.files))

    def rank(each: Outgoing) -> tuple[bool, int, bool, bytes, int, int, str, str]:
        is_apart, found = apart.of(each.path) is not None, each.found
        grave = _RANKS[found.severity]
        return not each.is_changed, grave, is_apart, each.path, found.line, found.column, found.code, found.message

    return sorted(outgoing, key=rank)


def by_place(outgoing: Iterable[Outgoing]) -> list[Outgoing]:
    """Findings by path and place."""
    return sorted(outgoing, key=lambda each: (each.path, each.found.line, each.found.column, each.found.code))


def with_fingerprints(
    records: BatchRecords, tasks: Iterable[str], outgoing: Sequence[Outgoing], sources: BatchSources
) -> list[Outgoing]:
    """The same findings with what knows them again; `sources` learns what is lost. Raises StoreCorrupt.

    They are numbered among all that `tasks` find in their files, so that it is the same whatever else goes out. What
    these do not find, since it is silenced, has none.
    """
    files: dict[bytes, list[int]] = defaultdict(list)
    for index, each in enumerate(outgoing):
        files[each.path].append(index)
    items = records.find_items(sorted(files)).values()
    every: dict[bytes, list[Diagnostic]] = defaultdict(list)
    for task in tasks:
        for path, found in read_items(records, task, items, Diagnostic).items():
            every[path] += found
    scopes = read_scopes(records, files) if have_scopes(records) else {}
    known = list(outgoing)
    for path, indexes in files.items():
        content = sources.content(path)
        if content is not None:
            of_file = _known(every[path], Texts(content.split(b"\n")), scopes.get(path, NO_SCOPES))
            for index in indexes:
                if left := of_file.get(outgoing[index].found):
                    known[index] = outgoing[index]._replace(fingerprint=left.pop(0))
    return known


def _known(every: Sequence[Diagnostic], texts: Texts, scopes: Scopes) -> dict[Diagnostic, list[str]]:
    """What knows each finding of a file; several of one where it is there as often."""
    known: dict[Diagnostic, list[str]] = defaultdict(list)
    findings = [texts.finding(each, scopes.at(each.line)) for each in every]
    for each, fingerprint in zip(every, fingerprints(findings), strict=True):
        known[each].append(fingerprint)
    return known


_RANKS = {severity: rank for rank, severity in enumerate(SEVERITIES)}
