"""Print the sample of findings, or write the counts that are shipped with the package.

`python -m tests.signal STORES [RULE …]` prints the sample with its source. STORES has a store for each tree of
trees.json.
`python -m tests.signal --write` writes the counts that are shipped with the package.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from codebatch import Batch
from codebatch_workers.lint.ruff_rules import SEVERITY_BY_CODE
from tests.signal.sampling import ENOUGH, Finding, findings_of, latest_of, sample
from tests.signal.table import SHIPPED, shipped, trees

LINES_BEFORE = 7
LINES_BEHIND = 5
_WIDTH_MAX = 160
TURN_WITHOUT_HINTS = 3
TURN_OF_RARE_RULES = 6
# Frequent rules that have fewer than the maximum of findings in earlier turns.
RARE_RULES = frozenset({"B019", "PLW0127", "RUF032", "TRY203"})


def main(stores: Path, wanted: Sequence[str]) -> None:
    """Print the number of findings of each rule, then the findings to judge for the wanted rules."""
    batches = {tree.tree: latest_of(stores / tree.directory) for tree in trees()}
    every = [list(_findings(batches, turn)) for turn in range(1, len(ENOUGH) + 2)]
    counts = Counter(finding.code for finding in every[0])
    for code, findings in sample(*every).items():
        print(f"== {code} {findings[0].severity}: {counts[code]} found, {len(findings)} to judge")
        if code in wanted:
            for number, finding in enumerate(findings, 1):
                print(f"-- {number} {finding.tree} {finding.path}:{finding.line} {finding.message[:_WIDTH_MAX]}")
                _print_finding(batches[finding.tree], finding)


def _findings(batches: Mapping[str, Batch], turn: int) -> Iterator[Finding]:
    """Yield the findings of the trees of a turn. The third turn is without hints, the sixth only for four rules."""
    for tree in trees():
        if tree.turn == turn:
            for finding in findings_of(batches[tree.tree], tree.tree, tree.version):
                if turn == TURN_WITHOUT_HINTS and SEVERITY_BY_CODE.get(finding.code) == "hint":
                    continue
                if turn != TURN_OF_RARE_RULES or finding.code in RARE_RULES:
                    yield finding


def _print_finding(batch: Batch, finding: Finding) -> None:
    lines = batch.content(finding.path).data.decode("utf-8", "backslashreplace").split("\n")
    first = max(finding.line - LINES_BEFORE, 1)
    for number, line in enumerate(lines[first - 1 : finding.line + LINES_BEHIND], first):
        print(f"{'>' if number == finding.line else ' '}{number} {ascii(line[:_WIDTH_MAX])[1:-1]}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        SHIPPED.write_bytes(shipped())
    else:
        main(Path(sys.argv[1]), sys.argv[2:])
