"""How far two sides agree over a corpus, and which differences are known.

A side says facts: tuples that begin with a class ("function", "call", …) and a path. A difference is counted under
`missing CLASS` (only the oracle says it) or `extra CLASS` (only we do). What an oracle gets wrong, or calls by another
name, is counted under `theirs REASON` instead and does not lower the agreement. allowance.json holds the counts of all
three; a count may shrink, and fails the test when it grows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from codebatch_workers.syntax.source import SourceFile

ALLOWANCE = Path(__file__).with_name("allowance.json")
_EXAMPLES_MAX = 12

Fact = tuple[str | int, ...]
# A reason why a fact that only one side says ("missing" or "extra") is the oracle's doing, or None.
Explain = Callable[[str, Fact], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Facts that both sides say, and differences by class, with the first few of each."""

    matched: int
    differences: Mapping[str, int]
    examples: Mapping[str, list[Fact]] = field(default_factory=dict)
    matched_of: Mapping[str, int] = field(default_factory=dict)

    @property
    def precision(self) -> float:
        """The share of what we say that the oracle says too."""
        return self.matched / max(self.matched + self._count("extra "), 1)

    @property
    def recall(self) -> float:
        """The share of what the oracle says that we say too."""
        return self.matched / max(self.matched + self._count("missing "), 1)

    def precision_of(self, kind: str) -> float:
        """The share of what we say of one class that the oracle says too; 1 where we say nothing of it."""
        matched, extra = self.matched_of.get(kind, 0), self.differences.get(f"extra {kind}", 0)
        return matched / (matched + extra) if matched + extra else 1.0

    def _count(self, prefix: str) -> int:
        return sum(count for name, count in self.differences.items() if name.startswith(prefix))


def compare(ours: Iterable[Fact], theirs: Iterable[Fact], explain: Explain = lambda _side, _fact: None) -> Agreement:
    """Hold facts against facts; one that is said twice counts twice."""
    said, expected = Counter(ours), Counter(theirs)
    differences: Counter[str] = Counter()
    examples: dict[str, list[Fact]] = {}
    for side, facts in (("missing", expected - said), ("extra", said - expected)):
        for fact, count in facts.items():
            reason = explain(side, fact)
            name = f"{side} {fact[0]}" if reason is None else f"theirs {reason}"
            differences[name] += count
            if len(examples.setdefault(name, [])) < _EXAMPLES_MAX:
                examples[name].append(fact)
    both = said & expected
    matched_of: Counter[str] = Counter()
    for fact, count in both.items():
        matched_of[str(fact[0])] += count
    return Agreement(matched=both.total(), differences=differences, examples=examples, matched_of=matched_of)


def iter_sources(root: Path, languages: Iterable[str], contexts: Mapping[str, bytes]) -> Iterator[SourceFile]:
    """The files of a tree in these languages that we parse, in path order."""
    wanted = frozenset(languages)
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink():
            relative = path.relative_to(root).as_posix().encode()
            file = SourceFile(relative, path.read_bytes(), executable=False, contexts=contexts)
            if file.language in wanted and file.is_parsed:
                yield file


def allowed(name: str) -> Mapping[str, int]:
    """The differences that are known of a comparison."""
    document: dict[str, dict[str, int]] = json.loads(ALLOWANCE.read_text(encoding="utf-8"))
    return document.get(name, {})


def grown(name: str, agreement: Agreement) -> list[str]:
    """The classes of which there are more than allowed, with examples."""
    known = allowed(name)
    return [
        f"{difference}: {count} > {known.get(difference, 0)}, {agreement.examples.get(difference)}"
        for difference, count in agreement.differences.items()
        if count > known.get(difference, 0)
    ]
