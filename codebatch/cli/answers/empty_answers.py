"""The text of answers to searches that may lack results: `none`, `none, but …`, or what was not searched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from codebatch.cli.framework.answer_printing import emit_rows
from codebatch.cli.framework.context import CommandContext
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations.queries.batch_query import Answer
from codebatch.query.answers.unparsed_files import REASON_TEXTS, DoubtfulFile, DoubtReason
from codebatch.query.completeness import Completeness

if TYPE_CHECKING:
    from codebatch.query.answers.search_coverage import SearchCoverage

DOUBTFUL_FILES_SHOWN = 10
UNSEARCHED_FILES_SHOWN = 3
"""Number of files that are listed below an answer without results, and below one with results."""

_FILE_TEXTS: Mapping[DoubtReason, str] = {
    **REASON_TEXTS,
    "errors": "syntax errors",
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
    members = {**members, "coverage": coverage, "not_searched": answer.not_searched}
    has_doubt = bool(answer.completeness.doubt)
    if coverage is None or has_doubt:
        if_none = "" if rows or has_doubt or not answer.completeness.progress else f"no {subject}"
    else:
        if_none = "" if rows else none_text(subject, coverage, answer.completeness)
    status = emit_rows(context, answer, rows, lines, if_none=if_none, members=members, name=name)
    for line in doubt_lines(answer):
        context.report(line)
    if coverage is not None:
        for note in _mention_notes(coverage):
            context.note(note)
    return status


def _mention_notes(coverage: SearchCoverage) -> Iterator[str]:
    """Yield notes about files that contain a name, but only as text for people."""
    kinds = (
        ("parsed file", coverage.text_only or 0, "only in comments, strings or data"),
        ("file of prose", coverage.documents, ""),
    )
    for noun, number, where in kinds:
        if number:
            verb = "contains" if number == 1 else "contain"
            files = count_text(number, noun, "files of prose" if noun == "file of prose" else "")
            yield f"{files} {verb} {coverage.words_text} {where}".rstrip()


def none_text(subject: str, coverage: SearchCoverage, completeness: Completeness) -> str:
    """Return a line that nothing was found, and on which files this rests."""
    # Prose with the name does not make the answer doubtful. A note counts these files.
    unparsed: dict[DoubtReason, int] = {
        reason: count for reason, count in coverage.unparsed.items() if reason != "document"
    }
    prose = coverage.unparsed.get("document", 0)
    counts = _unparsed_texts(unparsed)
    if coverage.left_out:
        counts.append(f"{coverage.left_out:,} ignored")
    details = f"{coverage.parsed:,} parsed" if coverage.unparsed else "all parsed"
    details += f", {prose:,} of prose" if prose else ""
    if counts:
        is_one = sum(unparsed.values()) + (coverage.left_out or 0) == 1
        verb = "does" if is_one else "do"
        details += f"; {_join_texts(counts)} {verb} not contain {coverage.words_text}"
    if coverage.left_out is None:
        details += "; ignored files were not searched"
    lead = "none" if completeness.is_complete else "none found"
    return f"{lead}: no {subject} in {count_text(coverage.files, 'file')} ({details})"


def doubt_lines(answer: Answer[object]) -> Iterator[str]:
    """Yield the lines about results that an answer may lack. Yield nothing if nothing shows that it lacks some."""
    coverage, doubt = answer.coverage, answer.completeness.doubt
    if not doubt:
        return
    if coverage is None:
        yield f"incomplete: {doubt}:"
        yield from _file_lines(answer.not_searched, UNSEARCHED_FILES_SHOWN)
        return
    commands = [evidence for evidence in coverage.evidence if evidence.command or evidence.places]
    has_files = bool(coverage.doubtful or coverage.unsearched)
    if len(commands) == 1 and not has_files and commands[0].command:
        yield f"{doubt}: {commands[0].command}"
        return
    counts = [f"{coverage.parsed:,} parsed", *_unparsed_texts(coverage.unparsed)]
    if coverage.left_out:
        counts.append(f"{coverage.left_out:,} ignored")
    scope = f" ({count_text(coverage.files, 'file')}: {', '.join(counts)})" if has_files else ""
    yield f"{doubt}{scope}{':' if coverage.doubtful or commands else ''}"
    for evidence in commands:
        yield from (f"  {place}" for place in evidence.places)
        if evidence.command:
            yield f"  {evidence.text}: {evidence.command}"
    yield from _file_lines(coverage.doubtful, DOUBTFUL_FILES_SHOWN)


def _file_lines(files: Sequence[DoubtfulFile], shown: int) -> Iterator[str]:
    for file in files[:shown]:
        yield f"  {display_path(file.path_bytes)}: {_reason_text(file)}"
    omitted = len(files) - shown
    if omitted > 0:
        yield f"  … and {count_text(omitted, 'more file')}; list all with --json"


def _unparsed_texts(unparsed: Mapping[DoubtReason, int]) -> list[str]:
    return [f"{count:,} {REASON_TEXTS[reason]}" for reason, count in unparsed.items()]


def _reason_text(file: DoubtfulFile) -> str:
    match file.reason:
        case "unsupported":
            return "unknown language" if file.detail in ("", "text") else f"no grammar for {file.detail}"
        case "ignored":
            return f"ignored ({file.detail})"
        case reason:
            return _FILE_TEXTS[reason]


def _join_texts(texts: list[str]) -> str:
    """Join texts with commas, and the last one with `and`."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last
