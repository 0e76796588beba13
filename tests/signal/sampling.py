"""The sample of findings that are judged: which of them, follows from the seed and the stores alone."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

import codebatch
from codebatch import Batch

SEED = 20
# One finding decides nothing.
JUDGED_MIN = 2
# What this is of is a state of the file, and says nothing of the code.
NO_RULES = frozenset({"partial-parse"})
FINDINGS_OF_A_RULE_MAX = 30
# The rules that find most, in the trees of the first turn or in all together.
FREQUENT = 40
# Of a rule of which there are fewer, the trees of the next turn are asked for as many as to have the second number;
# those from the fourth on for as many as any may have, if the rule is frequent.
ENOUGH = ((JUDGED_MIN, FINDINGS_OF_A_RULE_MAX), (5, 5), (5, 5), (5, 5), (5, 5))
FREQUENT_FROM_TURN = 4


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of a tree. Its `order` is as good as random, and the same whenever it is asked for."""

    tree: str
    version: str
    path: str
    line: int
    code: str
    severity: str
    message: str

    @property
    def order(self) -> str:
        place = f"{SEED}\0{self.tree}\0{self.path}\0{self.line}\0{self.code}"
        return hashlib.sha256(place.encode("utf-8", "surrogateescape")).hexdigest()


def findings_of(batch: Batch, tree: str, version: str) -> Iterator[Finding]:
    """Every diagnostic of a batch, those of files whose names are no UTF-8 left out."""
    for found in batch.diagnostics():
        if isinstance(found.path, str):
            yield Finding(
                tree=tree,
                version=version,
                path=found.path,
                line=found.line,
                code=found.code,
                severity=found.severity,
                message=found.message,
            )


def latest_of(store: Path) -> Batch:
    """The latest batch of a store, whole or not: `run --task lint` is enough to judge by."""
    return codebatch.open(store).batch(partial=True)


def sample(findings: Iterable[Finding], *later: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Of each rule the findings to judge, the most frequent rule first.

    Trees take turns, so that none decides alone; of one file a second finding comes when others have had their first.
    Those that come `later` are for rules of which there are too few by then.
    """
    turns = [_by_code(each) for each in (findings, *later)]
    ranked = _ranked(turns)
    frequent = frozenset((*_ranked(turns[:1])[:FREQUENT], *ranked[:FREQUENT]))
    drawn = {code: _sample_of_rule(each) for code, each in turns[0].items()}
    for number, ((enough, most), more) in enumerate(zip(ENOUGH, turns[1:], strict=False), 2):
        for code, each in more.items():
            before = drawn.get(code, [])
            if number >= FREQUENT_FROM_TURN and code in frequent:
                drawn[code] = [*before, *_sample_of_rule(each)][:FINDINGS_OF_A_RULE_MAX]
            elif len(before) < enough:
                drawn[code] = [*before, *_sample_of_rule(each)][:most]
    return {code: drawn[code] for code in ranked if code in drawn}


def _ranked(turns: Sequence[Mapping[str, Sequence[Finding]]]) -> list[str]:
    """The rules, the most frequent first."""
    counts: Counter[str] = Counter()
    for turn in turns:
        counts.update({code: len(each) for code, each in turn.items()})
    return sorted(counts, key=lambda code: (-counts[code], code))


def _by_code(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    by_code: dict[str, list[Finding]] = defaultdict(list)
    for found in findings:
        if found.code not in NO_RULES:
            by_code[found.code].append(found)
    return by_code


def _sample_of_rule(findings: Sequence[Finding]) -> list[Finding]:
    in_file: Counter[tuple[str, str]] = Counter()
    turns: list[tuple[int, Finding]] = []
    for found in sorted(findings, key=lambda each: each.order):
        turns.append((in_file[found.tree, found.path], found))
        in_file[found.tree, found.path] += 1
    turns.sort(key=lambda turn: (turn[0], turn[1].order))
    in_tree: Counter[str] = Counter()
    ranked: list[tuple[int, str, Finding]] = []
    for _, found in turns:
        ranked.append((in_tree[found.tree], found.order, found))
        in_tree[found.tree] += 1
    ranked.sort(key=lambda each: each[:2])
    return [found for _, _, found in ranked[:FINDINGS_OF_A_RULE_MAX]]
