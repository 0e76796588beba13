"""The text of answers without results: `none`, or `none, but …` if files may contain results nevertheless."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from codebatch.cli.framework.answer_printing import emit_rows
from codebatch.cli.framework.context import CommandContext
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations.queries.batch_query import Answer
from codebatch.query.completeness import Completeness

if TYPE_CHECKING:
    from codebatch.query.answers.search_coverage import DoubtfulFile, DoubtReason, SearchCoverage

DOUBTFUL_FILES_SHOWN = 10

_COUNT_TEXTS: Mapping[DoubtReason, str] = {
    "partial": "partially parsed",
    "errors": "with syntax errors",
    "unsupported": "without a grammar",
    "binary": "binary",
    "huge": "too large",
    "minified": "minified",
    "skipped": "not parsed",
    "markup": "in HTML",
    "unknown": "without a result of the task parse",
    "outside": "outside the batch",
}
"""Texts after the number of files that were not parsed completely, by reason."""
_FILE_TEXTS: Mapping[DoubtReason, str] = {
    "partial": "partially parsed",
    "errors": "syntax errors",
    "binary": "binary",
    "huge": "too large to be parsed",
    "minified": "minified, so not parsed",
    "skipped": "not parsed: nested too deeply, too long, or a Git LFS pointer",
    "markup": "scripts in HTML are not parsed",
    "unknown": "the task parse has no result",
    "outside": "outside the paths of the batch",
    "text": "parsed, but the name is not a plain identifier",
    "missing": "its content is missing from the store",
    "unlisted": "not in the batch",
}


def emit_search(
    context: CommandContext,
    answer: Answer[object],
    rows: object,
    lines: Iterator[str],
    subject: str,
    *,
    members: Mapping[str, object] = {},
    name: str | None = None,
) -> int:
    """Print the rows of a search, or `none` and what it rests on. Return the exit status.

    `subject` names what was searched, for example "calls of f". `members` and `name` are as in `emit_rows`.
    """
    coverage = answer.coverage
    members = {**members, "coverage": coverage}
    if coverage is None:
        if_none = "" if rows or not answer.completeness.progress else f"no {subject}"
        return emit_rows(context, answer, rows, lines, if_none=if_none, members=members, name=name)
    if_none = "" if rows or coverage.doubt else none_text(subject, coverage, answer.completeness)
    status = emit_rows(context, answer, rows, lines, if_none=if_none, members=members, name=name)
    for line in doubt_lines(coverage):
        context.report(line)
    if coverage.text_only:
        verb = "contains" if coverage.text_only == 1 else "contain"
        files = count_text(coverage.text_only, "parsed file")
        context.note(f"{files} {verb} {_words_text(coverage)} only in comments, strings or data")
    return status


def none_text(subject: str, coverage: SearchCoverage, completeness: Completeness) -> str:
    """Return a line that nothing was found, and on which files this rests."""
    counts = _unparsed_texts(coverage)
    if coverage.left_out:
        counts.append(f"{coverage.left_out:,} ignored")
    details = "all parsed" if not coverage.unparsed else f"{coverage.parsed:,} parsed"
    if counts:
        is_one = sum(coverage.unparsed.values()) + (coverage.left_out or 0) == 1
        verb = "does" if is_one else "do"
        details += f"; {_join_texts(counts)} {verb} not contain {_words_text(coverage)}"
    if coverage.left_out is None:
        details += "; ignored files were not searched"
    lead = "none" if completeness.is_complete else "none found"
    return f"{lead}: no {subject} in {count_text(coverage.files, 'file')} ({details})"


def doubt_lines(coverage: SearchCoverage) -> Iterator[str]:
    """Yield the lines about files that may contain results. Yield nothing if there are no such files."""
    if not coverage.doubt:
        return
    counts = [f"{coverage.parsed:,} parsed", *_unparsed_texts(coverage)]
    if coverage.left_out:
        counts.append(f"{coverage.left_out:,} ignored")
    colon = ":" if coverage.doubtful or coverage.unresolved else ""
    yield f"{coverage.doubt} ({count_text(coverage.files, 'file')}: {', '.join(counts)}){colon}"
    for file in coverage.doubtful[:DOUBTFUL_FILES_SHOWN]:
        yield f"  {display_path(file.path_bytes)}: {_reason_text(file)}"
    if coverage.unresolved:
        yield f"  list the calls with: codebatch callers {shlex.quote(coverage.words[-1])}"
    omitted = len(coverage.doubtful) - DOUBTFUL_FILES_SHOWN
    if omitted > 0:
        yield f"  … and {count_text(omitted, 'more file')}; list all with --json"


def _unparsed_texts(coverage: SearchCoverage) -> list[str]:
    return [f"{count:,} {_COUNT_TEXTS[reason]}" for reason, count in coverage.unparsed.items()]


def _reason_text(file: DoubtfulFile) -> str:
    match file.reason:
        case "unsupported":
            return "unknown language" if file.detail in ("", "text") else f"no grammar for {file.detail}"
        case "ignored":
            return f"ignored ({file.detail})"
        case reason:
            return _FILE_TEXTS[reason]


def _words_text(coverage: SearchCoverage) -> str:
    return " or ".join(coverage.words)


def _join_texts(texts: list[str]) -> str:
    """Join texts with commas, and the last one with `and`."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last
