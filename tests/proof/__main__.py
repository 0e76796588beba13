"""`python -m tests.proof FIRST COUNT`: run the simulator over seeds, and print a summary."""

from __future__ import annotations

import sys

from tests.proof.case import run_all

first, count = map(int, sys.argv[1:])
summary = run_all(range(first, first + count))
print(f"{summary.cases} seeds, {summary.steps} steps, {summary.refused_late} late outcomes refused")
for kind, number in sorted(summary.happened.items()):
    print(f"  {kind}: {number}")
