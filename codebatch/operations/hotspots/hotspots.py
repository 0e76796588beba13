"""Hotspots: code that is hard to change, ranked by complexity, change frequency and number of dependents.

Tornhill ("Your Code as a Crime Scene") defines a hotspot by the product of complexity and change frequency. Here the
number of dependents is a third factor. It follows a power law, so its logarithm is used. Otherwise a small file that
all files import would always be first:

    cognitive complexity x (1 + changes in the last year) x log2(2 + files that depend on it)

Changes of a function are counted only in the lines of the function, not in its whole file (function_changes.py). A
value that is unknown, for example without history, counts as 0 in the product and is null in answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.errors import InvalidInput
from codebatch.model.entry import PathMembers, path_fields
from codebatch.operations.queries.batch_query import Answer, BatchQuery
from codebatch.query.answers.dependent_counts import DependentCounts, count_dependents
from codebatch.query.answers.function_lines import FunctionLocation
from codebatch.query.answers.hotspot_ranking import FileFacts, HotspotBy, HotspotCandidate, HotspotRanking
from codebatch.query.answers.known_dependents import has_all_dependents, unparsed_languages
from codebatch.query.answers.numbers import MetricValue, iter_functions, metric_task, read_file_metrics
from codebatch.query.answers.partial_parses import PartialParseCheck
from codebatch.query.completeness import tasks_completeness
from codebatch.query.filters.arguments import refuse_numbers_below_one, refuse_unknown
from codebatch.query.filters.paths import PathPatterns
from codebatch.query.missing_tasks import task_not_run_error
from codebatch.query.secondary_files import SecondaryCategory
from codebatch.query.sources.file_selection import make_file_predicate
from codebatch.query.sources.records import BatchRecords

if TYPE_CHECKING:  # Deferred: the headline of a run imports this module and needs no history.
    from codebatch.operations.history.function_history import ChangeCount
    from codebatch.operations.hotspots.churn import FileChurn

__all__ = ["FUNCTION_RANKINGS", "HOTSPOTS_MAX", "HOTSPOTS_SHOWN", "Hotspot", "HotspotBy", "Hotspots", "find_hotspots"]

HOTSPOTS_SHOWN = 10
FUNCTION_METRIC_MIN = 10
"""Default minimum complexity of functions in a ranking. McCabe proposed this value."""
HOTSPOTS_MAX = 1_000
FUNCTION_RANKINGS: tuple[HotspotBy, ...] = ("hotspot", "cognitive", "complexity")
"""Rankings of functions. All other rankings are of files."""
_METRIC_BY_RANKING = {"hotspot": "cognitive", "duplication": "duplicated_lines", "churn": "code"}
"""Rankings whose name is not the name of the metric that they need, with this metric."""
_FILE_METRICS_SHOWN = ("cognitive", "complexity", "code", "duplicated_lines")
_ADDITIONAL_CANDIDATES = 20
"""Number of additional candidates to read. Some are excluded later, as doubtful or because they rarely changed."""


class Hotspot(PathMembers, frozen=True, kw_only=True):
    """A function or, if `symbol` is not set, a file, with its metrics.

    - `score`: the value that determines the rank.
    - `commits_per_year`: the number of commits that changed the function or file in the year before the newest commit,
      or None if unknown.
    - `dependents`: the number of files that depend on the file, directly or indirectly, or None if unknown.

    For a function, only the metric that determines its rank is set. For a file, all metrics are set.
    """

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
    of the history has been read so far. The next query reads more.
    """

    rows: tuple[Hotspot, ...]
    excluded: Mapping[SecondaryCategory | Literal["doubtful"], int]
    churn_note: str
    is_history_cut: bool = False


