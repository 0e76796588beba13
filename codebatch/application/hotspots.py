"""Where code is hard to change: how complex it is, how often that was met in the last year, and by how many.

A hotspot, after Tornhill ("Your Code as a Crime Scene"), is code that is complex and often changed: the product of the
two. Here it weighs more where more files depend on it. Few files have nearly all of the dependents (they go by a power
law), so these count by their logarithm, or one small file that all import would always be first:

    cognitive complexity x (1 + changes in the last year) x log2(2 + files that depend on it)

What is not known (no history, no `dependencies`) is 0 there, and told as null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType

from codebatch.application.asking import Answer, Question
from codebatch.errors import InvalidInput
from codebatch.model.entry import path_fields
from codebatch.model.task import Json
from codebatch.query.apart import Apart
from codebatch.query.arguments import refuse_below_one, refuse_unknown
from codebatch.query.hotspot_ranking import Candidate, FilesKnown, HotspotBy, Ranking, rank_functions

if TYPE_CHECKING:  # Who asks is told of a stale tree by another process, which is begun before these are imported.
    from codebatch.query.doubt import Doubt
    from codebatch.query.file_numbers import FileNumbers
    from codebatch.query.paths import Paths
    from codebatch.query.records import BatchRecords

__all__ = ["HOTSPOTS_MAX", "HOTSPOTS_SHOWN", "OF_FUNCTIONS", "Hotspot", "HotspotBy", "Hotspots", "hotspots"]

HOTSPOTS_SHOWN = 10
HOTSPOTS_MAX = 1_000
OF_FUNCTIONS: tuple[HotspotBy, ...] = ("hotspot", "cognitive", "complexity")
"""By what functions can be ranked; by the others files are."""
_METRIC = {"hotspot": "cognitive", "duplication": "duplicated_lines", "churn": "code"}
"""Of what it is asked who is ranked, where that is called otherwise."""
_DEPENDENTS = "dependents"
_OF_FILES = ("cognitive", "complexity", "code", "duplicated_lines")
_SPARE = 10
"""So many more are ranked, for some may show to be doubtful."""


class Hotspot(msgspec.Struct, frozen=True, kw_only=True):
    """A function of a file, or where there is no `symbol` a file, and how it stands.

    `score` is what it is ranked by. `changes` are those of its file in the year before the newest commit, null where
    there is no history; `dependents` the files that depend on its file directly, null where the batch does not know.
    Of a function with the number by which it is ranked alone; of a file with all.
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
    changes: int | None
    dependents: int | None


class Hotspots(msgspec.Struct, frozen=True, kw_only=True):
    """Hotspots, the hottest first, and how many stood before the last of them that were left out.

    `test`: tests, and what they are made with; `foreign`: vendored, generated or minified; `doubtful`: of a file that
    was parsed in part, where the function seems to take in what is not its own. `churn_told` says what is not known of
    the history, and is empty where nothing lacks.
    """

    rows: tuple[Hotspot, ...]
    left_out: Mapping[Apart | Literal["doubtful"], int]
    churn_told: str


