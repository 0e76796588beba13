"""Why lint does not tell of a file what could be told of it: asked where two batches are compared.

All that its rules find is looked for once more, whatever notes in the source, doubts and bounds say. What is not among
it is not there. Of a file that ruff cannot read nothing is known.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from codebatch.model.record import Diagnostic
from codebatch_workers.lint.python.false_positives import is_doubtful, is_doubtful_by_file, is_marked
from codebatch_workers.lint.python.ruff import SYNTAX_ERROR, Ruff, is_for_ruff
from codebatch_workers.lint.python.ruff_project import ProjectRuff
from codebatch_workers.lint.rule import TextRule
from codebatch_workers.lint.settings import AllSettings
from codebatch_workers.syntax.source import SourceFile

_NUMBER = re.compile(r"\d+")

# Of others a file says nothing by what it is, or by how many there are.
_DOUBTED = frozenset({"B015", "B018", "F401", "F405", "F821"})

Why = Literal["suppressed", "withheld", "partially_parsed", ""]
"""A note silences it; it is one too many, or of a file in which the rule is mostly wrong; the file cannot be read.

Empty: it is not there, or not what is around it.
"""


class UnreportedFinding(NamedTuple):
    """A finding that is asked for: its line, from 1, its rule, and what it says, numbers aside."""

    line: int
    tool: str
    code: str
    message: str

    def is_as(self, line: int, message: str) -> bool:
        """Whether what its rule says of a line is this: another one of the same line is not."""
        return self.line == line and _NUMBER.sub("#", message) == _NUMBER.sub("#", self.message)


class UnreportedQuery(NamedTuple):
    """Findings that a batch has not, and the file in which they would be; `is_marked` where it may have notes, or a
    syntax error.
    """

    file: SourceFile
    wanted: Sequence[UnreportedFinding]
    is_marked: bool

    def needs_ruff(self, doubted: frozenset[str]) -> bool:
        """Whether ruff has to be asked: else nothing could withhold them."""
        if not is_for_ruff(self.file):
            return False
        return any(each.tool == "ruff" and (self.is_marked or each.code in doubted) for each in self.wanted)


def why_withheld(
    config: AllSettings, rules: Mapping[str, TextRule], asked: Sequence[UnreportedQuery]
) -> Iterator[list[Why]]:
    """Of each file why it has none of the findings that are asked for. Raises RuffError or OSError."""
    is_project = config.ruff.config == "project"
    for_ruff = [one for one in asked if one.needs_ruff(frozenset() if is_project else _DOUBTED)]
    codes = {each.code for one in for_ruff for each in one.wanted if each.tool == "ruff"}
    with TemporaryDirectory() as scratch:
        every, told = _RuffAnswers(), _RuffAnswers()
        for answers, heeds_notes in ((every, False), (told, True)):
            files = [one.file for one in for_ruff if not heeds_notes or every.have(one)]
            if files:
                ruff = (
                    ProjectRuff(Path(scratch), heeds_notes=heeds_notes)
                    if is_project
                    else Ruff(codes, Path(scratch), heeds_notes=heeds_notes)
                )
                answers.update(zip(files, ruff.check(files), strict=True))
    for one in asked:
        ours = _Ours(one.file, rules)
        yield [
            _why_not_by_ruff(one.file, each, every, told, is_project=is_project)
            if each.tool == "ruff"
            else ours.why_not(each)
            for each in one.wanted
        ]


class _RuffAnswers(dict[SourceFile, list[Diagnostic]]):
    """What ruff finds in files."""

    def of(self, file: SourceFile, wanted: UnreportedFinding) -> list[Diagnostic]:
        every = self.get(file, ())
        return [each for each in every if each.code == wanted.code and wanted.is_as(each.line, each.message)]

    def have(self, asked: UnreportedQuery) -> bool:
        return any(self.of(asked.file, each) for each in asked.wanted)


def _why_not_by_ruff(
    file: SourceFile, wanted: UnreportedFinding, every: _RuffAnswers, told: _RuffAnswers, *, is_project: bool
) -> Why:
    found = every.of(file, wanted)
    is_broken = any(each.code == SYNTAX_ERROR for each in every.get(file, ()))
    if is_broken and not (is_project and found):
        return "partially_parsed"
    if not found:
        return ""
    if not told.of(file, wanted):
        return "suppressed"
    if is_project:
        return "withheld"
    if all(is_marked(file, each) for each in found):
        return "suppressed"
    is_only_doubtful = all(is_doubtful(file, each) and not is_doubtful_by_file(file, each) for each in found)
    return "" if is_only_doubtful else "withheld"


class _Ours:
    """What rules that are not ruff's find in a file, each of them asked once."""

    def __init__(self, file: SourceFile, rules: Mapping[str, TextRule]) -> None:
        self._file = file
        self._rules = rules
        self._found: dict[str, dict[int, list[str]]] = {}

    def why_not(self, wanted: UnreportedFinding) -> Why:
        if wanted.code not in self._found:
            self._found[wanted.code] = self._find(self._rules.get(wanted.code))
        said = self._found[wanted.code].get(wanted.line, ())
        return "withheld" if any(wanted.is_as(wanted.line, each) for each in said) else ""

    def _find(self, rule: TextRule | None) -> dict[int, list[str]]:
        """What a rule says, by line."""
        found: dict[int, list[str]] = defaultdict(list)
        file = self._file
        if rule is not None and file.file_class not in ("binary", "huge", "empty") and rule.needle in file.utf8:
            for start, _, said in rule.find(file):
                found[file.line(start)].append(said)
        return found
