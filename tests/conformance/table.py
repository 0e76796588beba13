"""The conformance table: constructs of each language by version, in one TOML file for each language.

Every construct is a minimal file that is valid by the language's specification. See `test_conformance.py`.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from codebatch.model.record import Diagnostic, Metric
from codebatch.model.text.toml import parse_toml
from codebatch_workers.symbols.outline import file_outline
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.analyze import AnalyzeTask
from tests.support.source_files import lint_all, parse, source

TABLE = Path(__file__).parent
_LINTED = frozenset({"javascript", "python", "tsx", "typescript"})
_NAMES_RULES = frozenset({"F401", "F811", "F821", "F822", "F823", "F841", "unused-import", "unused-variable"})
_TABLE_LENGTH_MAX = 1 << 20
WIDTH = 130


class Construct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One construct of a language: a minimal valid file, and the expected records for it."""

    name: str
    since: str
    code: str
    path: str = ""
    defines: list[str] = []
    # Names that a parser which misreads the construct would define.
    defines_not: list[str] = []
    binds: list[str] = []
    complexity: dict[str, int] = {}
    gap: str = ""


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of one language.

    - `path`: the path of a file in the language. By default, its ending is the name of the language.
    - `newest`: the newest version in the table, if `since` has no version numbers.
    - `statements`: a file with calls `f(yes)` where several statements may stand, and `f(no)` where only one may, or an
      expression. `separator` is between two statements.
    """

    construct: list[Construct]
    path: str = ""
    newest: str = ""
    separator: str = ";\n"
    statements: str = ""


def languages() -> list[str]:
    """Return the sorted names of the languages in the table."""
    return sorted(path.stem for path in TABLE.glob("*.toml"))


def constructs_of(language: str) -> Sequence[Construct]:
    """Return the constructs of a language in the order of its file."""
    return language_table(language).construct


@cache
def language_table(language: str) -> Language:
    """Return the table of a language."""
    text = (TABLE / f"{language}.toml").read_text(encoding="utf-8")
    return msgspec.convert(parse_toml(text, length_max=_TABLE_LENGTH_MAX), Language)


def described_table() -> str:
    """Return the description of the table in `codebatch help languages`."""
    parts, gaps = [], []
    for name in languages():
        language = language_table(name)
        numbers = [construct.since for construct in language.construct if re.fullmatch(r"[\d.]+", construct.since)]
        newest = language.newest or max(numbers, key=_as_numbers, default="")
        parts.append(f"{name} {len(language.construct)}{f' ({newest})' if newest else ''}")
        gaps += [
            f"{name}, {construct.name}: {construct.gap[0].lower()}{construct.gap[1:]}"
            for construct in language.construct
            if construct.gap
        ]
    lines = textwrap.wrap(f"Number of constructs (and newest version): {', '.join(parts)}.", WIDTH)
    for gap in gaps:
        lines += ["", "These constructs are not analysed correctly:", ""] if gap is gaps[0] else []
        lines += textwrap.wrap(f"- {gap}", WIDTH, subsequent_indent="  ")
    return "\n".join(lines)


def _as_numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".") if number]


def faults_of(language: str, construct: Construct) -> list[str]:
    """Return messages about what is wrong in the analysis of a construct. The list is empty if everything is right."""
    file = source(construct.path or language_table(language).path or f"a.{language}", construct.code)
    return [
        *_faults_of_syntax(language, file),
        *_faults_of_definitions(construct, file),
        *_faults_of_bindings(language, construct, file),
        *_faults_of_complexity(construct, file),
    ]


def _faults_of_syntax(language: str, file: SourceFile) -> Iterator[str]:
    record, errors = parse(file)
    if record.lang != language:
        yield f"language is {record.lang}"
    for error in errors:
        if error.severity != "info":
            yield f"false error in line {error.line}: {error.message}"
    if record.parse != "ok" and not errors:
        yield f"parse state is {record.parse}"


def _faults_of_definitions(construct: Construct, file: SourceFile) -> Iterator[str]:
    symbols = file_outline(file).symbols
    names = {symbol.name for symbol in symbols} | {symbol.qualified for symbol in symbols}
    if missing := [name for name in construct.defines if name not in names]:
        yield f"not defined: {', '.join(missing)}; defined are {', '.join(sorted(names)) or 'none'}"
    if wrong := [name for name in construct.defines_not if name in names]:
        yield f"wrongly defined: {', '.join(wrong)}"


def _faults_of_bindings(language: str, construct: Construct, file: SourceFile) -> Iterator[str]:
    if not construct.binds or language not in _LINTED:
        return
    for finding in _findings(file):
        if finding.code in _NAMES_RULES and any(
            re.search(rf"\b{re.escape(name)}\b", finding.message) for name in construct.binds
        ):
            yield f"false finding in line {finding.line}: {finding.code} {finding.message}"


def _findings(file: SourceFile) -> Sequence[Diagnostic]:
    with TemporaryDirectory() as scratch:
        (findings,) = lint_all([file], Path(scratch))
    return findings


def _faults_of_complexity(construct: Construct, file: SourceFile) -> Iterator[str]:
    if not construct.complexity:
        return
    measured = {
        record.symbol: int(record.value)
        for record in AnalyzeTask().run_file(file)
        if isinstance(record, Metric) and record.metric == "complexity" and isinstance(record.symbol, str)
    }
    for function, expected in construct.complexity.items():
        if measured.get(function) != expected:
            yield f"complexity of {function} is {measured.get(function)}, not {expected}; measured are {measured}"
