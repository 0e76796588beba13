"""The text of a run: one line about the run, then its findings."""

from __future__ import annotations

from collections.abc import Iterator

from codebatch.cli.answers.headline import headline_lines
from codebatch.cli.framework.context import CommandContext
from codebatch.cli.output.records import failure_lines
from codebatch.cli.output.widths import fit_line, terminal_width
from codebatch.model.analysis.language_groups import DATA_LANGUAGES
from codebatch.model.text.quantities import count_text
from codebatch.operations.queries.batch_query import BatchQuery, displayed_restriction
from codebatch.operations.runs.run_result import RunResult
from codebatch.query.answers.changes import read_changes

_LANGUAGES_SHOWN_MAX = 4
_FAILURES_SHOWN_MAX = 3
_LANGUAGES_SHOWN_LAST = DATA_LANGUAGES | {"binary"}


def run_lines(context: CommandContext, result: RunResult) -> Iterator[str]:
    """Yield the lines that `run` prints on standard output."""
    width = terminal_width()
    if not result.is_complete:
        yield fit_line(f"{result.standing.state.value}: batch {result.batch.id}; results so far:", width)
    yield fit_line(_run_summary_line(result), width)
    question = BatchQuery(result.store, result.batch, is_named=True, note=context.note)
    if result.failures:
        lines = failure_lines(result.failures[:_FAILURES_SHOWN_MAX], result.summary.failures)
        yield from (fit_line(line, width) for line in lines)
    yield from headline_lines(result.headline, question, context.complete_hint, width)
    if changes := result.summary.kinds.get("change"):
        refused = sum(each.refusal is not None for each in read_changes(question.records, question.records.task_names))
        numbers = f"{changes:,}, {refused:,} refused" if refused else f"{changes:,}"
        yield fit_line(f"Proposed changes ({numbers}): {context.complete_hint('codebatch changes')}", width)
    if result.batch.about.paths and (result.headline.hotspots or result.headline.duplicates or result.headline.cycles):
        yield fit_line(
            "Files outside these paths were not analysed: dependents and duplicates there are unknown", width
        )


def note_calls(context: CommandContext, result: RunResult) -> None:
    """Print notes about tasks whose program got no file, and about output of programs that is in no finding."""
    for task, reason in sorted(result.tasks_without_files.items()):
        context.note(f"{task} checked no file: {reason}")
    for omission in result.omissions:
        context.report(omission.text)


def _run_summary_line(result: RunResult) -> str:
    """Return a line about the run: files by language, duration, and the number of reused results."""
    languages = result.summary.languages
    ranked = sorted(languages.items(), key=lambda pair: (pair[0] in _LANGUAGES_SHOWN_LAST, -pair[1], pair[0]))
    languages_shown = [f"{name} {count:,}" for name, count in ranked[:_LANGUAGES_SHOWN_MAX]]
    languages_shown += [f"{len(ranked) - _LANGUAGES_SHOWN_MAX:,} more"] if len(ranked) > _LANGUAGES_SHOWN_MAX else []
    restriction = f" in {', '.join(displayed_restriction(result.batch))}" if result.batch.about.paths else ""
    work: list[str] = [] if result.action == "new" else [result.action]
    if result.executed.reused:
        results = count_text(result.executed.reused + result.executed.executed, "result")
        work.append(f"{result.executed.reused:,} of {results} reused")
    done = f"{count_text(result.summary.files, 'file')}{restriction} in {result.seconds:.1f} s"
    done += f" ({', '.join(work)})" if work else ""
    return f"{done}: {', '.join(languages_shown)}" if languages_shown else done
