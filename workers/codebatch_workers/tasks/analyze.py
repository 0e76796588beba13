"""analyze: numbers about a file, always in the same order, and none that is not known.

`bytes` is of every file. A text file has `lines` and `blank` (only whitespace). Where there is a tree, `comment` counts
the lines that hold comments and nothing else, `code` the rest, so that lines = code + comment + blank; a docstring is
code. Where the language has functions: `functions`, `classes` (what has members: classes, structs, interfaces, enums,
traits, unions), `imports` (statements), `complexity` and `cognitive` (sums over the functions and what is outside of
all), and of the functions' the greatest: `max_complexity`, `max_cognitive`, `max_nesting`, `max_parameters`, 0 where
there is none. Then of each function, by position, with its qualified name as `symbol` and its first line:
`complexity`, and where they are not 0 `cognitive`, `nesting` and `parameters`. What they mean: complexity.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from codebatch.model.record import Metric, Record
from codebatch.model.task import NoConfig
from codebatch_workers.languages import LANGUAGES_OF_DATA
from codebatch_workers.source import SourceFile
from codebatch_workers.tasks.api import TaskEnvironment
from codebatch_workers.tasks.complexity import Function, functions_of
from codebatch_workers.tasks.outline import definitions

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
        outside, functions = _functions(file)
        records: list[Record] = [
            Metric(path=path, path_b64=path_b64, metric=name, value=value)
            for name, value in _metrics(file, outside, functions).items()
        ]
        names = definitions(file) if functions else None
        for function in functions:
            assert names is not None
            symbol, line = names.name_of_function(function.start), file.line(function.start)
            for metric, value in (
                ("complexity", function.complexity),
                ("cognitive", function.cognitive),
                ("nesting", function.nesting),
                ("parameters", function.parameters),
            ):
                if value:
                    records.append(
                        Metric(path=path, path_b64=path_b64, metric=metric, value=value, symbol=symbol, line=line)
                    )
        return records


def metrics(file: SourceFile) -> dict[str, int]:
    """The metrics of a file by name, in their order, without those of its functions."""
    return _metrics(file, *_functions(file))


def _functions(file: SourceFile) -> tuple[Function, list[Function]]:
    if file.tree is None or file.language in LANGUAGES_OF_DATA:
        return Function(0, 0, 0), []
    return functions_of(file.captures, file.utf8, file.language)


def _metrics(file: SourceFile, outside: Function, functions: Sequence[Function]) -> dict[str, int]:
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
        found.update(_structure(file, outside, functions))
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


def _structure(file: SourceFile, outside: Function, functions: Sequence[Function]) -> dict[str, int]:
    captures = file.captures
    return {
        "functions": len(functions),
        "classes": sum(len(captures.get(name, ())) for name in _CLASSES),
        "imports": len(captures.get("import", ())),
        "complexity": outside.complexity + sum(function.complexity for function in functions),
        "max_complexity": max((function.complexity for function in functions), default=0),
        "cognitive": outside.cognitive + sum(function.cognitive for function in functions),
        "max_cognitive": max((function.cognitive for function in functions), default=0),
        "max_nesting": max((function.nesting for function in functions), default=0),
        "max_parameters": max((function.parameters for function in functions), default=0),
    }
