"""What `find` asks of the code that workers run: a finder, and what it finds in one file."""

from __future__ import annotations

from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE
from collections.abc import Mapping

from codebatch.errors import InvalidInput, InvalidQuery
from codebatch.model.analysis.search_result import Searched
from codebatch.model.task import Json
from codebatch_workers.syntax.language.languages import language_of_path
from codebatch_workers.syntax.language.linguist_names import language_named
from codebatch_workers.syntax.patterns.finders import (
    Finder,
    Match,
    PatternError,
    TooManySteps,
    pattern_finder,
    query_finder,
)
from codebatch_workers.syntax.source import NOTEBOOK_ENDING, SourceFile

SOURCE_BYTES_MAX = 1_000
"""Of a line or of what a name stands for, in an answer."""
# What begins so has no byte for each character of a name; UTF-32 of the other order begins as UTF-16 does. Nor have
# notebooks, whose code is escaped.
WIDE = (BOM_UTF16_LE, BOM_UTF16_BE, BOM_UTF32_BE)


_NOTHING = Searched()


def named_language(name: str) -> str:
    """What a language is called here: by its name, linguist's, or the end of its files."""
    known = language_named(name)
    return language_of_path(b"x." + name.lower().encode("utf-8", "replace")) or known


def finder(kind: str, text: str, language: str) -> Finder:
    """What finds a `query` or a `pattern`. Raises InvalidQuery, or InvalidInput for the language."""
    make = query_finder if kind == "query" else pattern_finder
    try:
        return make(text, language)
    except PatternError as error:
        if error.place is None:
            raise InvalidInput(str(error), hint=error.hint) from error
        raise InvalidQuery(str(error), hint=error.hint, text=text, place=error.place) from error


def find_in(
    looked_for: Finder, path: bytes, content: bytes, contexts: Mapping[str, bytes], is_counted: bool
) -> Searched:
    """What a finder finds in a file, which is parsed only where it holds what every match holds.

    Where it `is_counted`, how much alone.
    """
    is_escaped = content.startswith(WIDE) or path.endswith(NOTEBOOK_ENDING)
    if not is_escaped and not all(literal in content for literal in looked_for.literals):
        return _NOTHING
    file = SourceFile(path, content, executable=False, contexts=contexts)
    if file.language != looked_for.language or file.file_class == "empty":
        return _NOTHING
    if not file.can_be_parsed:
        return Searched(unread="beyond its grammar" if file.overruns_its_grammar else file.file_class)
    if not all(literal in file.utf8 for literal in looked_for.literals):
        return _NOTHING
    if file.is_hopeless:
        return Searched(unread="errors")
    try:
        places = list(looked_for.find(file))
    except TooManySteps as error:
        return Searched(lost=str(error))
    return Searched(
        rows=() if is_counted else tuple(_row(file, place) for place in places),
        places=len(places),
        has_errors=file.tree is not None and file.has_syntax_error,
    )


def _row(file: SourceFile, place: Match) -> dict[str, Json]:
    line, column = file.position(place.start)
    end_line, end_column = file.position(place.end)
    start = file.line_starts[line - 1]
    end = file.utf8.find(b"\n", start)
    return {
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "source": _text(file, start, len(file.utf8) if end < 0 else end).rstrip("\r"),
        "captures": {name: _text(file, *span) for name, span in sorted(place.captures.items())},
    }


def _text(file: SourceFile, start: int, end: int) -> str:
    return file.utf8[start : min(end, start + SOURCE_BYTES_MAX)].decode("utf-8", "ignore")
