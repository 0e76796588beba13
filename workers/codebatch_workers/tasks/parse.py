"""parse: what a file is, and where its syntax is wrong.

Errors come from tree-sitter's grammar, never from the interpreter that runs us. Only the outermost error of each
place is reported, for what lies inside is a consequence; after DIAGNOSTICS_MAX a last one says how many more there are.
Of C, C++ and zsh the tree proves nothing wrong (macros; a borrowed grammar): their files have one `partial-parse` hint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from codebatch.model.record import Diagnostic, File, ParseState, Record
from codebatch_workers.languages import APPROXIMATE_LANGUAGES, grammar
from codebatch_workers.source import SourceFile
from codebatch_workers.tasks.api import TaskEnvironment

if TYPE_CHECKING:
    from tree_sitter import Node

DIAGNOSTICS_MAX = 50
_QUOTED_CHARS_MAX = 40


def create(_environment: TaskEnvironment) -> Parse:
    """The task; it has no configuration."""
    return Parse()


class Parse:
    """One `file` record, then the syntax errors by position."""

    def run(self, file: SourceFile) -> list[Record]:
        """The records of one file."""
        errors = _errors(file) if file.has_syntax_error else []
        path, path_b64 = file.path_fields
        record = File(
            path=path,
            path_b64=path_b64,
            lang="binary" if file.is_binary else file.language,
            encoding=file.encoding,
            lines=file.line_count,
            class_=file.file_class,
            parse=_state(file, bool(errors)),
        )
        return [record, *errors]


def _state(file: SourceFile, has_errors: bool) -> ParseState:
    if file.is_parsed:
        return "errors" if has_errors else "ok"
    if file.file_class in ("binary", "huge", "minified"):
        return "skipped"
    return "ok" if file.has_grammar else "unsupported"


def _errors(file: SourceFile) -> list[Diagnostic]:
    """The outermost errors, at most DIAGNOSTICS_MAX and one that counts the rest."""
    if file.is_hopeless:
        return [_diagnostic(file, 0, 0, f"not {file.language}: hardly anything in this file can be parsed")]
    captures = file.query(grammar(file.language).errors)
    nodes = [(node.start_byte, -node.end_byte, 0, node) for node in captures.get("error", ())]
    nodes += [(node.start_byte, -node.end_byte, 1, node) for node in captures.get("missing", ())]
    nodes.sort(key=lambda item: item[:3])
    found: list[Diagnostic] = []
    end, more = -1, 0
    for start, minus_end, is_missing, node in nodes:
        if start < end or (file.language == "jsonc" and _is_trailing_comma(file, node)):
            continue
        end = max(end, -minus_end)
        if len(found) >= DIAGNOSTICS_MAX:
            more += 1
            continue
        message = f"missing {_token(node)}" if is_missing else _unexpected(file, start, -minus_end)
        found.append(_diagnostic(file, start, -minus_end, message))
    if file.language in APPROXIMATE_LANGUAGES and found:
        return [_partial(found, len(found) + more)]
    if more:
        found.append(_diagnostic(file, len(file.utf8), len(file.utf8), f"{more} more syntax errors are not listed"))
    return found


def _partial(found: list[Diagnostic], count: int) -> Diagnostic:
    """One hint in place of errors that a macro, or the shell's dialect, may well explain."""
    places = "1 place" if count == 1 else f"{count} places"
    message = f"{places} not understood without the preprocessor or the dialect, from here on: {found[0].message}"
    return msgspec.structs.replace(found[0], severity="hint", code="partial-parse", message=message)


def _token(node: Node) -> str:
    """What is missing: the token itself where it is punctuation or a keyword, else the kind of thing."""
    return node.type.replace("_", " ") if node.is_named else f"`{node.type}`"


def _unexpected(file: SourceFile, start: int, end: int) -> str:
    """The first line of an error, as much of it as is worth reading."""
    text = file.utf8[start : min(end, start + 4 * _QUOTED_CHARS_MAX)].decode("utf-8", "replace")
    first = text.strip().split("\n")[0].rstrip()
    if not first:
        return "unexpected end of the file" if start >= len(file.utf8.rstrip()) else "unexpected whitespace"
    shown = first if len(first) <= _QUOTED_CHARS_MAX else f"{first[:_QUOTED_CHARS_MAX]}…"
    return f"unexpected `{shown}`"


def _is_trailing_comma(file: SourceFile, node: Node) -> bool:
    return node.is_error and file.utf8[node.start_byte : node.end_byte].strip() == b","


def _diagnostic(file: SourceFile, start: int, end: int, message: str) -> Diagnostic:
    path, path_b64 = file.path_fields
    line, column = file.position(start)
    end_line, end_column = file.position(end)
    return Diagnostic(
        path=path,
        path_b64=path_b64,
        line=line,
        column=column,
        end_line=end_line,
        end_column=end_column,
        severity="error",
        code="syntax-error",
        message=message,
        tool="codebatch",
    )
