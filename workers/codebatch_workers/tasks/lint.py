"""lint: language-neutral rules over every text file, ruff over Python.

Configuration: `off` lists rules not to run, `on` those that are off by default and wanted. Binary and huge files are
not looked at.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from itertools import islice

from codebatch.model.record import Diagnostic, Record
from codebatch.model.task import Json
from codebatch_workers.source import SourceFile
from codebatch_workers.tasks.api import TaskEnvironment
from codebatch_workers.tasks.ruff import Ruff
from codebatch_workers.tasks.ruff_rules import SEVERITIES
from codebatch_workers.tasks.text_rules import FINDINGS_MAX, RULES_BY_CODE, TEXT_RULES, TextRule, is_ignored

_NOT_WRITTEN_BY_HAND = frozenset({"generated", "minified", "vendored"})


def check_config(config: Mapping[str, Json]) -> None:
    """Raises ValueError where a configuration names an unknown rule, TypeError where it is no list of codes."""
    known = sorted(RULES_BY_CODE.keys() | SEVERITIES.keys())
    for code in sorted(_codes(config, "off") | _codes(config, "on")):
        if code not in known:
            close = difflib.get_close_matches(code, RULES_BY_CODE, n=1)
            raise ValueError(f"lint has no rule {code!r}" + (f"; did you mean {close[0]!r}?" if close else ""))


def create(environment: TaskEnvironment) -> Lint:
    """The task. Raises as `check_config` does."""
    check_config(environment.config)
    off = _codes(environment.config, "off")
    on = _codes(environment.config, "on")
    rules = tuple(rule for rule in TEXT_RULES if (rule.is_on or rule.code in on) and rule.code not in off)
    return Lint(rules, Ruff(SEVERITIES.keys() - off, environment.scratch))


def _codes(config: Mapping[str, Json], key: str) -> set[str]:
    value = config.get(key, [])
    if not isinstance(value, list) or not all(isinstance(code, str) for code in value):
        raise TypeError(f"lint: `{key}` must be a list of rule codes")
    return set(value)


class Lint:
    """`diagnostic` records by position: those of the language-neutral rules, then ruff's."""

    def __init__(self, rules: Sequence[TextRule], ruff: Ruff) -> None:
        self._always = [rule for rule in rules if not rule.is_style]
        self._all = list(rules)
        self._ruff = ruff

    def run(self, file: SourceFile) -> list[Record]:
        """What the language-neutral rules find in one file, by position."""
        file_class = file.file_class
        if file_class in ("binary", "huge", "empty"):
            return []
        found: list[Diagnostic] = []
        for rule in self._always if file_class in _NOT_WRITTEN_BY_HAND else self._all:
            found.extend(_apply(rule, file))
        found.sort(key=lambda record: (record.line, record.column, record.code))
        return list(found)

    def complete(self, files: Sequence[SourceFile], records: Sequence[list[Record]]) -> list[list[Record]]:
        """`records`, with ruff's for the Python files."""
        final = [list(each) for each in records]
        python = [index for index, file in enumerate(files) if _is_for_ruff(file)]
        answers = self._ruff.check([files[index] for index in python])
        for index, answer in zip(python, answers, strict=True):
            final[index].extend(answer)
        return final


def _is_for_ruff(file: SourceFile) -> bool:
    return file.language == "python" and file.file_class not in ("binary", "huge", "empty")


def _apply(rule: TextRule, file: SourceFile) -> list[Diagnostic]:
    """What one rule finds in a file, without the lines that want no finding."""
    path, path_b64 = file.path_fields
    found = []
    for start, end, message in islice(rule.find(file), FINDINGS_MAX):
        line, column = file.position(start)
        if is_ignored(_line_text(file, line), rule.code):
            continue
        end_line, end_column = file.position(end)
        found.append(
            Diagnostic(
                path=path,
                path_b64=path_b64,
                line=line,
                column=column,
                end_line=end_line,
                end_column=end_column,
                severity=rule.severity,
                code=rule.code,
                message=message,
                tool="codebatch",
            )
        )
    return found


# Where a note about a line is looked for, from its start: a line may be the whole file.
_LINE_BYTES_LOOKED_AT = 4096


def _line_text(file: SourceFile, line: int) -> bytes:
    starts = file.line_starts
    end = starts[line] if line < len(starts) else len(file.utf8)
    return file.utf8[starts[line - 1] : min(end, starts[line - 1] + _LINE_BYTES_LOOKED_AT)]
