"""parse: what a file is, and where its syntax is wrong.

Of Python the errors are ruff's, by its own parser for a pinned version of the language: exact, and independent of the
interpreter that runs us, after one of ours where Python does not read the file's bytes. Of other languages they are
tree-sitter's. One error is reported of each broken place, for what comes of it is a consequence; after DIAGNOSTICS_MAX
a last one says how many more there are. In languages that are APPROXIMATE the tree proves nothing wrong: such a file
has none, and is parsed in part. So is Python that only our tree does not know, JavaScript with Flow's types, a
fragment that a build joins with others (syntax/fragments.py), and a template (syntax/templates.py).
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from codebatch.model.digest import Digest
from codebatch.model.entry import is_lfs_pointer
from codebatch.model.record import Ast, Diagnostic, File, ParseState, Record, Severity
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.lint.python.ruff import SYNTAX_ERROR, Ruff, is_for_ruff, shared_ruff
from codebatch_workers.lint.ruff_rules import SYNTAX_RULES
from codebatch_workers.lint.severities import severity_in
from codebatch_workers.syntax.broken_trees import iter_broken
from codebatch_workers.syntax.findings import diagnostic
from codebatch_workers.syntax.fragments import is_fragment
from codebatch_workers.syntax.json_dialects import is_trailing_comma
from codebatch_workers.syntax.json_readers import has_strict_reader, has_tolerant_reader
from codebatch_workers.syntax.language.languages import APPROXIMATE_LANGUAGES, LANGUAGES_OF_PATTERNS
from codebatch_workers.syntax.language.python_2 import is_python_2
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.syntax_tree import TREE_FORMAT, encode_tree
from codebatch_workers.syntax.templates import is_of_script, is_template
from codebatch_workers.syntax.unseen_errors import unseen_errors
from codebatch_workers.tasks.parse_config import ParseConfig

if TYPE_CHECKING:
    from tree_sitter import Node

DIAGNOSTICS_MAX = 50
SYNTAX_CODE = "syntax-error"
_PYTHON_ERRORS = SYNTAX_RULES | {SYNTAX_ERROR}
_QUOTED_CHARS_MAX = 40
_JSON = ("json", "jsonc")
_UNREAD_BY_PYTHON = ("utf-16", "utf-32")
_FLOW_BYTES_LOOKED_AT = 2048


def create(environment: TaskEnvironment[ParseConfig]) -> Parse:
    """The task."""
    return Parse(shared_ruff(environment), environment.put_object if environment.config.emit_ast else None)


class Parse:
    """One `file` record, then the syntax errors by position, then the `ast` record where trees are stored."""

    def __init__(self, ruff: Ruff, put_object: Callable[[bytes], Digest] | None) -> None:
        self._ruff = ruff
        self._put_object = put_object
        ruff.want(SYNTAX_RULES)

    def run_file(self, file: SourceFile) -> list[Record]:
        """The records of one file, as far as its tree tells."""
        errors = _unreadable(file)
        state = _state(file)
        if errors:
            state = "errors"
        elif file.has_syntax_error:
            state, errors = _broken(file)
        elif unseen := unseen_errors(file):
            firsts = _first_of_each_place(file, [file.line(error.start) for error in unseen])
            state, errors = "errors", _capped([_diagnostic(file, *unseen[each]) for each in firsts])
        path, path_b64 = file.path_fields
        record = File(
            path=path,
            path_b64=path_b64,
            lang="binary" if file.is_binary else file.language,
            encoding=file.encoding,
            lines=file.line_count,
            class_="template" if file.file_class == "text" and is_template(file) else file.file_class,
            parse=state,
        )
        return [record, *errors, *self._stored(file)]

    def _stored(self, file: SourceFile) -> list[Ast]:
        if self._put_object is None or not file.can_be_parsed:
            return []
        path, path_b64 = file.path_fields
        return [Ast(path=path, path_b64=path_b64, object=self._put_object(encode_tree(file)), format=TREE_FORMAT)]

    def complete(self, files: Sequence[SourceFile], records: Sequence[list[Record]]) -> list[list[Record]]:
        """`records`, with ruff's errors for the Python files."""
        final = [list(each) for each in records]
        python = [index for index, file in enumerate(files) if is_for_ruff(file)]
        answers = self._ruff.check([files[index] for index in python])
        for index, answer in zip(python, answers, strict=True):
            errors = [each for each in answer if each.code in _PYTHON_ERRORS]
            if errors:
                record = final[index][0]
                said = _unreadable(files[index])
                if not is_template(files[index]):
                    firsts = _first_of_each_place(files[index], [each.line for each in errors])
                    said += _of_python(files[index], [errors[each] for each in firsts])
                stored = [each for each in final[index] if isinstance(each, Ast)]
                state: ParseState = "errors" if said else "partial"
                final[index] = [msgspec.structs.replace(record, parse=state), *_capped(said), *stored]
        return final


