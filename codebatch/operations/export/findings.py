"""The exported findings of a batch: their order and their fingerprints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from codebatch.compare.batches import read_items
from codebatch.compare.matching.fingerprints import fingerprints
from codebatch.compare.matching.scopes import NO_SCOPES, FileScopes, have_scopes, read_scopes
from codebatch.compare.matching.texts import FileTexts
from codebatch.interchange.findings import ExportedFinding
from codebatch.model.record import SEVERITIES, Diagnostic
from codebatch.operations.export.sources import BatchSources
from codebatch.query.secondary_files import SecondaryFiles
from codebatch.query.sources.parsed_files import secondary_categories
from codebatch.query.sources.records import BatchRecords


def worst_first(records: BatchRecords, outgoing: Iterable[ExportedFinding]) -> list[ExportedFinding]:
    """Sort findings by four criteria: changed lines first, most severe first, production files first, then by location.

    Raises StoreCorrupt.
    """
    non_production = SecondaryFiles(secondary_categories(records.files))

    def rank(outgoing: ExportedFinding) -> tuple[bool, int, bool, bytes, int, int, str, str]:
        is_secondary, finding = non_production.category_of(outgoing.path) is not None, outgoing.diagnostic
        severity_rank = _SEVERITY_RANKS[finding.severity]
        return (
            not outgoing.is_changed,
            severity_rank,
            is_secondary,
            outgoing.path,
            finding.line,
            finding.column,
            finding.code,
            finding.message,
        )

    return sorted(outgoing, key=rank)


def with_fingerprints(
    records: BatchRecords, tasks: Iterable[str], outgoing: Sequence[ExportedFinding], sources: BatchSources
) -> list[ExportedFinding]:
    """Return the findings with fingerprints, by which other programs recognise a finding in a later export.

    Equal findings of a file are numbered, to give them different fingerprints. All findings of `tasks` in the file are
    numbered, not only exported ones. So a fingerprint does not depend on the selection of findings to export.

    Suppressed findings have no fingerprint, because `tasks` do not report them. Files with missing content are added to
    `sources`. Raises StoreCorrupt.
    """
    files: dict[bytes, list[int]] = defaultdict(list)
    for index, finding in enumerate(outgoing):
        files[finding.path].append(index)
    items = records.find_items(sorted(files)).values()
    every: dict[bytes, list[Diagnostic]] = defaultdict(list)
    for task in tasks:
        for path, diagnostics in read_items(records, task, items, Diagnostic).items():
            every[path] += diagnostics
    scopes = read_scopes(records, files) if have_scopes(records) else {}
    identified = list(outgoing)
    for path, indexes in files.items():
        content = sources.content(path)
        if content is not None:
            of_file = _finding_fingerprints(every[path], FileTexts(content.split(b"\n")), scopes.get(path, NO_SCOPES))
            for index in indexes:
                if remaining := of_file.get(outgoing[index].diagnostic):
                    identified[index] = outgoing[index]._replace(fingerprint=remaining.pop(0))
    return identified


def _finding_fingerprints(
    every: Sequence[Diagnostic], texts: FileTexts, scopes: FileScopes
) -> dict[Diagnostic, list[str]]:
    """Return the fingerprints of the findings of a file.

    Equal findings are one key of the result; its list has a fingerprint for each of them.
    """
    by_finding: dict[Diagnostic, list[str]] = defaultdict(list)
    findings = [texts.make_matchable(diagnostic, scopes.scope_at(diagnostic.line)) for diagnostic in every]
    for diagnostic, fingerprint in zip(every, fingerprints(findings), strict=True):
        by_finding[diagnostic].append(fingerprint)
    return by_finding


_SEVERITY_RANKS = {severity: rank for rank, severity in enumerate(SEVERITIES)}
