"""Reports as Markdown tables, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bench.measuring import Spread
from bench.rows import Cost, FigureRow, PairRow, Report, SkippedRow

_PAIR_HEADER = (
    "scenario",
    "what",
    "corpus",
    "ours: wall s · CPU s · MB",
    "peer",
    "peer: wall s · CPU s · MB",
    "wall ratio",
    "CPU ratio",
    "target",
    "",
)
_FIGURE_HEADER = ("scenario", "what", "corpus", "figure", "beside it", "target", "")


def markdown(report: Report) -> str:
    """Return the whole report as Markdown."""
    parts = [f"{report.machine.describe()}; {report.runs} runs, median (min to max); ratios are medians of pairs"]
    pairs = [row for row in report.rows if isinstance(row, PairRow)]
    figures = [row for row in report.rows if isinstance(row, FigureRow)]
    skipped = [row for row in report.rows if isinstance(row, SkippedRow)]
    if pairs:
        parts.append(_table(_PAIR_HEADER, map(_pair, pairs)))
    if figures:
        parts.append(_table(_FIGURE_HEADER, map(_figure, figures)))
    measured: list[PairRow | FigureRow] = [*pairs, *figures]
    notes = [f"- {row.scenario}, {row.what}: {row.note}" for row in measured if row.note]
    notes += [f"- {row.scenario}, {row.what}: skipped, {row.why}" for row in skipped]
    if notes:
        parts.append("\n".join(dict.fromkeys(notes)))
    return "\n\n".join(parts) + "\n"


def _pair(row: PairRow) -> Sequence[str]:
    wall, cpu = _spread(row.wall_ratio), _spread(row.cpu_ratio)
    return (
        row.scenario,
        row.what,
        row.corpus,
        _cost(row.ours),
        row.theirs.name,
        _cost(row.theirs),
        f"**{wall}**" if row.by == "wall" else wall,
        f"**{cpu}**" if row.by == "cpu" else cpu,
        str(row.target or ""),
        row.verdict,
    )


def _figure(row: FigureRow) -> Sequence[str]:
    figure = f"{_spread(row.value)} {row.unit}".rstrip()
    return row.scenario, row.what, row.corpus, figure, row.peer, str(row.target or ""), row.verdict


def _cost(cost: Cost) -> str:
    return f"{_spread(cost.wall_s)} · {_number(cost.cpu_s.median)} · {cost.peak_bytes / 1e6:.0f}"


def _spread(values: Spread) -> str:
    if values.minimum == values.maximum:
        return _number(values.median)
    return f"{_number(values.median)} ({_number(values.minimum)} to {_number(values.maximum)})"


def _number(value: float) -> str:
    """Format a number with three significant digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])
