"""Which finding of one batch is which of another, where the two do not say the same."""

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
from codebatch.compare.rules import LINT, per_file_limits
from codebatch.model.record import Diagnostic

Codes = frozenset[tuple[str, str]]


class ReportedFinding(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A finding, of which file, and which task told it. Two that say the same are two."""

    path: bytes
    task: str
    about: Diagnostic

    @property
    def code(self) -> tuple[str, str]:
        """What both of a pair have in common."""
        return self.about.tool, self.about.code


ToldByPath = Mapping[bytes, Sequence[ReportedFinding]]


class ReportedPair(NamedTuple):
    """Two findings that are one, and what paired them."""

    old: ReportedFinding
    new: ReportedFinding
    by: Pass


class Paired(NamedTuple):
    """Findings that are one, and those of each batch that are none of the other's."""

    pairs: list[ReportedPair]
    old: list[ReportedFinding]
    new: list[ReportedFinding]


def match_findings(trees: TreeComparison, old: ToldByPath, new: ToldByPath) -> Paired:
    """Pair the findings of two batches at the paths of which these do not say the same. Raises StoreCorrupt.

    What several tasks tell (two imports of one program) is paired within each of them first: else what the one told,
    which the other batch is without, might take the pair of what the other did.
    """
    pairs: list[ReportedPair] = []
    for task in _tasks_alike(old, new):
        pairs += _Pairing(trees, _only(old, task), _only(new, task)).paired().pairs
        taken = {told for pair in pairs for told in (pair.old, pair.new)}
        old, new = _without(old, taken), _without(new, taken)
    last = _Pairing(trees, old, new).paired()
    return last._replace(pairs=[*pairs, *last.pairs])


def _tasks_alike(*sides: ToldByPath) -> list[str]:
    """The tasks that tell what another one tells too, by tool and code."""
    every = [*chain.from_iterable(chain.from_iterable(side.values()) for side in sides)]
    if len({told.task for told in every}) < 2:
        return []
    found = {(told.about.tool, told.about.code, told.task) for told in every}
    tasks = Counter((tool, code) for tool, code, _ in found)
    return sorted({task for tool, code, task in found if tasks[tool, code] > 1})


def _only(told: ToldByPath, task: str) -> ToldByPath:
    of_it = {path: [each for each in found if each.task == task] for path, found in told.items()}
    return {path: found for path, found in of_it.items() if found}


def _without(told: ToldByPath, taken: Collection[ReportedFinding]) -> ToldByPath:
    left = {path: [each for each in found if each not in taken] for path, found in told.items()}
    return {path: found for path, found in left.items() if found}


class _Findings(NamedTuple):
    """Findings, and what pairs them."""

    told: list[ReportedFinding]
    found: list[MatchableFinding]


class _Pairing:
    """What is left to pair, by path, in the order it was told; where there is none left a path stays."""

    def __init__(self, trees: TreeComparison, old: ToldByPath, new: ToldByPath) -> None:
        self._trees = trees
        self._left: dict[Side, dict[bytes, Sequence[ReportedFinding]]] = {"old": {**old}, "new": {**new}}
        self._scopes: dict[Side, Mapping[bytes, Scopes]] = {"old": {}, "new": {}}
        self._pairs: list[ReportedPair] = []
        self._turned: dict[tuple[bytes, bytes], bool] = {}
        self._without_lines: set[bytes] = set()
        self._found: dict[ReportedFinding, MatchableFinding] = {}

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
        """Pair those on lines that are one, without their texts."""
        ours, theirs = self._left["old"][old], self._left["new"][new]
        if self._is_turned(old, new):
            lines = self._trees.lines("new", new, old)
        else:
            lines = self._trees.lines("old", old, new)
        if lines is None:
            self._without_lines.add(old)
            return
        abouts = [told.about for told in ours], [told.about for told in theirs]
        if self._is_turned(old, new):
            other_of = {one: other for other, one in pair_on_lines(*abouts[::-1], lines).items()}
        else:
            other_of = pair_on_lines(*abouts, lines)
        self._pairs += [ReportedPair(ours[one], theirs[other], "line") for one, other in other_of.items()]
        taken = {*other_of.values()}
        self._left["old"][old] = [told for place, told in enumerate(ours) if place not in other_of]
        self._left["new"][new] = [told for place, told in enumerate(theirs) if place not in taken]

    def _pair_in_file(self, old: bytes, new: bytes) -> None:
        """Pair those that are left by what is written there, and by what they say."""
        codes = self._common(old, new)
        ours, theirs = self._of_file("old", old, codes), self._of_file("new", new, codes)
        lines = None if old in self._without_lines else ()
        if self._is_turned(old, new):
            pairing = _turned(pair_in_file(theirs.found, ours.found, lines))
        else:
            pairing = pair_in_file(ours.found, theirs.found, lines)
        self._take(ours.told, theirs.told, pairing)

    def _pair_once(self, old: bytes, new: bytes) -> None:
        """Pair what lint tells once of a file, or of a name in it: mending the first place shows the next one.

        Where both places are on lines that the other file has not, it was mended at the one and made at the other.
        """
        codes = self._common(old, new)
        ours, theirs = (
            [told for told in left if told.code in codes and told.task == LINT]
            for left in (self._left["old"][old], self._left["new"][new])
        )
        lines = self._trees.lines("old", old, new) if ours and theirs else None
        if lines is None:
            return
        kept = lines if isinstance(lines, range) else {*lines}
        of_names, of_files, _ = per_file_limits()
        by_key = {_once_as(told, of_names, of_files): place for place, told in enumerate(theirs)}
        pairs = []
        for place, told in enumerate(ours):
            key, line = _once_as(told, of_names, of_files), told.about.line
            its_other = None if key is None else by_key.get(key)
            if its_other is not None and (
                (0 < line <= len(lines) and lines[line - 1] != NOWHERE) or theirs[its_other].about.line - 1 in kept
            ):
                del by_key[key]
                pairs.append(FindingPair(place, its_other, "once"))
        self._take(ours, theirs, Pairing(pairs, [], []))

    def _is_turned(self, old: bytes, new: bytes) -> bool:
        """Files are paired from the lesser digest to the other, so that it comes out the same the other way round."""
        if (old, new) not in self._turned:
            place, its_other = (self._trees.object("old", old), old), (self._trees.object("new", new), new)
            self._turned[old, new] = its_other < place
            if its_other == place:
                ours, theirs = ([*map(_said, left)] for left in (self._left["old"][old], self._left["new"][new]))
                self._turned[old, new] = theirs < ours
        return self._turned[old, new]

    def _pair_anywhere(self) -> None:
        codes = _codes(self._all_left("old")) & _codes(self._all_left("new"))
        ours, theirs = self._of_all("old", codes), self._of_all("new", codes)
        self._take(ours.told, theirs.told, pair_anywhere(ours.found, theirs.found))

    def _of_file(self, side: Side, path: bytes, codes: Codes) -> _Findings:
        """The findings of a file that are of some codes. Where there is none the file is not read."""
        told = [each for each in self._left[side][path] if each.code in codes]
        unknown = [each for each in told if each not in self._found]
        if unknown:
            texts = Texts(self._trees.lines_of(side, path))
            scopes = self._scopes[side].get(path, NO_SCOPES)
            self._found.update((each, texts.finding(each.about, scopes.at(each.about.line))) for each in unknown)
        return _Findings(told, [self._found[each] for each in told])

    def _of_all(self, side: Side, codes: Codes) -> _Findings:
        every = [self._of_file(side, path, codes) for path in self._left[side]]
        return _Findings([*chain(*(each.told for each in every))], [*chain(*(each.found for each in every))])

    def _take(self, ours: Sequence[ReportedFinding], theirs: Sequence[ReportedFinding], pairing: Pairing) -> None:
        pairs = [ReportedPair(ours[place], theirs[its_other], by) for place, its_other, by in pairing.pairs]
        self._pairs += pairs
        self._drop("old", {pair.old for pair in pairs})
        self._drop("new", {pair.new for pair in pairs})

    def _drop(self, side: Side, taken: Collection[ReportedFinding]) -> None:
        left = self._left[side]
        for path in {told.path for told in taken}:
            left[path] = [told for told in left[path] if told not in taken]

    def _all_left(self, side: Side) -> list[ReportedFinding]:
        return [*chain(*self._left[side].values())]


def _turned(pairing: Pairing) -> Pairing:
    pairs = [pair._replace(old=pair.new, new=pair.old) for pair in pairing.pairs]
    return Pairing(pairs, pairing.new, pairing.old)


def _once_as(told: ReportedFinding, of_names: frozenset[str], of_files: frozenset[str]) -> tuple[str, str, str] | None:
    """What is told once of a file: of which rule, and with which message; None where that is not so."""
    if told.about.code in of_names:
        return *told.code, told.about.message
    return (*told.code, "") if told.about.code in of_files else None


def _said(told: ReportedFinding) -> tuple[int, int, str, str, str]:
    about = told.about
    return about.line, about.column, about.tool, about.code, about.message


def _rules(told: Iterable[ReportedFinding]) -> set[str]:
    return {each.about.code for each in told}


def _codes(told: Iterable[ReportedFinding]) -> Codes:
    return frozenset([(each.about.tool, each.about.code) for each in told])