def find_hotspots(
    question: BatchQuery,
    by: HotspotBy = "hotspot",
    *,
    files: bool = False,
    least: int | None = None,
    limit: int = HOTSPOTS_SHOWN,
    path: PathPatterns = "",
    languages: Collection[str] = (),
    everything: bool = False,
) -> Answer[Hotspots]:
    """Return the functions or files that are hardest to change: at most `limit` rows, highest score first.

    Rows need a metric of at least `least`; for hotspots the metric is cognitive complexity. The default is
    FUNCTION_LEAST for functions and 1 for files. With `everything`, nothing is excluded. Raises InvalidInput or
    StoreCorrupt.
    """
    from codebatch.operations.hotspots.churn import read_churn

    refuse_unknown("ranking", (by,), get_args(HotspotBy))
    is_of_files = files or by not in FUNCTION_RANKINGS
    least = (1 if is_of_files else FUNCTION_METRIC_MIN) if least is None else least
    refuse_numbers_below_one(limit=limit, least=least)
    if limit > HOTSPOTS_MAX:
        raise InvalidInput(f"`limit` must be at most {HOTSPOTS_MAX:,}", hint="see: codebatch query metrics")
    records, metric = question.records, _METRIC_BY_RANKING.get(by, by)
    for task in ("analyze", metric_task(metric)):
        if task not in records.task_names:
            raise task_not_run_error(
                f"the batch has no results of the task {task!r}, which this ranking needs", (task,)
            )
    history = read_churn(question)
    if history.changes is None and by == "churn":
        raise InvalidInput(history.note)
    dependents = _count_dependents(records)
    known = FileFacts(
        changes=history.changes,
        dependents=None if dependents is None else dependents.by_path,
        secondary_files=None if everything else question.secondary_files,
    )
    is_wanted = make_file_predicate(records, path, languages)
    note, is_cut = history.note, history.is_cut
    if is_of_files:
        rows, excluded = _rank_files(records, HotspotRanking(by, known, limit), metric, least, is_wanted)
    else:
        doubt = None if everything else PartialParseCheck(records)
        functions = [number for number in iter_functions(records, metric, least) if is_wanted(number.path_bytes)]
        changes = _FunctionChangeCounts(question, history)
        search = _FunctionSearch(partial(_rank_functions, functions, by, known), limit, doubt, changes)
        best, excluded = search.find()
        changes.save()
        note = ", ".join(filter(None, (note, changes.describe_missing_history(best))))
        is_cut |= changes.is_cut
        rows = tuple(
            _make_hotspot(known, row, {metric: row.value}, changes.change_count(row), symbol=row.symbol, line=row.line)
            for row in best
        )
    result = Hotspots(
        rows=_mark_minimums(records, rows, are_minimums=dependents is not None and dependents.are_minimums),
        excluded=excluded,
        churn_note=note,
        is_history_cut=is_cut,
    )
    needed = {"analyze", "parse", "dependencies", *(["duplicates"] if is_of_files else [])} & {*records.task_names}
    if not records.source.is_done:
        needed = set().union(*map(records.plan.needed_for, needed))
    answer_completeness = tasks_completeness(records, needed, path=path, lacks_files=bool(question.batch.about.paths))
    return Answer(question=question, result=result, completeness=answer_completeness)


def _count_dependents(records: BatchRecords) -> DependentCounts | None:
    """Return the number of files that depend on each file. None if results of `dependencies` are missing."""
    if "dependencies" not in records.task_names or records.batch.about.paths:
        return None
    if not tasks_completeness(records, records.plan.needed_for("dependencies")).is_complete:
        return None
    return count_dependents(records)


_ExcludedCounts = dict[SecondaryCategory | Literal["doubtful"], int]


