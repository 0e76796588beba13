"""Matching of the findings of two batches, in the files whose findings differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from codebatch.compare.matching.findings import (
    FindingPair,
    MatchableFinding,
    Pairing,
    Pass,
    pair_anywhere,
    pair_in_file,
    pair_on_lines,
)
from codebatch.compare.matching.lines import NOWHERE
from codebatch.compare.matching.scopes import NO_SCOPES, Scopes, have_scopes, read_scopes
from codebatch.compare.matching.texts import Texts
from codebatch.compare.matching.trees import Side, TreeComparison
from codebatch.compare.rules import LINT
from codebatch.model.record import Diagnostic
from codebatch.plugins.worker_services import absence_services

Codes = frozenset[tuple[str, str]]


class ReportedFinding(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A finding with its file and the task that reported it.

    Findings are compared by identity: two findings with equal members are different.
    """

    path: bytes
    task: str
    about: Diagnostic

    @property
    def code(self) -> tuple[str, str]:
        """The tool and the rule ID. Only findings for which both are equal can match."""
        return self.about.tool, self.about.code


ToldByPath = Mapping[bytes, Sequence[ReportedFinding]]


class ReportedPair(NamedTuple):
    """Two matching findings, and the pass that matched them."""

    old: ReportedFinding
    new: ReportedFinding
    by: Pass


class Paired(NamedTuple):
    """The matching findings, and the findings of the old and the new batch without a match."""

    pairs: list[ReportedPair]
    old: list[ReportedFinding]
    new: list[ReportedFinding]


def match_findings(trees: TreeComparison, old: ToldByPath, new: ToldByPath) -> Paired:
    """Match the findings of two batches, in the files whose findings differ. Raises StoreCorrupt.

    If several tasks report findings of the same rule, as two imports of one program do, each task is matched separately
    first. Otherwise, if the other batch lacks a task, its findings could take the matches of another task's findings.
    """
    pairs: list[ReportedPair] = []
    for task in _tasks_alike(old, new):
        pairs += _Pairing(trees, _of_task(old, task), _of_task(new, task)).paired().pairs
        taken = {finding for pair in pairs for finding in (pair.old, pair.new)}
        old, new = _without(old, taken), _without(new, taken)
    last = _Pairing(trees, old, new).paired()
    return last._replace(pairs=[*pairs, *last.pairs])


def _tasks_alike(*sides: ToldByPath) -> list[str]:
    """Return the tasks that report findings of a rule that another task reports too."""
    findings = [*chain.from_iterable(chain.from_iterable(side.values()) for side in sides)]
    if len({finding.task for finding in findings}) < 2:
        return []
    rules = {(finding.about.tool, finding.about.code, finding.task) for finding in findings}
    tasks = Counter((tool, code) for tool, code, _ in rules)
    return sorted({task for tool, code, task in rules if tasks[tool, code] > 1})


def _of_task(by_path: ToldByPath, task: str) -> ToldByPath:
    selected = {path: [each for each in findings if each.task == task] for path, findings in by_path.items()}
    return {path: findings for path, findings in selected.items() if findings}


def _without(by_path: ToldByPath, taken: Collection[ReportedFinding]) -> ToldByPath:
    left = {path: [each for each in findings if each not in taken] for path, findings in by_path.items()}
    return {path: findings for path, findings in left.items() if findings}


class _Findings(NamedTuple):
    """Findings, and their data for matching in the same order."""

    reported: list[ReportedFinding]
    matchable: list[MatchableFinding]