def _of_python(file: SourceFile, errors: Sequence[Diagnostic]) -> list[Diagnostic]:
    """ruff's errors as ours; of Python 2 the first alone, for the others say the same."""
    starts = (*file.line_starts, len(file.utf8))
    line = next((each.line for each in errors if each.code == SYNTAX_ERROR), len(starts))
    if line < len(starts) and is_python_2(file.utf8[starts[line - 1] : starts[line]]):
        severity = severity_in(file.file_class, SYNTAX_CODE, "warning")
        first = next(each for each in errors if each.line == line)
        message = f"Python 2 syntax: {first.message}"
        return [msgspec.structs.replace(first, code=SYNTAX_CODE, severity=severity, message=message)]
    return [msgspec.structs.replace(each, code=SYNTAX_CODE, severity=_severity(file)) for each in errors]


def _unreadable(file: SourceFile) -> list[Diagnostic]:
    """Why Python refuses a file, whatever its text is: bytes that are not in its encoding, UTF-16, NUL characters."""
    if file.language != "python" or file.file_class in ("binary", "huge"):
        return []
    problem, start = file.encoding_problem, 0
    if not problem and file.encoding.startswith(_UNREAD_BY_PYTHON):
        problem = f"Python does not support source files in {file.encoding.upper()}"
    if not problem and file.utf8.startswith(BOM_UTF8):
        problem = "Python does not accept a second byte order mark"
    if not problem and b"\0" in file.utf8:
        problem, start = "Python does not accept NUL characters", file.utf8.index(b"\0")
    return [_diagnostic(file, start, start, problem)] if problem else []


def _state(file: SourceFile) -> ParseState:
    """How a file is parsed in which nothing is wrong."""
    if file.is_parsed:
        return "ok"
    if file.file_class in ("binary", "huge", "minified") or file.overruns_its_grammar or is_lfs_pointer(file.content):
        return "skipped"
    return "ok" if file.has_grammar or file.language in LANGUAGES_OF_PATTERNS else "unsupported"


def _broken(file: SourceFile) -> tuple[ParseState, list[Diagnostic]]:
    """How a file is parsed whose tree has errors, and the outermost of them, one of each line."""
    if is_of_script(file) or is_fragment(file):
        return "partial", []
    if is_template(file):
        # Browsers take marks for text: of HTML nothing is lost.
        return "ok" if file.language == "html" else "partial", []
    if file.is_hopeless:
        if file.language in APPROXIMATE_LANGUAGES:
            # It may be a part of a file: entries that another one includes.
            return "partial", []
        message = f"not {file.language}: hardly anything in this file can be parsed"
        return "errors", [_diagnostic(file, 0, 0, message)]
    outermost = _outermost(file)
    if file.language in _JSON and not has_strict_reader(file):
        commas = [node for node in outermost if is_trailing_comma(node)]
        outermost = [node for node in outermost if node not in commas]
        if commas and not outermost and not has_tolerant_reader(file):
            return "ok", [_trailing_commas(file, commas)]
    if not outermost:
        return "ok", []
    if file.language in APPROXIMATE_LANGUAGES or file.language == "python" or _is_flow(file):
        return "partial", []
    firsts = _first_of_each_place(file, [file.line(node.start_byte) for node in outermost])
    return "errors", _capped([_error(file, outermost[each]) for each in firsts])


