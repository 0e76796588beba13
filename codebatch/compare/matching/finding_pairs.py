"""Matching of the findings of two batches, in the files whose findings differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

import msgspec

from codebatch.compare.matching.findings import (
    FindingPair,
    MatchableFinding,
    MatchingPass,
    Pairing,
    pair_anywhere,
    pair_in_file,
    pair_on_lines,
)
from codebatch.compare.matching.lines import NO_LINE, SplitText, pair_lines
from codebatch.compare.matching.scopes import NO_SCOPES, FileScopes, have_scopes, read_scopes
from codebatch.compare.matching.texts import FileTexts
from codebatch.compare.matching.trees import Side, TreeComparison
from codebatch.compare.rules import LINT_TASK
from codebatch.model.record import Diagnostic
from codebatch.plugins.worker_services import absence_services

ToolCodes = frozenset[tuple[str, str]]


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


FindingsByPath = Mapping[bytes, Sequence[ReportedFinding]]


class ReportedPair(NamedTuple):
    """Two matching findings, and the pass that matched them."""

    old: ReportedFinding
    new: ReportedFinding
    by: MatchingPass


class FindingMatches(NamedTuple):
    """The matching findings, and the findings of the old and the new batch without a match."""

    pairs: list[ReportedPair]
    old: list[ReportedFinding]
    new: list[ReportedFinding]


def match_findings(trees: TreeComparison, old: FindingsByPath, new: FindingsByPath) -> FindingMatches:
    """Match the findings of two batches, in the files whose findings differ. Raises StoreCorrupt.

    If several tasks report findings of the same rule, as two imports of one program do, each task is matched separately
    first. Otherwise, if the other batch lacks a task, its findings could take the matches of another task's findings.
    """
    pairs: list[ReportedPair] = []
    for task in _overlapping_tasks(old, new):
        pairs += _FindingMatcher(trees, _task_findings(old, task), _task_findings(new, task)).matches().pairs
        matched_findings = {finding for pair in pairs for finding in (pair.old, pair.new)}
        old, new = _exclude_findings(old, matched_findings), _exclude_findings(new, matched_findings)
    last = _FindingMatcher(trees, old, new).matches()
    return last._replace(pairs=[*pairs, *last.pairs])


def _overlapping_tasks(*sides: FindingsByPath) -> list[str]:
    """Return the tasks that report findings of a rule of which another task reports findings too."""
    findings = [*chain.from_iterable(chain.from_iterable(side.values()) for side in sides)]
    if len({finding.task for finding in findings}) < 2:
        return []
    rules = {(finding.about.tool, finding.about.code, finding.task) for finding in findings}
    tasks = Counter((tool, code) for tool, code, _ in rules)
    return sorted({task for tool, code, task in rules if tasks[tool, code] > 1})


def _task_findings(by_path: FindingsByPath, task: str) -> FindingsByPath:
    selected = {path: [finding for finding in findings if finding.task == task] for path, findings in by_path.items()}
    return {path: findings for path, findings in selected.items() if findings}


def _exclude_findings(by_path: FindingsByPath, excluded: Collection[ReportedFinding]) -> FindingsByPath:
    remaining = {
        path: [finding for finding in findings if finding not in excluded] for path, findings in by_path.items()
    }
    return {path: findings for path, findings in remaining.items() if findings}


class _FindingSet(NamedTuple):
    """Findings, and in the same order the data by which they are matched."""

    reported: list[ReportedFinding]
    matchable: list[MatchableFinding]


class _FindingMatcher:
    """The state of the matching of findings.

    `_unmatched` has the unmatched findings of each side by path, in the order in which the task reported them. A path
    without unmatched findings stays, with an empty list.
    """

    def __init__(self, trees: TreeComparison, old: FindingsByPath, new: FindingsByPath) -> None:
        self._trees = trees
        self._unmatched: dict[Side, dict[bytes, Sequence[ReportedFinding]]] = {"old": {**old}, "new": {**new}}
        self._scopes: dict[Side, dict[bytes, FileScopes]] = {"old": {}, "new": {}}
        self._pairs: list[ReportedPair] = []
        self._is_exchanged: dict[tuple[bytes, bytes], bool] = {}
        self._without_lines: set[bytes] = set()
        self._matchables: dict[ReportedFinding, MatchableFinding] = {}

    def matches(self) -> FindingMatches:
        files = [
            (old, new) for old in self._unmatched["old"] if (new := self._trees.new_path(old)) in self._unmatched["new"]
        ]
        for old, new in files:
            if new is not None and not _rule_ids(self._unmatched["old"][old]).isdisjoint(
                _rule_ids(self._unmatched["new"][new])
            ):
                self._pair_on_lines(old, new)
        common_files = [(old, new) for old, new in files if new is not None and self._common_codes(old, new)]
        self._read_scopes([old for old, _ in common_files], [new for _, new in common_files])
        for old, new in common_files:
            self._pair_in_file(old, new)
            self._pair_unique(old, new)
        self._pair_anywhere()
        return FindingMatches(self._pairs, self._remaining_findings("old"), self._remaining_findings("new"))

    def _read_scopes(self, *paths_of_sides: Iterable[bytes]) -> None:
        """Read the scopes of some files of the old and the new tree, unless they have been read."""
        if not have_scopes(self._trees.old, self._trees.new):
            return
        for side, paths in zip(self._scopes, paths_of_sides, strict=True):
            known = self._scopes[side]
            known.update(read_scopes(self._trees.batch_records(side), [path for path in paths if path not in known]))

    def _common_codes(self, old: bytes, new: bytes) -> ToolCodes:
        return _tool_codes(self._unmatched["old"][old]) & _tool_codes(self._unmatched["new"][new])

    def _pair_on_lines(self, old: bytes, new: bytes) -> None:
        """Match the findings of two files that are on matching lines. The texts of the lines are not needed."""
        old_findings, new_findings = self._unmatched["old"][old], self._unmatched["new"][new]
        if self._is_exchanged_for(old, new):
            lines = self._trees.matching_lines("new", new, old)
        else:
            lines = self._trees.matching_lines("old", old, new)
        if lines is None:
            self._without_lines.add(old)
            return
        records = [finding.about for finding in old_findings], [finding.about for finding in new_findings]
        if self._is_exchanged_for(old, new):
            other_of = {one: other for other, one in pair_on_lines(*records[::-1], lines).items()}
        else:
            other_of = pair_on_lines(*records, lines)
        self._pairs += [ReportedPair(old_findings[one], new_findings[other], "line") for one, other in other_of.items()]
        matched_indexes = {*other_of.values()}
        self._unmatched["old"][old] = [finding for index, finding in enumerate(old_findings) if index not in other_of]
        self._unmatched["new"][new] = [
            finding for index, finding in enumerate(new_findings) if index not in matched_indexes
        ]

    def _pair_in_file(self, old: bytes, new: bytes) -> None:
        """Match the unmatched findings of two matching files by text and by message."""
        codes = self._common_codes(old, new)
        old_findings, new_findings = self._file_findings("old", old, codes), self._file_findings("new", new, codes)
        lines = None if old in self._without_lines else ()
        if self._is_exchanged_for(old, new):
            ignoring_space = partial(self._pair_ignoring_space, ("new", new), ("old", old))
            pairing = _swap_sides(pair_in_file(new_findings.matchable, old_findings.matchable, lines, ignoring_space))
        else:
            ignoring_space = partial(self._pair_ignoring_space, ("old", old), ("new", new))
            pairing = pair_in_file(old_findings.matchable, new_findings.matchable, lines, ignoring_space)
        self._add_pairs(old_findings.reported, new_findings.reported, pairing)

    def _pair_ignoring_space(self, *files: tuple[Side, bytes]) -> Sequence[int]:
        """Match the lines of two files as `lines.pair_lines` does, but without their white space."""
        texts = [self._trees.file_lines(*file) for file in files]
        left, right = ([b"".join(line.split()) for line in lines] for lines in texts)
        return pair_lines(*(SplitText(lines, sum(map(len, lines))) for lines in (left, right)))

    def _pair_unique(self, old: bytes, new: bytes) -> None:
        """Match findings of rules that lint reports only once per file, or once per name in a file.

        If the reported occurrence is fixed, lint reports the next occurrence, at another line. The two findings then
        match. They do not match if neither line exists in the other file: then one problem was fixed and another was
        introduced.
        """
        codes = self._common_codes(old, new)
        old_findings, new_findings = (
            [finding for finding in remaining if finding.code in codes and finding.task == LINT_TASK]
            for remaining in (self._unmatched["old"][old], self._unmatched["new"][new])
        )
        lines = self._trees.matching_lines("old", old, new) if old_findings and new_findings else None
        if lines is None:
            return
        matched_lines = lines if isinstance(lines, range) else {*lines}
        of_names, of_files, _ = absence_services().per_file_limits()
        by_key = {_once_per_scope_key(finding, of_names, of_files): index for index, finding in enumerate(new_findings)}
        pairs = []
        for index, finding in enumerate(old_findings):
            key, line = _once_per_scope_key(finding, of_names, of_files), finding.about.line
            match = None if key is None else by_key.get(key)
            if match is not None and (
                (0 < line <= len(lines) and lines[line - 1] != NO_LINE)
                or new_findings[match].about.line - 1 in matched_lines
            ):
                del by_key[key]
                pairs.append(FindingPair(index, match, "once"))
        self._add_pairs(old_findings, new_findings, Pairing(pairs, [], []))

    def _is_exchanged_for(self, old: bytes, new: bytes) -> bool:
        """Return whether the new file is matched against the old file, not the old against the new.

        The file with the lesser digest is always matched against the other file. So the result does not depend on which
        file is older.
        """
        if (old, new) not in self._is_exchanged:
            old_key, new_key = (
                (self._trees.object_digest("old", old), old),
                (self._trees.object_digest("new", new), new),
            )
            self._is_exchanged[old, new] = new_key < old_key
            if new_key == old_key:
                old_findings, new_findings = (
                    [*map(_sort_key, remaining)]
                    for remaining in (self._unmatched["old"][old], self._unmatched["new"][new])
                )
                self._is_exchanged[old, new] = new_findings < old_findings
        return self._is_exchanged[old, new]

    def _pair_anywhere(self) -> None:
        remaining = self._remaining_findings("old"), self._remaining_findings("new")
        codes = _tool_codes(remaining[0]) & _tool_codes(remaining[1])
        self._read_scopes(*({finding.path for finding in side if finding.code in codes} for side in remaining))
        old_findings, new_findings = self._all_findings("old", codes), self._all_findings("new", codes)
        self._add_pairs(
            old_findings.reported, new_findings.reported, pair_anywhere(old_findings.matchable, new_findings.matchable)
        )

    def _file_findings(self, side: Side, path: bytes, codes: ToolCodes) -> _FindingSet:
        """Return the findings of a file for some rules, and the data by which they are matched.

        If the file has no findings of these rules, its content is not read.
        """
        findings = [finding for finding in self._unmatched[side][path] if finding.code in codes]
        unknown = [finding for finding in findings if finding not in self._matchables]
        if unknown:
            texts = FileTexts(self._trees.file_lines(side, path))
            scopes = self._scopes[side].get(path, NO_SCOPES)
            self._matchables.update(
                (finding, texts.make_matchable(finding.about, scopes.scope_at(finding.about.line)))
                for finding in unknown
            )
        return _FindingSet(findings, [self._matchables[finding] for finding in findings])

    def _all_findings(self, side: Side, codes: ToolCodes) -> _FindingSet:
        by_file = [self._file_findings(side, path, codes) for path in self._unmatched[side]]
        return _FindingSet(
            [*chain(*(file_findings.reported for file_findings in by_file))],
            [*chain(*(file_findings.matchable for file_findings in by_file))],
        )

    def _add_pairs(
        self, old_findings: Sequence[ReportedFinding], new_findings: Sequence[ReportedFinding], pairing: Pairing
    ) -> None:
        pairs = [
            ReportedPair(old_findings[index], new_findings[other_index], by) for index, other_index, by in pairing.pairs
        ]
        self._pairs += pairs
        self._remove_matched("old", {pair.old for pair in pairs})
        self._remove_matched("new", {pair.new for pair in pairs})

    def _remove_matched(self, side: Side, matched: Collection[ReportedFinding]) -> None:
        remaining = self._unmatched[side]
        for path in {finding.path for finding in matched}:
            remaining[path] = [finding for finding in remaining[path] if finding not in matched]

    def _remaining_findings(self, side: Side) -> list[ReportedFinding]:
        return [*chain(*self._unmatched[side].values())]


def _swap_sides(pairing: Pairing) -> Pairing:
    pairs = [pair._replace(old=pair.new, new=pair.old) for pair in pairing.pairs]
    return Pairing(pairs, pairing.new, pairing.old)


def _once_per_scope_key(
    finding: ReportedFinding, of_names: frozenset[str], of_files: frozenset[str]
) -> tuple[str, str, str] | None:
    """Return a key of a finding that lint reports only once per file or name. Findings with equal keys may match.

    Return None for all other findings.
    """
    if finding.about.code in of_names:
        return *finding.code, finding.about.message
    return (*finding.code, "") if finding.about.code in of_files else None


def _sort_key(finding: ReportedFinding) -> tuple[int, int, str, str, str]:
    about = finding.about
    return about.line, about.column, about.tool, about.code, about.message


def _rule_ids(findings: Iterable[ReportedFinding]) -> set[str]:
    return {finding.about.code for finding in findings}


def _tool_codes(findings: Iterable[ReportedFinding]) -> ToolCodes:
    return frozenset([(finding.about.tool, finding.about.code) for finding in findings])