class _Pairing:
    """The state of the matching.

    `_left` has the unmatched findings of each side by path, in the order in which the task reported them. A path
    without unmatched findings stays, with an empty list.
    """

    def __init__(self, trees: TreeComparison, old: ToldByPath, new: ToldByPath) -> None:
        self._trees = trees
        self._left: dict[Side, dict[bytes, Sequence[ReportedFinding]]] = {"old": {**old}, "new": {**new}}
        self._scopes: dict[Side, Mapping[bytes, Scopes]] = {"old": {}, "new": {}}
        self._pairs: list[ReportedPair] = []
        self._is_exchanged: dict[tuple[bytes, bytes], bool] = {}
        self._without_lines: set[bytes] = set()
        self._matchables: dict[ReportedFinding, MatchableFinding] = {}

    def paired(self) -> Paired:
        files = [(old, new) for old in self._left["old"] if (new := self._trees.new_path(old)) in self._left["new"]]
        for old, new in files:
            if new is not None and not _rules(self._left["old"][old]).isdisjoint(_rules(self._left["new"][new])):
                self._pair_on_lines(old, new)
        left = [(old, new) for old, new in files if new is not None and self._common(old, new)]
        if have_scopes(self._trees.old, self._trees.new):
            self._scopes["old"] = read_scopes(self._trees.old, [old for old, _ in left])
            self._scopes["new"] = read_scopes(self._trees.new, [new for _, new in left])
        for old, new in left:
            self._pair_in_file(old, new)
            self._pair_once(old, new)
        self._pair_anywhere()
        return Paired(self._pairs, self._all_left("old"), self._all_left("new"))

    def _common(self, old: bytes, new: bytes) -> Codes:
        return _codes(self._left["old"][old]) & _codes(self._left["new"][new])

    def _pair_on_lines(self, old: bytes, new: bytes) -> None:
        """Match findings whose lines match. The texts of the lines are not needed."""
        ours, theirs = self._left["old"][old], self._left["new"][new]
        if self._is_exchanged_for(old, new):
            lines = self._trees.lines("new", new, old)
        else:
            lines = self._trees.lines("old", old, new)
        if lines is None:
            self._without_lines.add(old)
            return
        records = [finding.about for finding in ours], [finding.about for finding in theirs]
        if self._is_exchanged_for(old, new):
            other_of = {one: other for other, one in pair_on_lines(*records[::-1], lines).items()}
        else:
            other_of = pair_on_lines(*records, lines)
        self._pairs += [ReportedPair(ours[one], theirs[other], "line") for one, other in other_of.items()]
        taken = {*other_of.values()}
        self._left["old"][old] = [finding for index, finding in enumerate(ours) if index not in other_of]
        self._left["new"][new] = [finding for index, finding in enumerate(theirs) if index not in taken]

    def _pair_in_file(self, old: bytes, new: bytes) -> None:
        """Match the remaining findings of a file by text and by message."""
        codes = self._common(old, new)
        ours, theirs = self._of_file("old", old, codes), self._of_file("new", new, codes)
        lines = None if old in self._without_lines else ()
        if self._is_exchanged_for(old, new):
            pairing = _exchanged(pair_in_file(theirs.matchable, ours.matchable, lines))
        else:
            pairing = pair_in_file(ours.matchable, theirs.matchable, lines)
        self._accept(ours.reported, theirs.reported, pairing)

    def _pair_once(self, old: bytes, new: bytes) -> None:
        """Match findings of rules that lint reports once per file, or once per name in a file.

        If the reported finding is fixed, lint reports the next one, at another line. Such findings match. They do not
        match if the other file has the line of neither finding: then one was fixed and another was introduced.
        """
        codes = self._common(old, new)
        ours, theirs = (
            [finding for finding in left if finding.code in codes and finding.task == LINT]
            for left in (self._left["old"][old], self._left["new"][new])
        )
        lines = self._trees.lines("old", old, new) if ours and theirs else None
        if lines is None:
            return
        matched_lines = lines if isinstance(lines, range) else {*lines}
        of_names, of_files, _ = absence_services().per_file_limits()
        by_key = {_once_key(finding, of_names, of_files): index for index, finding in enumerate(theirs)}
        pairs = []
        for index, finding in enumerate(ours):
            key, line = _once_key(finding, of_names, of_files), finding.about.line
            match = None if key is None else by_key.get(key)
            if match is not None and (
                (0 < line <= len(lines) and lines[line - 1] != NOWHERE) or theirs[match].about.line - 1 in matched_lines
            ):
                del by_key[key]
                pairs.append(FindingPair(index, match, "once"))
        self._accept(ours, theirs, Pairing(pairs, [], []))

    def _is_exchanged_for(self, old: bytes, new: bytes) -> bool:
        """Return whether the old and the new file are exchanged for matching.

        The file with the lesser digest is always matched against the other. So the result does not depend on which is
        old.
        """
        if (old, new) not in self._is_exchanged:
            index, its_other = (self._trees.object("old", old), old), (self._trees.object("new", new), new)
            self._is_exchanged[old, new] = its_other < index
            if its_other == index:
                ours, theirs = ([*map(_sort_key, left)] for left in (self._left["old"][old], self._left["new"][new]))
                self._is_exchanged[old, new] = theirs < ours
        return self._is_exchanged[old, new]

    def _pair_anywhere(self) -> None:
        codes = _codes(self._all_left("old")) & _codes(self._all_left("new"))
        ours, theirs = self._of_all("old", codes), self._of_all("new", codes)
        self._accept(ours.reported, theirs.reported, pair_anywhere(ours.matchable, theirs.matchable))

    def _of_file(self, side: Side, path: bytes, codes: Codes) -> _Findings:
        """Return the findings of a file with some rules, and their data for matching.

        If there are none, the file is not read.
        """
        findings = [finding for finding in self._left[side][path] if finding.code in codes]
        unknown = [finding for finding in findings if finding not in self._matchables]
        if unknown:
            texts = Texts(self._trees.lines_of(side, path))
            scopes = self._scopes[side].get(path, NO_SCOPES)
            self._matchables.update(
                (finding, texts.finding(finding.about, scopes.at(finding.about.line))) for finding in unknown
            )
        return _Findings(findings, [self._matchables[finding] for finding in findings])

    def _of_all(self, side: Side, codes: Codes) -> _Findings:
        by_file = [self._of_file(side, path, codes) for path in self._left[side]]
        return _Findings(
            [*chain(*(each.reported for each in by_file))], [*chain(*(each.matchable for each in by_file))]
        )

    def _accept(self, ours: Sequence[ReportedFinding], theirs: Sequence[ReportedFinding], pairing: Pairing) -> None:
        pairs = [ReportedPair(ours[index], theirs[other_index], by) for index, other_index, by in pairing.pairs]
        self._pairs += pairs
        self._drop("old", {pair.old for pair in pairs})
        self._drop("new", {pair.new for pair in pairs})

    def _drop(self, side: Side, taken: Collection[ReportedFinding]) -> None:
        left = self._left[side]
        for path in {finding.path for finding in taken}:
            left[path] = [finding for finding in left[path] if finding not in taken]

    def _all_left(self, side: Side) -> list[ReportedFinding]:
        return [*chain(*self._left[side].values())]


def _exchanged(pairing: Pairing) -> Pairing:
    pairs = [pair._replace(old=pair.new, new=pair.old) for pair in pairing.pairs]
    return Pairing(pairs, pairing.new, pairing.old)


def _once_key(
    finding: ReportedFinding, of_names: frozenset[str], of_files: frozenset[str]
) -> tuple[str, str, str] | None:
    """Return the key of a finding that lint reports only once per file or name. Return None for other findings."""
    if finding.about.code in of_names:
        return *finding.code, finding.about.message
    return (*finding.code, "") if finding.about.code in of_files else None


def _sort_key(finding: ReportedFinding) -> tuple[int, int, str, str, str]:
    about = finding.about
    return about.line, about.column, about.tool, about.code, about.message


def _rules(findings: Iterable[ReportedFinding]) -> set[str]:
    return {finding.about.code for finding in findings}


def _codes(findings: Iterable[ReportedFinding]) -> Codes:
    return frozenset([(finding.about.tool, finding.about.code) for finding in findings])
