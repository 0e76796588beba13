"""Functions of the command `find`: create a finder, and search one file with it."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch.errors import InvalidInput, InvalidQuery
from codebatch.model.analysis.search_result import FileSearchResult
from codebatch.model.task import JsonValue
from codebatch_workers.syntax.language.encodings import WIDE_MARKS
from codebatch_workers.syntax.patterns.finders import (
    PatternError,
    SyntaxFinder,
    SyntaxMatch,
    TooManySteps,
    pattern_finder,
    query_finder,
)
from codebatch_workers.syntax.source import NOTEBOOK_ENDING, SourceFile

MATCH_SOURCE_BYTES_MAX = 1_000
"""The maximum size of a source line or of a captured text in an answer, in bytes."""
_NO_RESULT = FileSearchResult()


def make_finder(kind: str, text: str, language: str) -> SyntaxFinder:
    """Return a finder for `text`. `kind` is `query` or `pattern`.

    Raises InvalidQuery if the text is invalid, or InvalidInput for an unknown language.
    """
    make = query_finder if kind == "query" else pattern_finder
    try:
        return make(text, language)
    except PatternError as error:
        if error.place is None:
            raise InvalidInput(str(error), hint=error.hint) from error
        raise InvalidQuery(str(error), hint=error.hint, text=text, place=error.place) from error


def find_in(
    search: SyntaxFinder, path: bytes, content: bytes, contexts: Mapping[str, bytes], is_counted: bool
) -> FileSearchResult:
    """Search a file. To save time, the file is parsed only if it contains every literal that a match must contain.

    If `is_counted` is set, the result has only the number of matches. If the file cannot be searched, the result has
    the reason.
    """
    # In these files, the bytes of a literal may differ from the literal.
    is_escaped = content.startswith(WIDE_MARKS) or path.endswith(NOTEBOOK_ENDING)
    if not is_escaped and not all(literal in content for literal in search.literals):
        return _NO_RESULT
    file = SourceFile(path, content, executable=False, contexts=contexts)
    if file.language != search.language or file.file_class == "empty":
        return _NO_RESULT
    if not file.can_be_parsed:
        return FileSearchResult(unread="beyond its grammar" if file.overruns_its_grammar else file.file_class)
    if not all(literal in file.utf8 for literal in search.literals):
        return _NO_RESULT
    if file.is_hopeless:
        return FileSearchResult(unread="errors")
    try:
        matches = list(search.find(file))
    except TooManySteps as error:
        return FileSearchResult(lost=str(error))
    return FileSearchResult(
        rows=() if is_counted else tuple(_match_row(file, match) for match in matches),
        places=len(matches),
        has_errors=file.tree is not None and file.has_syntax_error,
    )


def _match_row(file: SourceFile, match: SyntaxMatch) -> dict[str, JsonValue]:
    line, column = file.position(match.start)
    end_line, end_column = file.position(match.end)
    start = file.line_starts[line - 1]
    end = file.utf8.find(b"\n", start)
    return {
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "source": _source_text(file, start, len(file.utf8) if end < 0 else end).rstrip("\r"),
        "captures": {name: _source_text(file, *span) for name, span in sorted(match.captures.items())},
    }


def _source_text(file: SourceFile, start: int, end: int) -> str:
    return file.utf8[start : min(end, start + MATCH_SOURCE_BYTES_MAX)].decode("utf-8", "ignore")
