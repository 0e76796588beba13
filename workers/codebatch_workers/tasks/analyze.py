"""analyze: metrics of a file, always in the same order. Metrics that cannot be determined are left out.

Every file has `bytes`. A text file has `lines`, `code`, `comment` and `blank`; lines = code + comment + blank
(line_counts.py).

If the language has functions, these metrics follow:

- `functions`, `classes` (definitions with members: classes, structs, interfaces, enums, traits, unions), `imports`
  (statements)
- `complexity`: the sum over all functions and the code outside functions; `max_complexity`: the maximum over functions,
  0 if there are none
- unless they are 0: `cognitive` (also a sum), `max_cognitive`, `max_nesting`, `max_parameters`

The metrics of each function follow, by position: `complexity` and, unless they are 0, `cognitive`, `nesting` and
`parameters` (complexity.py). `symbol` is the function's qualified name, and `line` the line of its name. If a function
is not a symbol, `line` is its first line, and its `complexity` record also has `end_line`. If the file can have
duplicates, its `fingerprints` come last (fingerprints.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from codebatch.model.record import Metric, Record
from codebatch.model.task import NoConfig
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.duplicates.fingerprints import make_fingerprints
from codebatch_workers.symbols.complexity import FunctionMetrics, function_metrics
from codebatch_workers.symbols.outline import scope_definitions
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.line_counts import count_lines, text_line_count

_CLASS_CAPTURES = ("def.class", "def.struct", "def.union", "def.interface", "def.trait", "def.enum")


def create(_environment: TaskEnvironment[NoConfig]) -> AnalyzeTask:
    """Return the task. It has no configuration."""
    return AnalyzeTask()


class AnalyzeTask:
    """The task: `metric` records in the order that the module's docstring describes, then the record `fingerprints`."""

    def run_file(self, file: SourceFile) -> list[Record]:
        """Return the metrics and fingerprints of a file."""
        path, path_b64 = file.path_fields
        outside, functions = _function_metrics(file)
        records: list[Record] = [
            Metric(path=path, path_b64=path_b64, metric=name, value=value)
            for name, value in _complete_metrics(file, outside, functions).items()
        ]
        names = scope_definitions(file) if functions else None
        for function in functions:
            assert names is not None
            symbol, line = names.function_name(function.start), file.line(names.function_name_offset(function.start))
            # If the function is a symbol, the record of this symbol contains the end.
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
        file_fingerprints = make_fingerprints(file)
        return records if file_fingerprints is None else [*records, file_fingerprints]


def _function_metrics(file: SourceFile) -> tuple[FunctionMetrics, list[FunctionMetrics]]:
    if file.tree is None or file.syntax.is_declarative:
        return FunctionMetrics(0, 0, 0), []
    return function_metrics(file.captures, file.utf8, file.language)


def _complete_metrics(
    file: SourceFile, outside: FunctionMetrics, functions: Sequence[FunctionMetrics]
) -> dict[str, int]:
    values = {"bytes": len(file.content)}
    if file.is_binary:
        return values
    values["lines"] = text_line_count(file)
    values.update(count_lines(file)._asdict())
    if file.tree is not None and not file.syntax.is_declarative:
        values.update(_structure_metrics(file, outside, functions))
    return values


def _structure_metrics(
    file: SourceFile, outside: FunctionMetrics, functions: Sequence[FunctionMetrics]
) -> dict[str, int]:
    captures = file.captures
    complexities = [function.complexity for function in functions]
    cognitives = [function.cognitive for function in functions]
    values = {
        "functions": len(functions),
        "classes": sum(len(captures.get(name, ())) for name in _CLASS_CAPTURES),
        "imports": len(captures.get("import", ())),
        "complexity": outside.complexity + sum(complexities),
        "max_complexity": max(complexities, default=0),
    }
    nonzero_values = {
        "cognitive": outside.cognitive + sum(cognitives),
        "max_cognitive": max(cognitives, default=0),
        "max_nesting": max([function.nesting for function in functions], default=0),
        "max_parameters": max([function.parameters for function in functions], default=0),
    }
    values.update((name, value) for name, value in nonzero_values.items() if value)
    return values
