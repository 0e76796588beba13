"""`python -m tests.proof FIRST COUNT`: run the simulator over seeds, and tell the figures."""

from __future__ import annotations

import sys

from tests.proof.case import run_all

first, count = map(int, sys.argv[1:])
told = run_all(range(first, first + count))
print(f"{told.cases} seeds, {told.steps} steps, {told.refused_late} late outcomes refused")
for kind, number in sorted(told.happened.items()):
    print(f"  {kind}: {number}")