class _FunctionChangeCounts:
    """The number of changes of each function whose history was read with `read`."""

    def __init__(self, question: BatchQuery, history: FileChurn) -> None:
        from codebatch.operations.hotspots.function_changes import FunctionChanges

        self._changes = None if history.history is None else FunctionChanges(question, history.history)
        self._is_whole = history.history is not None and history.history.is_complete
        self._task_names = question.records.task_names
        self._counts: Mapping[FunctionLocation, ChangeCount] = {}
        self._note = ""

    def read(self, candidates: Iterable[HotspotCandidate]) -> None:
        """Count the changes of some functions, for `change_count` and `known_change_count`. Raises StoreCorrupt."""
        if self._changes is None:
            return
        from codebatch.operations.history.history_cache import GitError

        try:
            self._counts = self._changes.count(map(_function_location, candidates))
        except GitError as error:
            self._note = f"change frequency of functions unknown: {error}"
        if self._changes.is_cut:
            self._note = "change frequency of some functions unknown: git takes too long; the next query reads more"

    @property
    def is_cut(self) -> bool:
        """Whether git exceeded its time limit, so that some counts are not exact."""
        return self._changes is not None and self._changes.is_cut

    def describe_missing_history(self, candidates: Iterable[HotspotCandidate]) -> str:
        """Return why change counts of functions are unknown, or "" if all are known or another note has the reason."""
        if (
            self._note
            or self._changes is None
            or all(self.change_count(candidate) is not None for candidate in candidates)
        ):
            return self._note
        if not self._is_whole:  # Another note reports that the history is incomplete.
            return ""
        reason = "git cannot compare all versions of their files line by line"
        if self._changes.has_unknown_ends:
            files = "" if "symbols" not in self._task_names else " for their files"
            reason = f"the batch has no results of the task symbols{files}"
        return f"change frequency of some functions unknown: {reason}"

    def change_count(self, candidate: HotspotCandidate) -> int | None:
        """Return the exact number of changes of a function, or None if the exact number is unknown."""
        count = self._counts.get(_function_location(candidate))
        return count.known if count is not None and count.is_exact else None

    def known_change_count(self, candidate: HotspotCandidate) -> int:
        """Return the number of changes of a function that were found so far. The exact number can be higher."""
        count = self._counts.get(_function_location(candidate))
        return 0 if count is None else count.known

    def save(self) -> None:
        """Save the history that was read for later queries."""
        if self._changes is not None:
            self._changes.save()


def _rank_functions(functions: Iterable[MetricValue], by: HotspotBy, known: FileFacts, limit: int) -> HotspotRanking:
    ranking = HotspotRanking(by, known, limit)
    for function in functions:
        ranking.add(function.path_bytes, function.value, function.symbol, function.line)
    return ranking


def _function_location(candidate: HotspotCandidate) -> FunctionLocation:
    return FunctionLocation(candidate.path, candidate.symbol, candidate.line)


class _FunctionSearch(NamedTuple):
    """A search for the best functions. `rank(n)` returns n candidates, ranked by the changes of their files."""

    rank: Callable[[int], HotspotRanking]
    limit: int
    partial_parse_check: PartialParseCheck | None
    changes: _FunctionChangeCounts

    def find(self) -> tuple[list[HotspotCandidate], _ExcludedCounts]:
        """Return the best functions, and how many excluded functions rank before the last of them, by category."""
        spare = self.limit + _ADDITIONAL_CANDIDATES
        while True:
            ranking = self.rank(spare)
            highest, excluded = ranking.best_candidates()
            best, doubtful = self._best_candidates(ranking, highest)
            if len(highest) < spare or self._is_settled(best, highest[-1]):
                break
            spare *= 4
        preceding = [candidate for candidate, _ in excluded if not self._is_settled(best, candidate)]
        preceding = [
            candidate
            for candidate in self._rank_by_own_changes(ranking, preceding)
            if not self._is_settled(best, candidate)
        ]
        self.changes.read(best)
        categories = {_function_location(candidate): category for candidate, category in excluded}
        excluded_counts: _ExcludedCounts = dict(
            Counter(categories[_function_location(candidate)] for candidate in preceding)
        )
        if doubtful:
            excluded_counts["doubtful"] = doubtful
        return best, excluded_counts

    def _best_candidates(
        self, ranking: HotspotRanking, highest: list[HotspotCandidate]
    ) -> tuple[list[HotspotCandidate], int]:
        """Return the best candidates, ranked by their own changes, and the number of doubtful ones before the last.

        `highest` is ranked by changes of files, an upper bound. So changes are counted only while they may matter.
        """
        scored: list[HotspotCandidate] = []
        best: list[HotspotCandidate] = []
        doubtful = 0
        for start in range(0, len(highest), self.limit):
            if self._is_settled(best, highest[start]):
                break
            scored = sorted(scored + self._rank_by_own_changes(ranking, highest[start : start + self.limit]))
            best, doubtful = self._exclude_doubtful(scored)
        return best, doubtful

    def _is_settled(self, best: list[HotspotCandidate], candidate: HotspotCandidate) -> bool:
        """Return whether `best` is full, and neither a candidate nor any candidate ranked after it can enter it."""
        return len(best) == self.limit and best[-1] <= candidate

    def _rank_by_own_changes(
        self, ranking: HotspotRanking, candidates: list[HotspotCandidate]
    ) -> list[HotspotCandidate]:
        """Rank candidates for `hotspot` by their own changes, not those of their files. Ignore other rankings."""
        if ranking.ranking_metric != "hotspot":
            return candidates
        self.changes.read(candidates)
        known, changes_of = ranking.file_facts, self.changes.known_change_count
        return [
            candidate._replace(rank=-candidate.value * known.complexity_weight(candidate.path, changes_of(candidate)))
            for candidate in candidates
        ]

    def _exclude_doubtful(self, candidates: Iterable[HotspotCandidate]) -> tuple[list[HotspotCandidate], int]:
        """Return the first candidates that are not doubtful, and the number of doubtful ones among them."""
        certain: list[HotspotCandidate] = []
        doubtful = 0
        for candidate in candidates:
            if self.partial_parse_check is not None and self.partial_parse_check.is_doubtful(
                candidate.path, candidate.symbol, candidate.line
            ):
                doubtful += 1
            else:
                certain.append(candidate)
            if len(certain) == self.limit:
                break
        return certain, doubtful


