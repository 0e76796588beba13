"""Rules about suppression comments: their reasons, and the dates until which they apply."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from itertools import pairwise
from typing import NamedTuple

from codebatch_workers.lint.rule import RuleMatch, TextRule
from codebatch_workers.syntax.comments import comment_predicate
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.suppression import SUPPRESSION_MARKER

_SUPPRESSION = re.compile(
    rb"(?:codebatch: ignore(?:-next-line|-file)?(?![\w-])|(?:type|pyright|ruff):[ \t]*ignore\b|lgtm\b)"
    rb"(?:\[[^\]`\n]*\])?"
    rb"|(?i:\bnoqa\b)(?::[ \t]*[A-Z]+[0-9]+(?:[, \t]+[A-Z]+[0-9]+)*)?"
    rb"|(?:pylint:[ \t]*disable(?:-next)?|shellcheck[ \t]+disable)=[\w-]+(?:,[ \t]*[\w-]+)*"
    rb"|(?:eslint-disable(?:-next-line|-line)?|noinspection|rubocop:disable)\b"
    rb"(?:[ \t]+(?!--)[\w@/-]+(?:,[ \t]*[\w@/-]+)*)?"
    rb"|\bnosec\b(?:[: \t]+B\d+(?:[, \t]+B\d+)*)?|@ts-(?:ignore|expect-error|nocheck)\b"
    rb"|\bnolint\b(?::[\w,-]+)?|\bNOLINT\w*(?:\([^)\n]*\))?|\bbiome-ignore\b(?:[ \t]+[\w/]+)?"
)
_END_OF_COMMENT = re.compile(rb"\n|\*/|-->|\Z")
_UNTIL = re.compile(r"until\b[ \t]*(\d{4}-\d\d-\d\d(?!\S))?[ \t]*")
_NO_TEXT = " \t\r-:#/*,.;"


class _Suppression(NamedTuple):
    """A suppression comment: its range, its text without the reason, its reason, and its `until` as a match."""

    start: int
    end: int
    text: str
    reason: str
    until: re.Match[str] | None


def _iter_suppressions(file: SourceFile) -> Iterator[_Suppression]:
    utf8 = file.utf8
    matches = list(_SUPPRESSION.finditer(utf8))
    is_comment = comment_predicate(file) if matches else None
    for match, other in pairwise((*matches, None)):
        assert match is not None, "only the last one is None"
        if is_comment is None or not is_comment(match.start()):
            continue
        line_end = _END_OF_COMMENT.search(utf8, match.end())
        end = min(line_end.start() if line_end else len(utf8), other.start() if other else len(utf8))
        reason = utf8[match.end() : end].decode("utf-8", "replace").strip(_NO_TEXT)
        until = _UNTIL.match(reason) if match[0].startswith(SUPPRESSION_MARKER) else None
        reason = reason[until.end() :].strip(_NO_TEXT) if until else reason
        yield _Suppression(match.start(), match.end(), match[0].decode("utf-8", "replace"), reason, until)


def _find_all(file: SourceFile) -> Iterator[RuleMatch]:
    for found in _iter_suppressions(file):
        yield found.start, found.end, f"`{found.text}`: {found.reason or 'without a reason'}"


def _find_unexplained(file: SourceFile) -> Iterator[RuleMatch]:
    for found in _iter_suppressions(file):
        if not found.reason:
            yield found.start, found.end, f"`{found.text}` without a reason"


def _find_dates(file: SourceFile) -> Iterator[RuleMatch]:
    for found in _iter_suppressions(file):
        if found.until is not None and _is_date(found.until[1]):
            yield found.start, found.end, f"`{found.text}` until {found.until[1]}: {found.reason or 'without a reason'}"


def _find_wrong_dates(file: SourceFile) -> Iterator[RuleMatch]:
    for found in _iter_suppressions(file):
        if found.until is not None and not _is_date(found.until[1]):
            yield found.start, found.end, "`until` must be followed by a date, such as until 2027-01-31"


def _is_date(text: str | None) -> bool:
    try:
        return text is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


SUPPRESSION_RULES: tuple[TextRule, ...] = (
    TextRule(
        code="suppression-comment",
        severity="hint",
        summary="suppression comments of all linters",
        find=_find_all,
        is_on=False,
        is_style=True,
    ),
    TextRule(
        code="suppression-date",
        severity="warning",
        summary="`codebatch: ignore … until` without a date",
        find=_find_wrong_dates,
        needle=SUPPRESSION_MARKER,
    ),
    TextRule(
        code="suppression-until",
        severity="hint",
        summary="a suppression that expires",
        find=_find_dates,
        needle=SUPPRESSION_MARKER,
    ),
    TextRule(
        code="suppression-without-reason",
        severity="warning",
        summary="a suppression comment without a reason",
        find=_find_unexplained,
        is_on=False,
        is_style=True,
    ),
)
