"""analyze: numbers about a file, always in the same order, and none that is not known.

`bytes` is of every file. A text file has `lines`, `code`, `comment` and `blank`, so that lines = code + comment + blank
(line_counts.py). Where the language has functions: `functions`, `classes` (what has members: classes, structs,
interfaces, enums, traits, unions), `imports` (statements), `complexity` (the sum over the functions and what is outside
of all), `max_complexity` (of the functions' the greatest, 0 where there is none); unless they are 0 `cognitive` (a sum
too), `max_cognitive`, `max_nesting`, `max_parameters`. Then of each function, by position, its qualified name as
`symbol` and the `line` of its name: `complexity`, and unless they are 0 `cognitive`, `nesting`, `parameters`. Of a
function that is no symbol `line` is its first, and `complexity` has its `end_line`. See complexity.py. At last, where
the file can have duplicates, its `fingerprints` (fingerprints.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from codebatch.model.record import Metric, Record
from codebatch.model.task import NoConfig
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.duplicates.fingerprints import fingerprints
from codebatch_workers.symbols.complexity import FunctionMetrics, functions_of
from codebatch_workers.symbols.outline import definitions
from codebatch_workers.syntax.language.languages import LANGUAGES_OF_DATA
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.line_counts import count_lines, lines_of

_CLASSES = ("def.class", "def.struct", "def.union", "def.interface", "def.trait", "def.enum")


def create(_environment: TaskEnvironment[NoConfig]) -> Analyze:
    """The task; it has no configuration."""
    return Analyze()


class Analyze:
    """`metric` records in the order of the module's text, and the `fingerprints` of the file."""

    def run_file(self, file: SourceFile) -> list[Record]:
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
            symbol, line = names.name_of_function(function.start), file.line(names.place_of_function(function.start))
            # Of a function that is a symbol the symbol has the end.
            end_line = UNSET if names.has_symbol(function.start) else file.line(function.end)
            for metric, value, end in (
                ("complexity", function.complexity, end_line),
                ("cognitive", function.cognitive, UNSET),
                ("nesting", function.nesting, UNSET),
                ("parameters", function.parameters, UNSET),
            ):
                if value:
                    records.append(
                        Metric(
                            path=path,
                            path_b64=path_b64,
                            metric=metric,
                            value=value,
                            symbol=symbol,
                            line=line,
                            end_line=end,
                        )
                    )
        found = fingerprints(file)
        return records if found is None else [*records, found]


def metrics(file: SourceFile) -> dict[str, int]:
    """The metrics of a file by name, in their order, without those of its functions."""
    return _metrics(file, *_functions(file))


def _functions(file: SourceFile) -> tuple[FunctionMetrics, list[FunctionMetrics]]:
    if file.tree is None or file.language in LANGUAGES_OF_DATA:
        return FunctionMetrics(0, 0, 0), []
    return functions_of(file.captures, file.utf8, file.language)


def _metrics(file: SourceFile, outside: FunctionMetrics, functions: Sequence[FunctionMetrics]) -> dict[str, int]:
    found = {"bytes": len(file.content)}
    if file.is_binary:
        return found
    found["lines"] = lines_of(file)
    found.update(count_lines(file)._asdict())
    if file.tree is not None and file.language not in LANGUAGES_OF_DATA:
        found.update(_structure(file, outside, functions))
    return found


def _structure(file: SourceFile, outside: FunctionMetrics, functions: Sequence[FunctionMetrics]) -> dict[str, int]:
    captures = file.captures
    complexities = [each.complexity for each in functions]
    cognitives = [each.cognitive for each in functions]
    found = {
        "functions": len(functions),
        "classes": sum(len(captures.get(name, ())) for name in _CLASSES),
        "imports": len(captures.get("import", ())),
        "complexity": outside.complexity + sum(complexities),
        "max_complexity": max(complexities, default=0),
    }
    more = {
        "cognitive": outside.cognitive + sum(cognitives),
        "max_cognitive": max(cognitives, default=0),
        "max_nesting": max([each.nesting for each in functions], default=0),
        "max_parameters": max([each.parameters for each in functions], default=0),
    }
    found.update((name, value) for name, value in more.items() if value)
    return found