def _rank_files(
    records: BatchRecords, ranking: HotspotRanking, metric: str, least: int, is_wanted: Callable[[bytes], bool]
) -> tuple[tuple[Hotspot, ...], _ExcludedCounts]:

    by_metric = read_file_metrics(records, (*_FILE_METRICS_SHOWN, metric))
    values: Mapping[bytes, int] = by_metric[metric]
    if ranking.ranking_metric == "churn":
        values = {path: ranking.file_facts.change_count(path) or 0 for path in values}
    elif ranking.ranking_metric == "dependents":
        values = ranking.file_facts.dependents or {}
    for path, value in values.items():
        if value >= least and is_wanted(path):
            ranking.add(path, value)
    best, excluded = ranking.best_candidates()

    def numbers(path: bytes) -> dict[str, int]:
        return {name: by_metric[name].get(path, 0) for name in _FILE_METRICS_SHOWN if name in by_metric}

    known = ranking.file_facts
    rows = tuple(_make_hotspot(known, row, numbers(row.path), known.change_count(row.path)) for row in best)
    return rows, dict(Counter(category for _, category in excluded))


def _mark_minimums(records: BatchRecords, rows: tuple[Hotspot, ...], *, are_minimums: bool) -> tuple[Hotspot, ...]:
    """Return the hotspots with corrected `dependents`.

    If `are_minimums` is set, or a file can be used in another way, the number is only a lower bound. A lower bound
    of 0 is replaced with None. Otherwise `dependents_partial` is set.
    """
    if "parse" not in records.task_names:
        return rows
    result = []
    unparsed = unparsed_languages(records.files)
    for hotspot in rows:
        language = records.languages.get((hotspot.path or None, hotspot.path_b64 or None), "")
        if hotspot.dependents is not None and (are_minimums or not has_all_dependents(language, unparsed)):
            unknown: dict[str, object] = {"dependents_partial": True} if hotspot.dependents else {"dependents": None}
            result.append(msgspec.structs.replace(hotspot, **unknown))
        else:
            result.append(hotspot)
    return tuple(result)


def _make_hotspot(
    known: FileFacts,
    candidate: HotspotCandidate,
    numbers: Mapping[str, int],
    changes: int | None,
    *,
    symbol: str | None = None,
    line: int = 1,
) -> Hotspot:
    path, path_b64 = path_fields(candidate.path)
    hotspot = Hotspot(
        path=path,
        path_b64=path_b64,
        symbol=UNSET if symbol is None else symbol,
        line=UNSET if symbol is None else line,
        score=round(-candidate.rank, 1),
        commits_per_year=changes,
        dependents=known.dependent_count(candidate.path),
    )
    return msgspec.structs.replace(hotspot, **numbers)