def _outermost(file: SourceFile) -> list[Node]:
    """The errors of a tree that are in no other, by place."""
    assert file.tree is not None
    nodes = [
        (node.start_byte, -node.end_byte, node.is_missing, node)
        for node in iter_broken(file.tree.root_node, file.language)
    ]
    nodes.sort(key=lambda item: item[:3])
    outermost: list[Node] = []
    end = -1
    for start, minus_end, _, node in nodes:
        if start >= end:
            end = max(end, -minus_end)
            outermost.append(node)
    return outermost


def _trailing_commas(file: SourceFile, commas: Sequence[Node]) -> Diagnostic:
    """Return one note for all trailing commas of a file whose reader is not known."""
    what = "trailing comma" if len(commas) == 1 else f"{len(commas):,} trailing commas, the first"
    message = f"{what}: not JSON, but parsers of JSON with comments accept it"
    start, end = commas[0].start_byte, commas[0].end_byte
    return _diagnostic(file, start, end, message, severity="info")


def _error(file: SourceFile, node: Node) -> Diagnostic:
    start, end = node.start_byte, node.end_byte
    is_missing = node.is_missing or (start == end and not node.is_error)
    return _diagnostic(file, start, end, f"missing {_token(node)}" if is_missing else _unexpected(file, start, end))


def _is_flow(file: SourceFile) -> bool:
    """Whether a script says that it has Flow's types, which its grammar does not know."""
    return file.language == "javascript" and b"@flow" in file.utf8[:_FLOW_BYTES_LOOKED_AT]


def _first_of_each_place(file: SourceFile, errors: Sequence[int]) -> list[int]:
    """Of errors at these lines, ascending, the indexes of those that are no consequence of the one before.

    A consequence is likely an error on the same line or the next, one behind the last line, and one in lines that
    belong to the line of the error before: they are indented deeper, or begin with a bracket that closes.
    """
    if len(errors) < 2:
        return list(range(len(errors)))
    kept = [0]
    seen = errors[0]
    end = _end_of_block(file, seen)
    for index, line in enumerate(errors[1:], 1):
        if line > max(seen + 1, end) and line <= file.line_count:
            kept.append(index)
            end = _end_of_block(file, line)
        seen = line
    return kept


def _end_of_block(file: SourceFile, line: int) -> int:
    """The last line that belongs to a line."""
    starts = file.line_starts
    if line == len(starts):
        return line
    text = file.utf8[starts[line - 1] : starts[line]]
    following = _outdented(len(text) - len(text.lstrip(b" \t"))).search(file.utf8, starts[line] - 1)
    return len(starts) if following is None else file.line(following.start())


@lru_cache(maxsize=256)
def _outdented(depth: int) -> re.Pattern[bytes]:
    """The end of a line before one that is indented no deeper, and does not begin with a bracket that closes."""
    return re.compile(rb"\n[ \t]{0,%d}(?:[\r\f\v][ \t\r\f\v]*)?[^\s)\]}]" % depth)


def _capped(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """At most DIAGNOSTICS_MAX, and one that counts the rest."""
    more = len(found) - DIAGNOSTICS_MAX
    if more <= 0:
        return list(found)
    listed = list(found[:DIAGNOSTICS_MAX])
    last = msgspec.structs.replace(found[-1], message=f"{more} more syntax errors are not listed, this is the last")
    return [*listed, last]


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
    last = file.line(max(start, len(file.utf8[:end].rstrip()) - 1))
    return f"unexpected `{shown}`" if last == file.line(start) else f"cannot be parsed up to line {last}: `{shown}`"


def _diagnostic(file: SourceFile, start: int, end: int, message: str, *, severity: Severity = "error") -> Diagnostic:
    severity = severity_in(file.file_class, SYNTAX_CODE, severity)
    return diagnostic(file, start, end, severity=severity, code=SYNTAX_CODE, message=message)


def _severity(file: SourceFile) -> Severity:
    return severity_in(file.file_class, SYNTAX_CODE, "error")
