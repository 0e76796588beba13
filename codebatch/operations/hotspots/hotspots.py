"""Where code is hard to change: how complex it is, how often that was met in the last year, and by how many.

A hotspot, after Tornhill ("Your Code as a Crime Scene"), is code that is complex and often changed: the product of the
two. Here it weighs more where more files depend on it. Few files have nearly all of the dependents (they go by a power
law), so these count by their logarithm, or one small file that all import would always be first:

    cognitive complexity x (1 + changes in the last year) x log2(2 + files that depend on it)

The changes of a function are its own, not those of its file (function_changes.py). What is not known (no history, no
`dependencies`, no imports that lead there) counts as 0, and is null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.errors import InvalidInput
from codebatch.model.entry import path_fields, path_from_fields
from codebatch.model.task import Json
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.query.answers.function_lines import FunctionLocation
from codebatch.query.answers.hotspot_ranking import FilesKnown, HotspotBy, HotspotCandidate, Ranking, rank_functions
from codebatch.query.answers.import_rules import needs_import
from codebatch.query.filters.arguments import refuse_below_one, refuse_unknown
from codebatch.query.secondary_files import Apart

if TYPE_CHECKING:  # Who asks is told of a stale tree by another process, which is begun before these are imported.
    from codebatch.operations.history.function_history import Count
    from codebatch.operations.hotspots.churn import Churn
    from codebatch.query.answers.file_numbers import FileNumbers
    from codebatch.query.answers.partial_parses import PartialParseCheck
    from codebatch.query.filters.paths import Paths
    from codebatch.query.sources.records import BatchRecords

__all__ = ["HOTSPOTS_MAX", "HOTSPOTS_SHOWN", "OF_FUNCTIONS", "Hotspot", "HotspotBy", "Hotspots", "hotspots"]

HOTSPOTS_SHOWN = 10
FUNCTION_LEAST = 10
"""Functions of lower complexity are no hotspots by default. The limit is McCabe's."""
HOTSPOTS_MAX = 1_000
OF_FUNCTIONS: tuple[HotspotBy, ...] = ("hotspot", "cognitive", "complexity")
"""By what functions can be ranked; by the others files are."""
_METRIC = {"hotspot": "cognitive", "duplication": "duplicated_lines", "churn": "code"}
"""Of what it is asked who is ranked, where that is called otherwise."""
_DEPENDENTS = "dependents"
_OF_FILES = ("cognitive", "complexity", "code", "duplicated_lines")
_SPARE = 20
"""So many more are ranked, for some may show to be doubtful, or to have changed more rarely than their files."""


class Hotspot(msgspec.Struct, frozen=True, kw_only=True):
    """A function or, if `symbol` is not set, a file, with its metrics.

    - `score`: the value by which it is ranked.
    - `commits_per_year`: the number of commits that changed it in the year before the newest commit, or None if
      unknown.
    - `dependents`: the number of files that depend on its file, or None if unknown.

    A function has only the metric that it is ranked by; a file has all metrics.
    """

    path: str | UnsetType = UNSET
    path_b64: str | UnsetType = UNSET
    symbol: str | UnsetType = UNSET
    line: int | UnsetType = UNSET
    score: float
    cognitive: int | UnsetType = UNSET
    complexity: int | UnsetType = UNSET
    code: int | UnsetType = UNSET
    duplicated_lines: int | UnsetType = UNSET
    commits_per_year: int | None
    dependents: int | None
    dependents_partial: bool | UnsetType = UNSET


class Hotspots(msgspec.Struct, frozen=True, kw_only=True):
    """Hotspots, highest score first.

    `excluded` counts functions or files that were left out although their score is higher than the last listed score.
    The keys are:

    - `test`: tests and their data.
    - `foreign`: vendored, generated or minified code.
    - `doubtful`: functions in partially parsed files, whose metrics may include code of other functions.

    `churn_note` describes what is unknown about the git history, or is empty. If `is_history_cut` is set, only a part
    of the history was read, and the next query reads more.
    """

    rows: tuple[Hotspot, ...]
    excluded: Mapping[Apart | Literal["doubtful"], int]
    churn_note: str
    is_history_cut: bool = False


