"""parse: the language and class of a file, and its syntax errors.

For Python, ruff's own parser finds the errors, for a pinned language version. These errors are exact, and do not depend
on the Python that runs codebatch. Before them, bytes that Python refuses to read are reported as errors of the
encoding. For other languages, tree-sitter finds the errors. Each broken place yields one error, because further errors
there are consequences. After DIAGNOSTICS_MAX errors, one more error contains the number of the omitted ones.

If the grammar of a language is approximate, an error in the tree does not prove an error in the file. So the file is
reported as partially parsed, without errors. The same applies to Python that ruff can parse but tree-sitter cannot, to
JavaScript with Flow types, to fragments that a build joins (languages/javascript/fragments.py), and to templates
(syntax/templates.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import msgspec
from tree_sitter import Node

from codebatch.model.digest import Digest
from codebatch.model.entry import is_lfs_pointer
from codebatch.model.record import Ast, Diagnostic, File, ParseState, Record, Severity
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.lint.python.python_2 import is_python_2
from codebatch_workers.lint.python.ruff import SYNTAX_ERROR_CODE, RuffRunner, is_for_ruff, shared_ruff
from codebatch_workers.lint.ruff_rules import SYNTAX_CODES
from codebatch_workers.lint.severities import severity_in
from codebatch_workers.syntax.broken_trees import exceeds_query_depth, iter_broken_nodes
from codebatch_workers.syntax.findings import diagnostic
from codebatch_workers.syntax.language.languages import LANGUAGES_OF_PATTERNS
from codebatch_workers.syntax.language_gaps import LanguageGaps
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.syntax_tree import TREE_FORMAT, encode_tree
from codebatch_workers.syntax.templates import is_template
from codebatch_workers.syntax.unseen_errors import unseen_errors
from codebatch_workers.tasks.parse_config import ParseConfig

DIAGNOSTICS_MAX = 50
SYNTAX_CODE = "syntax-error"
_PYTHON_ERRORS = SYNTAX_CODES | {SYNTAX_ERROR_CODE}
_QUOTED_CHARS_MAX = 40
_DIALECT_BYTES_LOOKED_AT = 2048


def create(environment: TaskEnvironment[ParseConfig]) -> ParseTask:
    """Return the task."""
    return ParseTask(shared_ruff(environment), environment.put_object if environment.config.emit_ast else None)


class ParseTask:
    """The task: one `file` record, then syntax errors by position, then an `ast` record if trees are stored."""

    def __init__(self, ruff: RuffRunner, put_object: Callable[[bytes], Digest] | None) -> None:
        self._ruff = ruff
        self._put_object = put_object
        ruff.select_rules(SYNTAX_CODES)

    def run_file(self, file: SourceFile) -> list[Record]:
        """Return the records of a file that are known before ruff has run.

        For Python files, `complete` adds the errors that ruff finds.
        """
        errors = _encoding_errors(file)
        state = _error_free_state(file)
        if errors:
            state = "errors"
        elif file.has_syntax_error:
            state, errors = _state_with_errors(file)
        elif hidden_errors := unseen_errors(file):
            firsts = _first_per_location(file, [file.line(error.start) for error in hidden_errors])
            state, errors = (
                "errors",
                _limit_findings([_syntax_diagnostic(file, *hidden_errors[index]) for index in firsts]),
            )
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
        return [record, *errors, *self._ast_records(file)]

    def _ast_records(self, file: SourceFile) -> list[Ast]:
        if self._put_object is None or not file.can_be_parsed:
            return []
        path, path_b64 = file.path_fields
        return [Ast(path=path, path_b64=path_b64, object=self._put_object(encode_tree(file)), format=TREE_FORMAT)]

    def complete(self, files: Sequence[SourceFile], records: Sequence[list[Record]]) -> list[list[Record]]:
        """Return the records of each file. In Python files, the errors that ruff finds replace those of tree-sitter."""
        final = [list(diagnostic) for diagnostic in records]
        python = [index for index, file in enumerate(files) if is_for_ruff(file)]
        answers = self._ruff.check([files[index] for index in python])
        for index, answer in zip(python, answers, strict=True):
            errors = [diagnostic for diagnostic in answer if diagnostic.code in _PYTHON_ERRORS]
            if errors:
                record = final[index][0]
                syntax_errors = _encoding_errors(files[index])
                if not is_template(files[index]):
                    firsts = _first_per_location(files[index], [diagnostic.line for diagnostic in errors])
                    syntax_errors += _convert_ruff_errors(files[index], [errors[diagnostic] for diagnostic in firsts])
                stored = [diagnostic for diagnostic in final[index] if isinstance(diagnostic, Ast)]
                state: ParseState = "errors" if syntax_errors else "partial"
                final[index] = [msgspec.structs.replace(record, parse=state), *_limit_findings(syntax_errors), *stored]
        return final


def _convert_ruff_errors(file: SourceFile, errors: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Convert ruff's findings to syntax errors.

    In Python 2 code, keep only the first one, because it causes all others.
    """
    starts = (*file.line_starts, len(file.utf8))
    line = next((error.line for error in errors if error.code == SYNTAX_ERROR_CODE), len(starts))
    if line < len(starts) and is_python_2(file.utf8[starts[line - 1] : starts[line]]):
        severity = severity_in(file.file_class, SYNTAX_CODE, "warning")
        first = next(error for error in errors if error.line == line)
        message = f"Python 2 syntax: {first.message}"
        return [msgspec.structs.replace(first, code=SYNTAX_CODE, severity=severity, message=message)]
    severity = severity_in(file.file_class, SYNTAX_CODE, "error")
    return [msgspec.structs.replace(error, code=SYNTAX_CODE, severity=severity) for error in errors]


