"""analyze: numbers about a file, always in the same order, and none that is not known.

`bytes` is of every file. A text file has `lines` and `blank` (only whitespace). Where there is a tree, `comment` counts
the lines that hold comments and nothing else, `code` the rest, so that lines = code + comment + blank; a docstring is
code. Where the language has functions: `functions`, `classes` (what has members: classes, structs, interfaces, enums,
traits, unions), `imports` (statements) and McCabe's complexity. A function's is one and its decision points, those of a
function inside it not counted; `complexity` is the sum over the functions and the decision points outside of all;
`max_complexity` is that of the most complex function, 0 where there is none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING

from codebatch.model.record import Metric, Record
from codebatch.model.task import NoConfig
from codebatch_workers.languages import LANGUAGES_OF_DATA
from codebatch_workers.source import SourceFile
from codebatch_workers.tasks.api import TaskEnvironment

if TYPE_CHECKING:
    from tree_sitter import Node

_WHITESPACE_IN_LINE = b" \t\r\f\v"
_BLOCK_BYTES = 1 << 20
_CLASSES = ("def.class", "def.struct", "def.union", "def.interface", "def.trait", "def.enum")


def create(_environment: TaskEnvironment[NoConfig]) -> Analyze:
    """The task; it has no configuration."""
    return Analyze()


class Analyze:
    """`metric` records in the order of the module's text."""

    def run(self, file: SourceFile) -> list[Record]:
        """The records of one file."""
        path, path_b64 = file.path_fields
        return [Metric(path=path, path_b64=path_b64, metric=name, value=value) for name, value in metrics(file).items()]


def metrics(file: SourceFile) -> dict[str, int]:
    """The metrics of a file by name, in their order."""
    found = {"bytes": len(file.content)}
    if file.is_binary:
        return found
    utf8 = file.utf8
    found["lines"] = lines = file.line_count
    written = _lines_not_blank(utf8)
    if file.tree is not None:
        found["code"] = code = _lines_not_blank(_without(utf8, file.captures.get("comment", ())))
        found["comment"] = written - code
    found["blank"] = lines - written
    if file.tree is not None and file.language not in LANGUAGES_OF_DATA:
        found.update(_structure(file))
    return found


def _lines_not_blank(utf8: bytes) -> int:
    count = start = 0
    while start < len(utf8):
        end = utf8.find(b"\n", start + _BLOCK_BYTES)
        end = len(utf8) if end < 0 else end
        count += len(utf8[start:end].translate(None, _WHITESPACE_IN_LINE).split())
        start = end
    return count


def _without(utf8: bytes, comments: Sequence[Node]) -> bytes:
    """The source with its comments cut out and their line ends left in."""
    pieces = []
    position = 0
    for node in comments:
        start, end = node.start_byte, node.end_byte
        if start < position:
            continue  # A comment inside a comment, as Rust's documentation has it.
        pieces.append(utf8[position:start])
        pieces.append(b"\n" * utf8.count(b"\n", start, end))
        position = end
    pieces.append(utf8[position:])
    return b"".join(pieces)


def _structure(file: SourceFile) -> dict[str, int]:
    captures = file.captures
    functions = sorted((node.start_byte, -node.end_byte) for node in captures.get("function", ()))
    decisions = sorted(node.start_byte for node in captures.get("decision", ()))
    complexities = _complexities(functions, decisions)
    return {
        "functions": len(functions),
        "classes": sum(len(captures.get(name, ())) for name in _CLASSES),
        "imports": len(captures.get("import", ())),
        # The decision points are each in one function or in none.
        "complexity": len(functions) + len(decisions),
        "max_complexity": max(complexities, default=0),
    }


def _complexities(functions: list[tuple[int, int]], decisions: list[int]) -> list[int]:
    """One and the decision points of each function, without those of functions inside it; outer ones first."""
    own: list[int] = []
    stack: list[tuple[int, int]] = []
    for index, (start, minus_end) in enumerate(functions):
        end = -minus_end
        count = bisect_left(decisions, end) - bisect_left(decisions, start)
        while stack and stack[-1][0] <= start:
            stack.pop()
        if stack:
            own[stack[-1][1]] -= count
        own.append(count + 1)
        stack.append((end, index))
    return own
