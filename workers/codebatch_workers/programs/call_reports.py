"""Assignment of the report of a call to the files of the call, and what the output has beside findings in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from itertools import islice

from codebatch.interchange.reports import NO_MESSAGE, ImportedFinding, ImportedReport, UnreadText, sample_text
from codebatch.model.record import OmittedPart
from codebatch_workers.programs.report_paths import ReportedPaths

_WORD = re.compile(r"[^\s'\"`()\[\]<>,;]+")


class FileReport:
    """The findings of a call in one file, and what was omitted: for each part the number and the first sample."""

    def __init__(self) -> None:
        self.findings: list[ImportedFinding] = []
        self.omitted: dict[OmittedPart, tuple[int, str]] = {}

    def omit(self, part: OmittedPart, sample: str, count: int = 1) -> None:
        """Count omitted lines or findings."""
        if count:
            known, first_sample = self.omitted.get(part, (0, sample_text(sample)))
            self.omitted[part] = known + count, first_sample

    def remove_texts(self, remove: Callable[[str], str]) -> None:
        """Apply a function that removes texts of this machine to all messages and samples."""
        self.findings = [finding._replace(message=remove(finding.message)) for finding in self.findings]
        self.omitted = {part: (count, remove(sample)) for part, (count, sample) in self.omitted.items()}


def assign_report(
    report: ImportedReport, paths: ReportedPaths, locations: Collection[bytes], first: bytes
) -> dict[bytes, FileReport]:
    """Return the report of each file at some locations.

    If there is one location, findings without a path belong to it. Findings elsewhere, and lines that name no file, are
    omitted in the file at `first`.
    """
    only = next(iter(locations)) if len(locations) == 1 else None
    by_location: dict[bytes, FileReport] = {}
    for finding in report.findings:
        candidates = (paths.find(path, is_uri=finding.is_uri) for path in finding.paths)
        location = next(filter(None, candidates), None) if finding.paths else only
        if location is None:
            by_location.setdefault(first, FileReport()).omit("findings", _finding_sample(finding))
        else:
            by_location.setdefault(location, FileReport()).findings.append(finding)
    for sample in report.unread.samples:
        by_location.setdefault(_named_location(sample, paths) or first, FileReport()).omit("lines", sample)
    if more := report.unread.parts - len(report.unread.samples):
        by_location.setdefault(first, FileReport()).omit("lines", report.unread.samples[0], more)
    return by_location


def _finding_sample(finding: ImportedFinding) -> str:
    path = finding.paths[0] if finding.paths else ""
    shown = path.decode("utf-8", "backslashreplace") if isinstance(path, bytes) else path
    return f"{shown}:{finding.line}" if shown else finding.message or NO_MESSAGE


def _named_location(line: str, paths: ReportedPaths) -> bytes | None:
    """Return the location of the first file that a line names."""
    words = (word for match in _WORD.finditer(line) for word in (match[0], match[0].partition(":")[0]))
    return next(filter(None, (paths.find(word, is_uri=False) for word in islice(words, 100))), None)


def without_ignored(report: ImportedReport, patterns: Sequence[str]) -> ImportedReport:
    """Return a report without lines, and findings without a file, whose text matches a pattern of the user."""
    if not patterns:
        return report
    kept = tuple(sample for sample in report.unread.samples if not matches_any(sample, patterns))
    more = report.unread.parts - len(report.unread.samples)
    return report._replace(
        findings=[
            finding for finding in report.findings if finding.paths or not matches_any(finding.message, patterns)
        ],
        unread=UnreadText(len(kept) + (more if kept else 0), kept),
        other_text="" if matches_any(report.other_text, patterns) else report.other_text,
    )


def matches_any(text: str, patterns: Sequence[str]) -> bool:
    """Return whether a text matches a pattern as a whole. `*` means any text."""
    return any(_matches(text.strip(), pattern.split("*")) for pattern in patterns)


def _matches(text: str, parts: Sequence[str]) -> bool:
    """Return whether a text consists of `parts` with any text between them."""
    if len(parts) == 1:
        return text == parts[0]
    position = len(parts[0])
    end = len(text) - len(parts[-1])
    if not text.startswith(parts[0]) or not text.endswith(parts[-1]):
        return False
    for part in parts[1:-1]:
        position = text.find(part, position, end)
        if position < 0:
            return False
        position += len(part)
    return position <= end
