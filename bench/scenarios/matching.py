"""Matching of the findings of two commits that are hundreds of commits apart: our algorithm compared with others."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import codebatch
from bench.histories import History, LineMap
from bench.matchers import Found, Matches, Sides, by_github, by_place, by_sonarqube
from bench.measuring import Side, alternate
from bench.rows import Row, SkippedRow, Target, figure_row, pair_row
from bench.setting import Setting, answer, without
from codebatch.compare.batches import differing_records
from codebatch.compare.matching.finding_pairs import ReportedFinding, match_findings
from codebatch.compare.matching.trees import TreeComparison
from codebatch.model.record import Diagnostic
from codebatch.operations.api.batch import Batch

_SOURCE = "issue 15"
_CPU = 6
# Limits in percent of the untouched findings.
_FALSE_NEW, _MISPAIRED, _HIDDEN_NEW = 0.02, 0.01, 0.02

# As many findings as possible: all rules of ruff, and every call in other languages.
_RUFF = '[lint]\nselect = ["ALL"]\n'
_CONFIGURATION = """
[tasks.lint]
on = ["todo-comment", "trailing-whitespace", "unused-import", "unused-variable", "shadowed-name", "mixed-indentation"]
[tasks.lint.ruff]
config = "project"
"""
_CALLS = {
    "c": "(call_expression function: (identifier) @name) @report",
    "javascript": "(call_expression function: (_) @name) @report",
    "typescript": "(call_expression function: (_) @name) @report",
    "tsx": "(call_expression function: (_) @name) @report",
    "java": "(method_invocation name: (identifier) @name) @report",
    "rust": "(call_expression function: (_) @name) @report",
    "go": "(call_expression function: (_) @name) @report",
}


class Score(NamedTuple):
    """The errors of a matching algorithm, in findings."""

    untouched: int
    false_new: int
    mispaired: int
    hidden_new: int
    new: int


def matching(setting: Setting) -> Iterator[Row]:
    """Count untouched findings that are called new or matched wrongly, and new findings that are called old."""
    if not setting.histories:
        yield SkippedRow(scenario="matching", what="findings", why="no --history was given")
    for history in setting.histories:
        tree, store = setting.scratch / "tree", setting.scratch / "store"
        try:
            for commit in (history.old, history.new):
                _run(setting, history, commit, tree, store, _with_all_rules())
            yield from _rows_for_history(history, store)
            yield _cost(setting, history, store, "cost, all rules")
            without(store)()
            for commit in (history.old, history.new):
                _run(setting, history, commit, tree, store, {})
            yield _cost(setting, history, store, "cost, our rules")
        finally:
            without(tree)()
            without(store)()


def _with_all_rules() -> dict[str, str]:
    rules = [
        f'[[tasks.lint.rules]]\nid = "call-{language}"\nlanguage = "{language}"\nquery = \'{query}\'\n'
        f'message = "calls {{name}}"\n'
        for language, query in _CALLS.items()
    ]
    return {".ruff.toml": _RUFF, "codebatch.toml": _CONFIGURATION + "".join(rules)}


def _run(
    setting: Setting, history: History, commit: str, tree: Path, store: Path, configuration: Mapping[str, str]
) -> None:
    shutil.rmtree(tree, ignore_errors=True)
    (tree / ".git").mkdir(parents=True)
    history.write_tree(commit, tree)
    for name, text in configuration.items():
        (tree / name).write_text(text)
    without(tree / ".codebatch")()
    side = setting.codebatch("run", "run", ".", "--store", store, "--quiet")
    answer(Side(name=side.name, command=["sh", "-c", '"$@" || [ $? = 3 ]', "-", *side.command], cwd=tree))


def _rows_for_history(history: History, store: Path) -> Iterator[Row]:
    lines = LineMap(answer(_git(history, "histogram")), answer(_git(history, "myers")))
    with codebatch.open(store) as opened:
        old, new = opened.batch("latest~1", partial=True), opened.batch("latest", partial=True)
        sides, ours = _compared(old, new)
    matches_by_algorithm = {
        "ours": ours,
        "GitHub's": by_github(sides),
        "SonarQube's": by_sonarqube(sides, lines),
        "path, rule, line": by_place(sides),
    }
    truth = _truth(sides, lines)
    for name, matches in matches_by_algorithm.items():
        score = _score(sides, lines, truth, matches)
        counts = f"{len(sides.old):,} findings, then {len(sides.new):,}; {score.untouched:,} untouched"
        for what, wrong, limit in (
            ("false new", score.false_new, _FALSE_NEW),
            ("mispaired", score.mispaired, _MISPAIRED),
            ("hidden new", score.hidden_new, _HIDDEN_NEW),
        ):
            target = Target(limit=limit, source=_SOURCE) if name == "ours" else None
            yield figure_row(
                "matching", f"{name}: {what}", history.name, [100 * wrong / max(score.untouched, 1)], "%",
                target=target, note=f"{wrong:,} of {counts}; {score.new:,} called new",
            )  # fmt: skip


def _cost(setting: Setting, history: History, store: Path, what: str) -> Row:
    side = setting.codebatch("diff", "diff", "--store", store, "--quiet")
    command = ["sh", "-c", '"$@" || [ $? = 3 ]', "-", *side.command]
    diff = _git(history, "histogram")
    turns = alternate([Side(name="codebatch diff", command=command, cwd=side.cwd), diff], setting.runs)
    return pair_row(
        "matching", what, history.name, ours=("codebatch diff", turns[0]), theirs=(diff.name, turns[1]), by="cpu",
        target=Target(limit=_CPU, source=_SOURCE),
    )  # fmt: skip


def _git(history: History, algorithm: Literal["histogram", "myers"]) -> Side:
    return Side(name=f"git diff -M --{algorithm}", command=history.diff(algorithm))


def _compared(old: Batch, new: Batch) -> tuple[Sides, Matches]:
    """Return all findings of both batches, and the matches.

    Matches are the findings that both batches report alike at one path, and those that `match_findings` pairs.
    """
    trees = TreeComparison(old.question.records, new.question.records)
    differing: tuple[dict[bytes, list[ReportedFinding]], dict[bytes, list[ReportedFinding]]] = (
        defaultdict(list),
        defaultdict(list),
    )
    for task in trees.new.task_names:
        for side, by_path in zip(differing, differing_records(trees.old, trees.new, task, Diagnostic), strict=True):
            for path, abouts in by_path.items():
                side[path] += [ReportedFinding(path, task, about) for about in abouts]
    paired = match_findings(trees, *differing)
    every = [sorted(map(_found, batch.diagnostics())) for batch in (old, new)]
    numbers = [_numbers(by_path) for by_path in every]
    matches = {}
    for pair in paired.pairs:
        matches[numbers[1][_found(pair.new.about)].pop()] = numbers[0][_found(pair.old.about)].pop()
    unpaired = [Counter(map(_found, (finding.about for finding in side))) for side in (paired.old, paired.new)]
    for finding, places in numbers[1].items():
        old_places = numbers[0].get(finding, [])
        for _ in range(unpaired[1][finding]):
            places.pop()
        for _ in range(unpaired[0][finding]):
            old_places.pop()
        while places and old_places:
            matches[places.pop()] = old_places.pop()
    contents = [_contents(trees, side, every[side]) for side in (0, 1)]
    return Sides(every[0], every[1], *contents), matches


def _numbers(every: Sequence[Found]) -> dict[Found, list[int]]:
    numbers: dict[Found, list[int]] = defaultdict(list)
    for number in reversed(range(len(every))):
        numbers[every[number]].append(number)
    return numbers


def _found(about: Diagnostic) -> Found:
    return Found(about.path_bytes, about.line, about.column, about.tool, about.code, about.message)


def _contents(trees: TreeComparison, side: int, every: Sequence[Found]) -> dict[bytes, bytes]:
    paths = {finding.path for finding in every}
    return {path: trees.content("new" if side else "old", path) or b"" for path in paths}


def _truth(sides: Sides, lines: LineMap) -> Matches:
    """Match findings with equal rule and column on an untouched line. Prefer equal messages, then the order."""
    old_by_place: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for number in reversed(range(len(sides.old))):
        finding = sides.old[number]
        place = lines.place(finding.path, finding.line)
        if place is not None:
            old_by_place[place, finding.rule, finding.column].append(number)
    matches: Matches = {}
    for number, finding in enumerate(sides.new):
        candidates = old_by_place.get(((finding.path, finding.line), finding.rule, finding.column))
        if candidates:
            same = [candidate for candidate in candidates if sides.old[candidate].message == finding.message]
            matches[number] = same[-1] if same else candidates[-1]
            candidates.remove(matches[number])
    return matches


def _score(sides: Sides, lines: LineMap, truth: Matches, matches: Matches) -> Score:
    known = {*truth.values()}
    old_rule_places = {
        (finding.rule, place) for finding in sides.old if (place := lines.place(finding.path, finding.line))
    }
    untouched = {
        place
        for path, line in {(finding.path, finding.line) for finding in sides.old}
        if (place := lines.place(path, line))
    }
    false_new = mispaired = hidden = 0
    for number, finding in enumerate(sides.new):
        match = matches.get(number)
        if number in truth:
            false_new += match is None
            mispaired += match is not None and not _are_alike(sides, match, truth[number])
        elif match is not None:
            place = (finding.path, finding.line)
            hidden += match in known or (place in untouched and (finding.rule, place) not in old_rule_places)
    return Score(len(truth), false_new, mispaired, hidden, len(sides.new) - len(matches))


def _are_alike(sides: Sides, one: int, other: int) -> bool:
    return sides.old[one][:5] == sides.old[other][:5]
