"""Limits of GitHub's code scanning. It rejects a SARIF file that exceeds a limit (docs.github.com, "SARIF support")."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from codebatch.interchange.findings import ExportedFinding
from codebatch.model.text.quantities import count_text

RUNS_MAX = 20
RESULTS_MAX = 25_000
"""Maximum number of results of a run that GitHub accepts."""
RESULTS_SHOWN_MAX = 5_000
"""Number of results of a run that GitHub shows at most."""
GZIP_BYTES_MAX = 10_000_000

FindingsByTool = Mapping[str, Sequence[ExportedFinding]]


def group_by_tool(findings: Sequence[ExportedFinding], tools: Mapping[str, str]) -> dict[str, list[ExportedFinding]]:
    """Group findings by tool. A tool in `tools` without findings gets an empty list."""
    rows: dict[str, list[ExportedFinding]] = defaultdict(list, {tool: [] for tool in tools})
    for finding in findings:
        rows[finding.diagnostic.tool].append(finding)
    return dict(sorted(rows.items()))


def limit_findings_by_tool(findings: FindingsByTool) -> dict[str, Sequence[ExportedFinding]]:
    """Return the findings that are within the limits of GitHub.

    If there are too many tools, tools with findings take precedence.

    For each tool, its first findings are returned, at most RESULTS_MAX.
    """
    tools = sorted(findings, key=lambda tool: (not findings[tool], tool))[:RUNS_MAX]
    return {tool: findings[tool][:RESULTS_MAX] for tool in sorted(tools)}


def fits_upload_limit(data: bytes) -> bool:
    """Return whether a file is within the size limit, which applies to the compressed file.

    It is compressed at the lowest level. At higher levels the result would be smaller still.
    """
    return len(data) <= GZIP_BYTES_MAX or len(gzip.compress(data, compresslevel=1)) <= GZIP_BYTES_MAX


def omission_notes(findings: FindingsByTool, accepted: FindingsByTool) -> Iterator[str]:
    """Yield notes about findings that are not exported, and about exported findings that GitHub does not show."""
    if omitted_tools := sorted(findings.keys() - accepted):
        count = count_text(sum(len(findings[tool]) for tool in omitted_tools), "finding")
        tools = count_text(len(omitted_tools), "tool")
        yield f"omitted: {tools} with {count}, because GitHub accepts at most {RUNS_MAX} tools"
    for tool, accepted_findings in accepted.items():
        if lacks := len(findings[tool]) - len(accepted_findings):
            omission = f"the {lacks:,} least severe of {len(findings[tool]):,} findings of {tool}"
            yield f"omitted: {omission}, because GitHub accepts no more findings"
        if len(accepted_findings) > RESULTS_SHOWN_MAX:
            yield f"GitHub shows {RESULTS_SHOWN_MAX:,} of the {len(accepted_findings):,} findings of {tool}"