def hotspots(
    question: Question,
    by: HotspotBy = "hotspot",
    *,
    files: bool = False,
    least: int = 1,
    limit: int = HOTSPOTS_SHOWN,
    path: Paths = "",
    languages: Collection[str] = (),
    everything: bool = False,
) -> Answer[Hotspots]:
    """The functions that are hardest to change, or the files: the first `limit` of those that have `least` or more.

    `least` is of the number by which they are ranked, of hotspots of the cognitive complexity. With `everything`
    nothing is left out. Raises InvalidInput or StoreCorrupt.
    """
    from codebatch.application.churn import churn
    from codebatch.query.completeness import completeness
    from codebatch.query.doubt import Doubt
    from codebatch.query.numbers import task_of

    refuse_unknown("ranking", (by,), get_args(HotspotBy))
    refuse_below_one(limit=limit, least=least)
    if limit > HOTSPOTS_MAX:
        raise InvalidInput(f"`limit` must be at most {HOTSPOTS_MAX:,}", hint="for all: codebatch query metrics")
    records, metric = question.records, _METRIC.get(by, by)
    for task in ("analyze", task_of(metric)):
        if task not in records.task_names:
            raise InvalidInput(f"the batch lacks {task!r}, by which that is ranked", hint="run the pipeline `full`")
    history = churn(question)
    if history.changes is None and by == "churn":
        raise InvalidInput(history.told)
    kept = question.find_numbers(are_made=True)
    dependents = _dependents(records, kept)
    known = FilesKnown(history.changes, dependents, None if everything else question.apart)
    is_wanted = _wanted(records, path, languages)
    is_of_files = files or by not in OF_FUNCTIONS
    if is_of_files:
        rows, left_out = _files(records, Ranking(by, known, limit), metric, least, is_wanted)
    else:
        doubt = None if everything else Doubt(records, None if kept is None else kept.in_part)
        greatest = None if kept is None else kept.of(f"max_{metric}")
        rank = partial(rank_functions, records, metric, least, is_wanted, greatest)
        best, left_out = _functions(lambda spare: rank(partial(Ranking, by, known, spare)), limit, doubt)
        rows = tuple(_hotspot(known, each, {metric: each.value}, symbol=each.symbol, line=each.line) for each in best)
    found = Hotspots(rows=rows, left_out=left_out, churn_told=history.told)
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
    from codebatch.query.completeness import completeness
    from codebatch.query.numbers import numbers_of_files

    if not completeness(records, records.plan.needed_for("dependencies")).is_complete:
        return None
    return numbers_of_files(records, (_DEPENDENTS,))[_DEPENDENTS]


_LeftOut = dict[Apart | Literal["doubtful"], int]


def _functions(rank: Callable[[int], Ranking], limit: int, doubt: Doubt | None) -> tuple[list[Candidate], _LeftOut]:
    """The best that are not doubtful; `rank` finds so many."""
    spare = limit + _SPARE
    while True:
        best, beside = rank(spare).best()
        sound: list[Candidate] = []
        doubtful = 0
        for each in best:
            if doubt is not None and doubt.is_doubtful(each.path, each.symbol, each.line):
                doubtful += 1
            else:
                sound.append(each)
            if len(sound) == limit:
                break
        if len(sound) == limit or len(best) < spare:
            break
        spare *= 4
    before = beside if len(sound) < limit else [each for each in beside if each[0] < sound[-1]]
    left_out: _LeftOut = dict(Counter(apart for _, apart in before))
    if doubtful:
        left_out["doubtful"] = doubtful
    return sound, left_out


def _files(
    records: BatchRecords, ranking: Ranking, metric: str, least: int, is_wanted: Callable[[bytes], bool]
) -> tuple[tuple[Hotspot, ...], _LeftOut]:
    from codebatch.query.numbers import numbers_of_files

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

    rows = tuple(_hotspot(ranking.known, each, numbers(each.path)) for each in best)
    return rows, dict(Counter(apart for _, apart in beside))


def _hotspot(
    known: FilesKnown, found: Candidate, numbers: Mapping[str, int], *, symbol: str | None = None, line: int = 1
) -> Hotspot:
    path, path_b64 = path_fields(found.path)
    return Hotspot(
        path=path,
        path_b64=path_b64,
        symbol=UNSET if symbol is None else symbol,
        line=UNSET if symbol is None else line,
        score=round(-found.rank, 1),
        changes=known.changes_of(found.path),
        dependents=known.dependents_of(found.path),
        **numbers,
    )


def _wanted(records: BatchRecords, path: Paths, languages: Collection[str]) -> Callable[[bytes], bool]:
    """Which files are asked for. Raises InvalidInput."""
    from codebatch.query.paths import PathFilter

    paths = PathFilter(path)
    if not languages:
        return paths.matches if path else lambda _: True
    of = {_path_of(*key): language for key, language in records.languages.items()}
    refuse_unknown("language in the batch", languages, sorted(set(of.values())))
    return lambda each: of.get(each) in languages and paths.matches(each)


def _path_of(path: Json, path_b64: Json) -> bytes:
    from codebatch.query.filters import path_bytes

    return path_bytes({"path": path} if path_b64 is None else {"path_b64": path_b64})
