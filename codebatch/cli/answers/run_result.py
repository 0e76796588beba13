"""How a run went, for people: one line of what was done, then what was found."""

from __future__ import annotations

from collections.abc import Iterator

from codebatch.cli.answers.headline import headline_lines
from codebatch.cli.framework.context import CommandContext
from codebatch.cli.output.records import failure_lines
from codebatch.cli.output.widths import fitted, terminal_width
from codebatch.model.text.quantities import count_of
from codebatch.operations.queries.batch_query import BatchQuery, shown_paths
from codebatch.operations.runs.run_result import RunResult

_LANGUAGES_SHOWN = 4
_FAILURES_SHOWN = 3
_WITHOUT_CODE = ("binary", "text")


def ran_lines(answering: CommandContext, ran: RunResult) -> Iterator[str]:
    """What `run` says on standard output."""
    width = terminal_width()
    if not ran.is_complete:
        yield fitted(f"{ran.standing.state.value}: batch {ran.batch.id}; results so far:", width)
    yield fitted(_done(ran), width)
    question = BatchQuery(ran.store, ran.batch, is_named=True, note=answering.note)
    if ran.failures:
        lines = failure_lines(ran.failures[:_FAILURES_SHOWN], ran.summary.failures)
        yield from (fitted(line, width) for line in lines)
    yield from headline_lines(ran.headline, question, answering.suggest, width)
    if ran.batch.about.paths and (ran.headline.hotspots or ran.headline.duplicates or ran.headline.cycles):
        yield fitted("Files outside these paths were not analysed: dependents and duplicates there are unknown", width)


def _done(ran: RunResult) -> str:
    """How many files of which languages were looked at, how long it took, what was reused."""
    languages = ran.summary.languages
    ranked = sorted(languages.items(), key=lambda pair: (pair[0] in _WITHOUT_CODE, -pair[1], pair[0]))
    told = [f"{name} {count:,}" for name, count in ranked[:_LANGUAGES_SHOWN]]
    told += [f"{len(ranked) - _LANGUAGES_SHOWN:,} more"] if len(ranked) > _LANGUAGES_SHOWN else []
    of = f" in {', '.join(shown_paths(ran.batch))}" if ran.batch.about.paths else ""
    work: list[str] = [] if ran.action == "new" else [ran.action]
    if ran.executed.reused:
        results = count_of(ran.executed.reused + ran.executed.executed, "result")
        work.append(f"{ran.executed.reused:,} of {results} reused")
    done = f"{count_of(ran.summary.files, 'file')}{of} in {ran.seconds:.1f} s"
    done += f" ({', '.join(work)})" if work else ""
    return f"{done}: {', '.join(told)}" if told else done
