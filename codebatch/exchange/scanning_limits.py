"""What GitHub's code scanning takes of a SARIF file; of more it takes nothing (docs.github.com, "SARIF support")."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from codebatch.exchange.findings import Outgoing
from codebatch.model.text.quantities import count_of

RUNS_MAX = 20
RESULTS_MAX = 25_000
"""Of a run."""
RESULTS_SHOWN = 5_000
"""Of a run."""
GZIP_BYTES_MAX = 10_000_000

ByTool = Mapping[str, Sequence[Outgoing]]


def by_tool(found: Sequence[Outgoing], tools: Mapping[str, str]) -> dict[str, list[Outgoing]]:
    """Findings by tool, and tools that have found none."""
    rows: dict[str, list[Outgoing]] = defaultdict(list, {tool: [] for tool in tools})
    for each in found:
        rows[each.found.tool].append(each)
    return dict(sorted(rows.items()))


def cut(found: ByTool) -> dict[str, Sequence[Outgoing]]:
    """As many tools as are taken, those with findings before others, and of each as many findings."""
    tools = sorted(found, key=lambda tool: (not found[tool], tool))[:RUNS_MAX]
    return {tool: found[tool][:RESULTS_MAX] for tool in sorted(tools)}


def fits(data: bytes) -> bool:
    """Whether a file is taken as it is. Compressed harder, as an uploader may, it is no longer."""
    return len(data) <= GZIP_BYTES_MAX or len(gzip.compress(data, compresslevel=1)) <= GZIP_BYTES_MAX


def left_out(found: ByTool, taken: ByTool) -> Iterator[str]:
    """What is not taken, and what of the rest is not shown, in words."""
    if without := sorted(found.keys() - taken):
        count = count_of(sum(len(found[tool]) for tool in without), "finding")
        yield f"omitted: {count_of(len(without), 'tool')} with {count}, because GitHub accepts at most {RUNS_MAX} tools"
    for tool, each in taken.items():
        if lacks := len(found[tool]) - len(each):
            told = f"the {lacks:,} least severe of {len(found[tool]):,} findings of {tool}"
            yield f"omitted: {told}, because GitHub accepts no more findings"
        if len(each) > RESULTS_SHOWN:
            yield f"GitHub shows {RESULTS_SHOWN:,} of the {len(each):,} findings of {tool}"
