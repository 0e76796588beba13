"""`python -m tests.signal STORES [RULE …]` shows the sample with its source; STORES holds a store a tree (trees.json).

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
TOLD_TURN = 3
LACKED_TURN = 6
# The frequent rules of which the turns before do not have as many as any may have.
LACKED = frozenset({"B019", "PLW0127", "RUF032", "TRY203"})


def main(stores: Path, wanted: Sequence[str]) -> None:
    """Print how often each rule was found, then of those that are wanted what is to be judged."""
    batches = {tree.tree: latest_of(stores / tree.directory) for tree in trees()}
    every = [list(_findings(batches, turn)) for turn in range(1, len(ENOUGH) + 2)]
    counts = Counter(found.code for found in every[0])
    for code, findings in sample(*every).items():
        print(f"== {code} {findings[0].severity}: {counts[code]} found, {len(findings)} to judge")
        if code in wanted:
            for number, found in enumerate(findings, 1):
                print(f"-- {number} {found.tree} {found.path}:{found.line} {found.message[:_WIDTH_MAX]}")
                _show(batches[found.tree], found)


def _findings(batches: Mapping[str, Batch], turn: int) -> Iterator[Finding]:
    """What is asked of the trees of a turn: of the third, no rule that finds hints; of the sixth, four rules."""
    for tree in trees():
        if tree.turn == turn:
            for found in findings_of(batches[tree.tree], tree.tree, tree.version):
                if turn == TOLD_TURN and SEVERITY_BY_CODE.get(found.code) == "hint":
                    continue
                if turn != LACKED_TURN or found.code in LACKED:
                    yield found


def _show(batch: Batch, found: Finding) -> None:
    lines = batch.content(found.path).data.decode("utf-8", "backslashreplace").split("\n")
    first = max(found.line - LINES_BEFORE, 1)
    for number, line in enumerate(lines[first - 1 : found.line + LINES_BEHIND], first):
        print(f"{'>' if number == found.line else ' '}{number} {ascii(line[:_WIDTH_MAX])[1:-1]}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        SHIPPED.write_bytes(shipped())
    else:
        main(Path(sys.argv[1]), sys.argv[2:])