def hotspots(
    question: BatchQuery,
    by: HotspotBy = "hotspot",
    *,
    files: bool = False,
    least: int | None = None,
    limit: int = HOTSPOTS_SHOWN,
    path: Paths = "",
    languages: Collection[str] = (),
    everything: bool = False,
) -> Answer[Hotspots]:
    """The functions that are hardest to change, or the files: the first `limit` of those that have `least` or more.

    `least` is of the number by which they are ranked, of hotspots of the cognitive complexity; by default it is
    FUNCTION_LEAST of functions and 1 of files. With `everything` nothing is left out. Raises InvalidInput or
    StoreCorrupt.
    """
    from codebatch.operations.hotspots.churn import churn
    from codebatch.query.answers.numbers import task_of
    from codebatch.query.answers.partial_parses import PartialParseCheck
    from codebatch.query.completeness import completeness

    refuse_unknown("ranking", (by,), get_args(HotspotBy))
    is_of_files = files or by not in OF_FUNCTIONS
    least = (1 if is_of_files else FUNCTION_LEAST) if least is None else least
    refuse_below_one(limit=limit, least=least)
    if limit > HOTSPOTS_MAX:
        raise InvalidInput(f"`limit` must be at most {HOTSPOTS_MAX:,}", hint="for all values: codebatch query metrics")
    records, metric = question.records, _METRIC.get(by, by)
    for task in ("analyze", task_of(metric)):
        if task not in records.task_names:
            raise InvalidInput(
                f"the batch has no results of the task {task!r}, which this ranking needs",
                hint="to include this task, run: codebatch run --pipeline full PATH",
            )
    history = churn(question)
    if history.changes is None and by == "churn":
        raise InvalidInput(history.told)
    kept = question.find_numbers(are_made=True)
    dependents = _dependents(records, kept)
    known = FilesKnown(history.changes, dependents, None if everything else question.apart)
    is_wanted = _wanted(records, path, languages)
    told, is_cut = history.told, history.is_cut
    if is_of_files:
        rows, left_out = _files(records, Ranking(by, known, limit), metric, least, is_wanted)
    else:
        doubt = None if everything else PartialParseCheck(records, None if kept is None else kept.in_part)
        greatest = None if kept is None else kept.of(f"max_{metric}")
        rank = partial(rank_functions, records, metric, least, is_wanted, greatest)
        changes = _ChangesKnown(question, history)
        search = _FunctionSearch(lambda spare: rank(partial(Ranking, by, known, spare)), limit, doubt, changes)
        best, left_out = search.find()
        changes.keep()
        told = ", ".join(filter(None, (told, changes.describe_lack(best))))
        is_cut |= changes.is_cut
        rows = tuple(
            _hotspot(known, each, {metric: each.value}, changes.of(each), symbol=each.symbol, line=each.line)
            for each in best
        )
    found = Hotspots(
        rows=_without_guesses(records, kept, rows), excluded=left_out, churn_note=told, is_history_cut=is_cut
    )
    needed = {"analyze", "parse", "dependencies", *(["duplicates"] if is_of_files else [])} & {*records.task_names}
    if not records.source.is_done:
        needed = set().union(*map(records.plan.needed_for, needed))
    whole = completeness(records, needed, path=path, lacks_files=bool(question.batch.about.paths))
    return Answer(question=question, found=found, whole=whole)


def _dependents(records: BatchRecords, kept: FileNumbers | None) -> Mapping[bytes, int] | None:
    """How many files depend on each; None unless all is there that says so, or else 0 would be told of each."""
    if kept is not None:
        return kept.of(_DEPENDENTS)
    if "dependencies" not in records.task_names:
        return None
    from codebatch.query.answers.numbers import numbers_of_files
    from codebatch.query.completeness import completeness

    if not completeness(records, records.plan.needed_for("dependencies")).is_complete:
        return None
    return numbers_of_files(records, (_DEPENDENTS,))[_DEPENDENTS]


_LeftOut = dict[Apart | Literal["doubtful"], int]


