"""The sample of findings to judge, determined by the seed and the stores alone."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

import codebatch
from codebatch import Batch

SEED = 20
# A single finding is not enough for a verdict about a rule.
JUDGED_MIN = 2
# Findings of these rules are about the state of a file, not about its code.
NO_RULES = frozenset({"partial-parse"})
FINDINGS_OF_A_RULE_MAX = 30
# The number of rules that count as frequent: those with the most findings in the first turn, or in all turns together.
FREQUENT = 40
# Two numbers for each turn after the first. If a rule has fewer findings than the first number, its findings are drawn
# from the turn's trees up to the second number. From the fourth turn on, findings of frequent rules are drawn up to
# FINDINGS_OF_A_RULE_MAX.
ENOUGH = ((JUDGED_MIN, FINDINGS_OF_A_RULE_MAX), (5, 5), (5, 5), (5, 5), (5, 5))
FREQUENT_FROM_TURN = 4


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of a tree. Its `order` is pseudorandom and always the same."""

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
    """Yield every diagnostic of a batch, except those of files whose names are not UTF-8."""
    for diagnostic in batch.diagnostics():
        if isinstance(diagnostic.path, str):
            yield Finding(
                tree=tree,
                version=version,
                path=diagnostic.path,
                line=diagnostic.line,
                code=diagnostic.code,
                severity=diagnostic.severity,
                message=diagnostic.message,
            )


def latest_of(store: Path) -> Batch:
    """Return the latest batch of a store, complete or not: `run --task lint` is enough to judge findings."""
    return codebatch.open(store).batch(partial=True)


def sample(findings: Iterable[Finding], *later: Iterable[Finding]) -> dict[str, list[Finding]]:
    """Return the findings to judge for each rule, the most frequent rule first.

    Trees alternate, so that no tree dominates. A second finding of a file is drawn only after each other file has had
    one. The findings in `later` are for rules that have too few by then.
    """
    turns = [_by_code(findings_of_turn) for findings_of_turn in (findings, *later)]
    ranked = _ranked_rules(turns)
    frequent = frozenset((*_ranked_rules(turns[:1])[:FREQUENT], *ranked[:FREQUENT]))
    drawn = {code: _sample_of_rule(findings_of_turn) for code, findings_of_turn in turns[0].items()}
    for number, ((enough, most), more) in enumerate(zip(ENOUGH, turns[1:], strict=False), 2):
        for code, findings_of_turn in more.items():
            before = drawn.get(code, [])
            if number >= FREQUENT_FROM_TURN and code in frequent:
                drawn[code] = [*before, *_sample_of_rule(findings_of_turn)][:FINDINGS_OF_A_RULE_MAX]
            elif len(before) < enough:
                drawn[code] = [*before, *_sample_of_rule(findings_of_turn)][:most]
    return {code: drawn[code] for code in ranked if code in drawn}


def _ranked_rules(turns: Sequence[Mapping[str, Sequence[Finding]]]) -> list[str]:
    """Return the rules, the most frequent first."""
    counts: Counter[str] = Counter()
    for turn in turns:
        counts.update({code: len(each) for code, each in turn.items()})
    return sorted(counts, key=lambda code: (-counts[code], code))


def _by_code(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    by_code: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.code not in NO_RULES:
            by_code[finding.code].append(finding)
    return by_code


def _sample_of_rule(findings: Sequence[Finding]) -> list[Finding]:
    in_file: Counter[tuple[str, str]] = Counter()
    turns: list[tuple[int, Finding]] = []
    for finding in sorted(findings, key=lambda finding: finding.order):
        turns.append((in_file[finding.tree, finding.path], finding))
        in_file[finding.tree, finding.path] += 1
    turns.sort(key=lambda turn: (turn[0], turn[1].order))
    in_tree: Counter[str] = Counter()
    ranked: list[tuple[int, str, Finding]] = []
    for _, finding in turns:
        ranked.append((in_tree[finding.tree], finding.order, finding))
        in_tree[finding.tree] += 1
    ranked.sort(key=lambda entry: entry[:2])
    return [finding for _, _, finding in ranked[:FINDINGS_OF_A_RULE_MAX]]