def _encoding_errors(file: SourceFile) -> list[Diagnostic]:
    """Return an error if no parser of a language reads the bytes of a file. There is at most one error."""
    find_invalid = file.syntax.find_invalid_bytes
    if find_invalid is None or file.file_class in ("binary", "huge"):
        return []
    problem = (0, file.encoding_problem) if file.encoding_problem else find_invalid(file.encoding, file.utf8)
    return [] if problem is None else [_syntax_diagnostic(file, problem[0], problem[0], problem[1])]


def _error_free_state(file: SourceFile) -> ParseState:
    """Return the parse state of a file in which no error was found."""
    if file.tree is not None:
        return "partial" if exceeds_query_depth(file.tree, len(file.utf8)) else "ok"
    if file.file_class in ("binary", "huge", "minified") or file.overruns_its_grammar or is_lfs_pointer(file.content):
        return "skipped"
    return "ok" if file.has_grammar or file.language in LANGUAGES_OF_PATTERNS else "unsupported"


def _state_with_errors(file: SourceFile) -> tuple[ParseState, list[Diagnostic]]:
    """Return the parse state of a file whose tree has errors, and the errors to report.

    They are the outermost errors in the tree, at most one for each broken place.
    """
    gaps = LanguageGaps.of(file.language)
    has_expected = gaps.has_expected_errors
    if has_expected and file.tree and has_expected(file.path, file.utf8, file.tree.root_node):
        return "partial", []
    if is_template(file):
        # If the marks are valid text, the rest of the file is still parsed.
        return "ok" if file.syntax.allows_template_marks else "partial", []
    if file.is_hopeless:
        if file.syntax.is_approximate:
            # The file may be a fragment, for example entries that another file includes.
            return "partial", []
        message = f"not {file.language}: hardly anything in this file can be parsed"
        return "errors", [_syntax_diagnostic(file, 0, 0, message)]
    outermost = _outermost_errors(file)
    if gaps.accepted_errors is not None:
        commas, is_certain = gaps.accepted_errors(file.path, bool(file.captures.get("comment")), outermost)
        outermost = [node for node in outermost if node not in commas]
        if commas and not outermost and not is_certain:
            return "ok", [_trailing_commas(file, commas)]
    if not outermost:
        return "ok", []
    rules = file.syntax
    is_dialect = bool(rules.dialect_mark) and rules.dialect_mark in file.utf8[:_DIALECT_BYTES_LOOKED_AT]
    if file.syntax.is_approximate or rules.has_exact_parser or is_dialect:
        return "partial", []
    firsts = _first_per_location(file, [file.line(node.start_byte) for node in outermost])
    return "errors", _limit_findings([_error_diagnostic(file, outermost[index]) for index in firsts])