class _ChangesKnown:
    """The changes of functions, None where they are not known."""

    def __init__(self, question: BatchQuery, history: Churn) -> None:
        from codebatch.operations.hotspots.function_changes import FunctionChanges

        self._changes = None if history.history is None else FunctionChanges(question, history.history)
        self._is_whole = history.history is not None and history.history.is_whole
        self._counted: Mapping[FunctionLocation, Count] = {}
        self._told = ""

    def read(self, candidates: Iterable[HotspotCandidate]) -> None:
        """Find out what is known of some functions. Raises StoreCorrupt."""
        if self._changes is None:
            return
        from codebatch.operations.history.history_cache import GitError

        try:
            self._counted = self._changes.count(map(_place, candidates))
        except GitError as error:
            self._told = f"change frequency of functions unknown: {error}"
        if self._changes.is_cut:
            self._told = "change frequency of some functions unknown: git takes too long; the next query reads more"

    @property
    def is_cut(self) -> bool:
        """Whether git needs more time."""
        return self._changes is not None and self._changes.is_cut

    def describe_lack(self, shown: Iterable[HotspotCandidate]) -> str:
        """Return what is not known of functions, empty if nothing lacks or there is no history at all."""
        if self._told or self._changes is None or all(self.of(each) is not None for each in shown):
            return self._told
        if not self._is_whole:  # The history itself is incomplete, which is noted for files as well.
            return ""
        return "change frequency of some functions unknown: git cannot compare all versions of their files line by line"

    def of(self, candidate: HotspotCandidate) -> int | None:
        """Return the changes of a function, None if some may be unknown."""
        count = self._counted.get(_place(candidate))
        return count.known if count is not None and count.is_exact else None

    def least_of(self, candidate: HotspotCandidate) -> int:
        """Return how many changes of a function are known."""
        count = self._counted.get(_place(candidate))
        return 0 if count is None else count.known

    def keep(self) -> None:
        """Keep what was read for later questions."""
        if self._changes is not None:
            self._changes.keep()


def _place(candidate: HotspotCandidate) -> FunctionLocation:
    return FunctionLocation(candidate.path, candidate.symbol, candidate.line)


class _FunctionSearch(NamedTuple):
    """The search for the best functions. `rank` finds so many as if each had changed as often as its file."""

    rank: Callable[[int], Ranking]
    limit: int
    doubt: PartialParseCheck | None
    changes: _ChangesKnown

    def find(self) -> tuple[list[HotspotCandidate], _LeftOut]:
        """The best that are not doubtful, by their own changes, and how many stood before the last of them."""
        spare = self.limit + _SPARE
        while True:
            ranking = self.rank(spare)
            highest, beside = ranking.best()
            best, doubtful = self._best(ranking, highest)
            if len(highest) < spare or self._is_settled(best, highest[-1]):
                break
            spare *= 4
        before = [each for each, _ in beside if not self._is_settled(best, each)]
        before = [each for each in self._score(ranking, before) if not self._is_settled(best, each)]
        self.changes.read(best)
        apart = {_place(each): of for each, of in beside}
        left_out: _LeftOut = dict(Counter(apart[_place(each)] for each in before))
        if doubtful:
            left_out["doubtful"] = doubtful
        return best, left_out

    def _best(self, ranking: Ranking, highest: list[HotspotCandidate]) -> tuple[list[HotspotCandidate], int]:
        """The best of some candidates and how many before the last of them are doubtful, of few the own changes."""
        scored: list[HotspotCandidate] = []
        best: list[HotspotCandidate] = []
        doubtful = 0
        for start in range(0, len(highest), self.limit):
            if self._is_settled(best, highest[start]):
                break
            scored = sorted(scored + self._score(ranking, highest[start : start + self.limit]))
            best, doubtful = self._sound(scored)
        return best, doubtful

    def _is_settled(self, best: list[HotspotCandidate], candidate: HotspotCandidate) -> bool:
        """Whether a candidate, and all that rank below it, are none of the best."""
        return len(best) == self.limit and best[-1] <= candidate

    def _score(self, ranking: Ranking, candidates: list[HotspotCandidate]) -> list[HotspotCandidate]:
        """Rank candidates by their own changes, if changes count."""
        if ranking.by != "hotspot":
            return candidates
        self.changes.read(candidates)
        known, changes_of = ranking.known, self.changes.least_of
        return [each._replace(rank=-each.value * known.weight_of(each.path, changes_of(each))) for each in candidates]

    def _sound(self, candidates: Iterable[HotspotCandidate]) -> tuple[list[HotspotCandidate], int]:
        """The first that are not doubtful, and how many before the last of them are."""
        sound: list[HotspotCandidate] = []
        doubtful = 0
        for each in candidates:
            if self.doubt is not None and self.doubt.is_doubtful(each.path, each.symbol, each.line):
                doubtful += 1
            else:
                sound.append(each)
            if len(sound) == self.limit:
                break
        return sound, doubtful


