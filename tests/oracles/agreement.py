"""Agreement of two sides over a corpus, and the known differences.

A side has facts: tuples that begin with a class ("function", "call", …) and a path. A difference is counted as `missing
CLASS` (only the oracle has it) or `extra CLASS` (only codebatch has it). If the oracle is wrong, or uses another name,
the difference is counted as `theirs REASON` and does not lower the agreement. allowance.json has the counts of all
three. A count may shrink, but the test fails if it grows.
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
# A function that returns why a fact of only one side ("missing" or "extra") is due to the oracle, or None.
Explain = Callable[[str, Fact], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The number of facts that both sides have, and differences by class, with some examples of each."""

    matched: int
    differences: Mapping[str, int]
    examples: Mapping[str, list[Fact]] = field(default_factory=dict)
    matched_of: Mapping[str, int] = field(default_factory=dict)

    @property
    def precision(self) -> float:
        """The share of codebatch's facts that the oracle has too."""
        return self.matched / max(self.matched + self._count("extra "), 1)

    @property
    def recall(self) -> float:
        """The share of the oracle's facts that codebatch has too."""
        return self.matched / max(self.matched + self._count("missing "), 1)

    def precision_of(self, kind: str) -> float:
        """Return the share of codebatch's facts of one class that the oracle has too, or 1 if there are none."""
        matched, extra = self.matched_of.get(kind, 0), self.differences.get(f"extra {kind}", 0)
        return matched / (matched + extra) if matched + extra else 1.0

    def _count(self, prefix: str) -> int:
        return sum(count for name, count in self.differences.items() if name.startswith(prefix))


def compare(
    actual_facts: Iterable[Fact], expected_facts: Iterable[Fact], explain: Explain = lambda _side, _fact: None
) -> Agreement:
    """Compare the facts of codebatch with those of an oracle. Repeated facts count repeatedly."""
    own_counts, oracle_counts = Counter(actual_facts), Counter(expected_facts)
    differences: Counter[str] = Counter()
    examples: dict[str, list[Fact]] = {}
    for side, facts in (("missing", oracle_counts - own_counts), ("extra", own_counts - oracle_counts)):
        for fact, count in facts.items():
            reason = explain(side, fact)
            name = f"{side} {fact[0]}" if reason is None else f"theirs {reason}"
            differences[name] += count
            if len(examples.setdefault(name, [])) < _EXAMPLES_MAX:
                examples[name].append(fact)
    both = own_counts & oracle_counts
    matched_of: Counter[str] = Counter()
    for fact, count in both.items():
        matched_of[str(fact[0])] += count
    return Agreement(matched=both.total(), differences=differences, examples=examples, matched_of=matched_of)


def iter_sources(root: Path, languages: Iterable[str], contexts: Mapping[str, bytes]) -> Iterator[SourceFile]:
    """Yield the files of a tree in these languages that codebatch parses, in path order."""
    wanted = frozenset(languages)
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink():
            relative = path.relative_to(root).as_posix().encode()
            file = SourceFile(relative, path.read_bytes(), executable=False, contexts=contexts)
            if file.language in wanted and file.is_parsed:
                yield file


def allowed(name: str) -> Mapping[str, int]:
    """Return the known differences of a comparison."""
    document: dict[str, dict[str, int]] = json.loads(ALLOWANCE.read_text(encoding="utf-8"))
    return document.get(name, {})


def grown(name: str, agreement: Agreement) -> list[str]:
    """Return the classes with more differences than allowed, with examples."""
    known = allowed(name)
    return [
        f"{difference}: {count} > {known.get(difference, 0)}, {agreement.examples.get(difference)}"
        for difference, count in agreement.differences.items()
        if count > known.get(difference, 0)
    ]