def _outermost_errors(file: SourceFile) -> list[Node]:
    """Return the error and missing nodes of a tree that are not within another such node, by position."""
    assert file.tree is not None
    nodes = [
        (node.start_byte, -node.end_byte, node.is_missing, node)
        for node in iter_broken_nodes(file.tree.root_node, file.language)
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
    """Return one finding about all trailing commas, because the program that reads the file may accept them."""
    subject = "trailing comma" if len(commas) == 1 else f"{len(commas):,} trailing commas, the first"
    message = f"{subject}: not JSON, but parsers of JSON with comments accept it"
    start, end = commas[0].start_byte, commas[0].end_byte
    return _syntax_diagnostic(file, start, end, message, severity="info")


def _error_diagnostic(file: SourceFile, node: Node) -> Diagnostic:
    start, end = node.start_byte, node.end_byte
    is_missing = node.is_missing or (start == end and not node.is_error)
    return _syntax_diagnostic(
        file, start, end, f"missing {_missing_token(node)}" if is_missing else _unexpected_message(file, start, end)
    )


def _first_per_location(file: SourceFile, errors: Sequence[int]) -> list[int]:
    """Return the indexes of errors that are not consequences of an earlier error. `errors` are ascending line numbers.

    An error is probably a consequence in three cases. It is on the same or the next line as the error before. It is in
    the block of an earlier error (`_block_end`). It is after the last line of the file.
    """
    if len(errors) < 2:
        return list(range(len(errors)))
    first_errors = [0]
    previous = errors[0]
    end = _block_end(file, previous)
    for index, line in enumerate(errors[1:], 1):
        if line > max(previous + 1, end) and line <= file.line_count:
            first_errors.append(index)
            end = _block_end(file, line)
        previous = line
    return first_errors


def _block_end(file: SourceFile, line: int) -> int:
    """Return the last line of the block that begins at `line`.

    A block includes the following lines that are indented deeper than this line, or begin with a closing bracket.
    """
    starts = file.line_starts
    if line == len(starts):
        return line
    text = file.utf8[starts[line - 1] : starts[line]]
    following = _outdented_line_pattern(len(text) - len(text.lstrip(b" \t"))).search(file.utf8, starts[line] - 1)
    return len(starts) if following is None else file.line(following.start())


@lru_cache(maxsize=256)
def _outdented_line_pattern(depth: int) -> re.Pattern[bytes]:
    """Return a pattern for the line end before the next line that ends a block.

    This line is indented by at most `depth` characters, and does not begin with a closing bracket.
    """
    return re.compile(rb"\n[ \t]{0,%d}(?:[\r\f\v][ \t\r\f\v]*)?[^\s)\]}]" % depth)


def _limit_findings(findings: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return at most DIAGNOSTICS_MAX findings. If there are more, append one with the number of the omitted ones."""
    omitted = len(findings) - DIAGNOSTICS_MAX
    if omitted <= 0:
        return list(findings)
    listed = list(findings[:DIAGNOSTICS_MAX])
    last = msgspec.structs.replace(
        findings[-1], message=f"{omitted} more syntax errors are not listed, this is the last"
    )
    return [*listed, last]


def _missing_token(node: Node) -> str:
    """Return the missing token in backquotes if it is punctuation or a keyword, otherwise the name of its kind."""
    return node.type.replace("_", " ") if node.is_named else f"`{node.type}`"


def _unexpected_message(file: SourceFile, start: int, end: int) -> str:
    """Return a message about code that cannot be parsed. It contains the first line of the code, shortened."""
    text = file.utf8[start : min(end, start + 4 * _QUOTED_CHARS_MAX)].decode("utf-8", "replace")
    first = text.strip().split("\n")[0].rstrip()
    if not first:
        return "unexpected end of the file" if start >= len(file.utf8.rstrip()) else "unexpected whitespace"
    quoted = first if len(first) <= _QUOTED_CHARS_MAX else f"{first[:_QUOTED_CHARS_MAX]}…"
    last = file.line(max(start, len(file.utf8[:end].rstrip()) - 1))
    return f"unexpected `{quoted}`" if last == file.line(start) else f"cannot be parsed up to line {last}: `{quoted}`"


def _syntax_diagnostic(
    file: SourceFile, start: int, end: int, message: str, *, severity: Severity = "error"
) -> Diagnostic:
    severity = severity_in(file.file_class, SYNTAX_CODE, severity)
    return diagnostic(file, start, end, severity=severity, code=SYNTAX_CODE, message=message)