def _files(
    records: BatchRecords, ranking: Ranking, metric: str, least: int, is_wanted: Callable[[bytes], bool]
) -> tuple[tuple[Hotspot, ...], _LeftOut]:
    from codebatch.query.answers.numbers import numbers_of_files

    by_metric = numbers_of_files(records, (*_OF_FILES, metric))
    of_rank = by_metric[metric]
    if ranking.by == "churn":
        of_rank = {path: ranking.known.changes_of(path) or 0 for path in of_rank}
    for path, value in of_rank.items():
        if value >= least and is_wanted(path):
            ranking.add(path, value)
    best, beside = ranking.best()

    def numbers(path: bytes) -> dict[str, int]:
        return {each: by_metric[each].get(path, 0) for each in _OF_FILES if each in by_metric}

    known = ranking.known
    rows = tuple(_hotspot(known, each, numbers(each.path), known.changes_of(each.path)) for each in best)
    return rows, dict(Counter(apart for _, apart in beside))


def _without_guesses(records: BatchRecords, kept: FileNumbers | None, rows: tuple[Hotspot, ...]) -> tuple[Hotspot, ...]:
    """Return hotspots with null or `dependents_partial` for files that may be used without an import of them."""
    if "parse" not in records.task_names:
        return rows
    of_kept = {} if kept is None else kept.languages
    found = []
    for each in rows:
        path = path_from_fields(each.path, each.path_b64)
        language = of_kept.get(path) or records.languages.get((each.path or None, each.path_b64 or None))
        if each.dependents is not None and not needs_import(language or "", path):
            unknown: dict[str, object] = {"dependents_partial": True} if each.dependents else {"dependents": None}
            found.append(msgspec.structs.replace(each, **unknown))
        else:
            found.append(each)
    return tuple(found)


def _hotspot(
    known: FilesKnown,
    found: HotspotCandidate,
    numbers: Mapping[str, int],
    changes: int | None,
    *,
    symbol: str | None = None,
    line: int = 1,
) -> Hotspot:
    path, path_b64 = path_fields(found.path)
    hotspot = Hotspot(
        path=path,
        path_b64=path_b64,
        symbol=UNSET if symbol is None else symbol,
        line=UNSET if symbol is None else line,
        score=round(-found.rank, 1),
        commits_per_year=changes,
        dependents=known.dependents_of(found.path),
    )
    return msgspec.structs.replace(hotspot, **numbers)


def _wanted(records: BatchRecords, path: Paths, languages: Collection[str]) -> Callable[[bytes], bool]:
    """Which files are asked for. Raises InvalidInput."""
    from codebatch.query.filters.paths import PathFilter

    paths = PathFilter(path)
    if not languages:
        return paths.matches if path else lambda _: True
    of = {_path_of(*key): language for key, language in records.languages.items()}
    refuse_unknown("language in the batch", languages, sorted(set(of.values())))
    return lambda each: of.get(each) in languages and paths.matches(each)


def _path_of(path: Json, path_b64: Json) -> bytes:
    from codebatch.query.filters.filters import path_bytes

    return path_bytes({"path": path} if path_b64 is None else {"path_b64": path_b64})
