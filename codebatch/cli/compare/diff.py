"""The commands `diff`, `regressions` and `improvements`: comparisons of two batches or commits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
import msgspec
from msgspec.structs import asdict

from codebatch.cli.answers.differences import (
    STATES_COUNTED,
    STATES_SHOWN,
    ComparedBatches,
    DiffAnswer,
    DifferenceSummary,
    ImprovementsAnswer,
    RegressionsAnswer,
    change_lines,
    change_row,
    changed_record,
    counts_line,
)
from codebatch.cli.framework.answer_printing import emit_comparison
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.context import CommandContext, OutputForm, with_common_options
from codebatch.cli.framework.filter_options import filter_options
from codebatch.cli.framework.format_option import resolve_form
from codebatch.cli.framework.formats import FORMS_FOR_PROGRAMS, default_columns, write_rows
from codebatch.cli.framework.read_report import explain_option
from codebatch.cli.output.widths import fit_line, terminal_width
from codebatch.compare.differences import Change
from codebatch.compare.states import IMPROVEMENT_STATES, REGRESSION_STATES, ChangeState
from codebatch.errors import BatchIncomplete, InvalidInput, ToolMismatch
from codebatch.model.entry import display_path
from codebatch.operations.api.batch import Batch
from codebatch.operations.api.store import Store
from codebatch.operations.comparison.comparison import (
    CHANGE_STATES,
    CHANGED_STATES,
    COMPARABLE_KINDS,
    Comparison,
    compares_only_files,
)
from codebatch.operations.project.stores import StoreLocator
from codebatch.query.filters.arguments import path_argument
from codebatch.query.filters.record_options import OutputFilters
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.store_directory import StoreDir

if TYPE_CHECKING:
    from codebatch.operations.runs.execution import ExecutionSettings

F = TypeVar("F", bound=Callable[..., object])

CHANGES_SHOWN = 50
_CHANGED_IN_BOTH: tuple[ChangeState, ...] = ("changed", "severity_raised", "severity_lowered", "worsened", "improved")


class DiffOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a comparison: the two batches, filters, and the output format."""

    old: str | None
    new: str | None
    base_store: str | None
    filters: OutputFilters
    limit: int | None
    form: OutputForm | None
    exit_code: bool
    rerun_base: bool


def with_diff_options(function: F) -> F:
    """Add the options of comparisons to a command. The command receives them as one argument, `options`."""

    def wrapped(**arguments: object) -> object:
        values = {name: arguments.pop(name) for name in DiffOptions.__struct_fields__ if name in arguments}
        filters = {name: value for name in OutputFilters.__annotations__ if (value := arguments.pop(name, None))}
        options = msgspec.convert({**values, "filters": filters}, DiffOptions)
        return function(options=options, **arguments)

    wrapped.__name__ = function.__name__
    wrapped.__doc__ = function.__doc__
    for decorator in reversed(_DIFF_OPTIONS):
        wrapped = decorator(wrapped)
    return wrapped  # type: ignore[return-value]


_DIFF_OPTIONS: tuple[Callable[[Callable[..., object]], Callable[..., object]], ...] = (
    click.argument("old", metavar="[BASE]", required=False),
    click.argument("new", metavar="[HEAD]", required=False),
    common_option("base-store"),
    option(
        "--kind",
        multiple=True,
        metavar="KIND",
        type=click.Choice(COMPARABLE_KINDS),
        default_text=COMPARABLE_KINDS[0],
        help=f"Compare records of this kind: {', '.join(COMPARABLE_KINDS[:-1])} or {COMPARABLE_KINDS[-1]}",
    ),
    filter_options(
        "--severity", "--code", "--tool", "--name", "--symbol-type", "--metric", "--lang", "--path",
        "--where", "--task", "--output",
    ),
    common_option("limit", default_text=f"{CHANGES_SHOWN}, or all with --json or -o"),
    option(
        "--rerun-base",
        is_flag=True,
        help="If BASE and HEAD have different tasks, run BASE again with the tasks of HEAD",
    ),
    option(
        "--exit-code",
        is_flag=True,
        help="Exit with status 1 if anything is listed",
        details="The status is 3 if HEAD has no files, or if nothing can pass a filter.",
    ),
    explain_option,
)  # fmt: skip


@command()
@with_common_options
@option(
    "--state",
    "states",
    multiple=True,
    metavar="STATE",
    type=click.Choice(CHANGE_STATES),
    help="Show only records in this state",
    details=f"States are {', '.join(CHANGE_STATES[:-1])} and {CHANGE_STATES[-1]}.",
)
@with_diff_options
def diff(context: CommandContext, options: DiffOptions, states: tuple[ChangeState, ...]) -> int:
    """Compare the findings of two batches or commits.

    BASE and HEAD are batches, @NAMEs, snapshots or git commits. A commit without a batch is analysed first. By default,
    latest~1 is compared with latest.

    Findings that moved, are suppressed or cannot be compared are only counted. --state or --json lists them. Unchanged
    findings are listed only with --state.
    """
    comparison = _compare_named_batches(context, options)
    for_programs = context.as_json or options.form == "json"
    changes = [*comparison.differences(states or (CHANGED_STATES if for_programs else STATES_SHOWN))]
    document = partial(_diff_answer, comparison)
    first = counts_line(comparison, (*STATES_SHOWN, *STATES_COUNTED))
    return _answer_comparison(context, options, comparison, changes, states or STATES_SHOWN, document, first=first)


@command()
@with_common_options
@with_diff_options
def regressions(context: CommandContext, options: DiffOptions) -> int:
    """List new findings and raised severities.

    With --kind metric, lists worsened metrics, with --kind duplicate new and larger duplicate groups.

    BASE and HEAD are batches, @NAMEs, snapshots or git commits. A commit without a batch is analysed first. By default,
    latest~1 is compared with latest.
    """
    comparison = _compare_named_batches(context, options)
    changes = [*comparison.differences(REGRESSION_STATES)]
    document = partial(_regressions_answer, comparison)
    return _answer_comparison(context, options, comparison, changes, REGRESSION_STATES, document)


@command()
@with_common_options
@with_diff_options
def improvements(context: CommandContext, options: DiffOptions) -> int:
    """List fixed findings and lowered severities.

    With --kind metric, lists improved metrics, with --kind duplicate removed and smaller duplicate groups.

    BASE and HEAD are batches, @NAMEs, snapshots or git commits. A commit without a batch is analysed first. By default,
    latest~1 is compared with latest.
    """
    comparison = _compare_named_batches(context, options)
    changes = [*comparison.differences(IMPROVEMENT_STATES)]
    document = partial(_improvements_answer, comparison)
    return _answer_comparison(context, options, comparison, changes, IMPROVEMENT_STATES, document)


def _compare_named_batches(context: CommandContext, options: DiffOptions) -> Comparison:
    """Return the comparison of the two batches that the user named. The batches may be incomplete."""
    of_files = not options.rerun_base and compares_only_files(options.filters.get("kind") or ())
    before, after = open_both_batches(context, options.old, options.new, options.base_store, of_files=of_files)
    if options.rerun_base:
        if options.base_store is not None:
            raise InvalidInput("--rerun-base cannot be used with --base-store: the base is in another store")
        before = _rerun_base(context, before, after)
    return after.compare(before, **options.filters)


def _rerun_base(context: CommandContext, before: Batch, after: Batch) -> Batch:
    """Analyse the tree of the older batch with the tasks of the newer batch.

    Raises BatchIncomplete if this is not possible.
    """
    from codebatch.cli.run.run import RunListener
    from codebatch.operations.gate.base_runs import rerun_with_head_tasks  # Only this comparison needs the import.

    store = after.question.store
    try:
        batch = rerun_with_head_tasks(
            store, after.question.batch, before.question.batch, _execution_settings(), RunListener(context)
        )
    except ToolMismatch as error:
        hint = "run the head again with this installation, or compare without --rerun-base"
        raise BatchIncomplete(error.message, hint=hint) from error
    return Store(store, context.note).batch(batch.id, partial=True)


def _execution_settings() -> ExecutionSettings:
    from codebatch.operations.project.configuration import load_configuration
    from codebatch.operations.runs.execution import ExecutionSettings

    return ExecutionSettings(configuration=load_configuration(Path.cwd()), jobs=None)


def open_both_batches(
    context: CommandContext,
    old: str | None,
    new: str | None,
    base_store: str | None = None,
    *,
    of_files: bool = False,
) -> tuple[Batch, Batch]:
    """Return the older and the newer batch. They may be incomplete.

    A commit without a batch is analysed first, unless it is in another store. With `of_files`, a snapshot needs no
    batch.
    """
    from codebatch.operations.comparison.revisions import (  # Only commands that compare need these imports.
        NamedCommit,
    )
    from codebatch.operations.gate.revision_runs import find_revisions

    def run_commit(store: StoreDir, head: BatchDir, commit: NamedCommit) -> BatchDir:
        from codebatch.cli.run.run import RunListener
        from codebatch.operations.gate.base_runs import obtain_commit_batch

        return obtain_commit_batch(store, head, commit, _execution_settings(), RunListener(context))

    store = Store(context.store_place.open(), context.note, context.report)
    base = None if base_store is None else Store(StoreLocator(path_argument(base_store)).open(), context.note)
    sides = find_revisions(store, old, new, run_commit, base=base, of_files=of_files)
    context.questions.extend(side.question for side in sides)
    context.batches.extend(side.question.batch for side in sides)
    return sides


def _answer_comparison(
    context: CommandContext,
    options: DiffOptions,
    comparison: Comparison,
    changes_found: Sequence[Change],
    states_shown: Sequence[ChangeState],
    document: Callable[[Sequence[Change]], ComparedBatches],
    *,
    first: str = "",
) -> int:
    """Print a comparison and return the exit status.

    In text output, only changes in `states_shown` are listed. `document` makes the JSON answer from the changes.
    `first` is a line to print before them.
    """
    form, context = resolve_form(context, options.form)
    displayed = [change for state in states_shown for change in changes_found if change.state == state]
    cut = displayed[: options.limit or CHANGES_SHOWN] if options.form is None else displayed[: options.limit]
    if form == "json":
        emit_comparison(context, comparison, lambda: context.print(document(changes_found[: options.limit]), ()))
    elif form is None:
        totals = Counter(change.state for change in displayed)
        changes = change_lines(cut, states_shown, totals, with_pass=context.explain)
        every = (
            [first, *changes]
            if first
            else [*changes, *(_hidden_changes_lines(comparison, displayed, states_shown) if displayed else ())]
        )
        lines = [fit_line(line, terminal_width()) for line in every]
        emit_comparison(context, comparison, lambda: context.print(None, lines))
    else:
        columns = (
            "state",
            *default_columns(form, comparison.kinds),
            *(("reason",) if form in FORMS_FOR_PROGRAMS else ()),
        )
        rows = map(change_row, cut)
        emit_comparison(context, comparison, lambda: write_rows(form, rows, columns))
    if form != "json" and len(cut) < len(displayed):
        context.note(f"{len(displayed) - len(cut):,} more; show them with --limit {len(displayed)}")
    if not first and (options.form is not None or not displayed):
        for line in _hidden_changes_lines(comparison, displayed, states_shown):
            context.note(line)
    nothing = [] if displayed else [*comparison.reasons_for_nothing()]
    for reason in nothing:
        context.report(f"not compared: {reason}")
    if not comparison.is_complete or (nothing and options.exit_code):
        return BatchIncomplete.exit_status
    return 1 if options.exit_code and displayed else 0


def _hidden_changes_lines(
    comparison: Comparison, displayed: Sequence[Change], states_shown: Sequence[ChangeState]
) -> Iterator[str]:
    """Yield a line with the number of changes in each state that is not listed.

    If no change is listed, the line begins with `none`.
    """
    other_states = [
        state for state in (*STATES_SHOWN, *STATES_COUNTED) if state not in states_shown and comparison.counts[state]
    ]
    parts = ["none"] * (not displayed) + [f"not shown: {counts_line(comparison, other_states)}"] * bool(other_states)
    if parts:
        yield "; ".join(parts)


def _diff_answer(comparison: Comparison, changes: Sequence[Change]) -> DiffAnswer:
    def of(*states: ChangeState) -> list[Change]:
        return [change for change in changes if change.state in states]

    counts = comparison.counts
    added_count = counts["new"] + counts["added"]
    removed_count = counts["fixed"] + counts["removed"]
    changed_count = sum(counts[state] for state in _CHANGED_IN_BOTH)
    return DiffAnswer(
        **asdict(_compared_batches(comparison)),
        added=tuple(map(change_row, of("new", "added"))),
        removed=tuple(map(change_row, of("fixed", "removed"))),
        changed=tuple(map(changed_record, of(*_CHANGED_IN_BOTH))),
        moved=tuple(map(changed_record, of("moved"))),
        suppressed=tuple(map(change_row, of("suppressed"))),
        not_comparable=tuple(map(change_row, of("not_comparable"))),
        unchanged=tuple(map(change_row, of("unchanged"))),
        summary=DifferenceSummary(
            added_count=added_count,
            removed_count=removed_count,
            changed_count=changed_count,
            total_changes=added_count + removed_count + changed_count,
            states=dict(counts),
        ),
    )


def _regressions_answer(comparison: Comparison, changes: Sequence[Change]) -> RegressionsAnswer:
    rows = tuple(map(change_row, changes))
    count = sum(comparison.counts[state] for state in REGRESSION_STATES)
    return RegressionsAnswer(
        **asdict(_compared_batches(comparison)), regressions=rows, count=count, states=dict(comparison.counts)
    )


def _improvements_answer(comparison: Comparison, changes: Sequence[Change]) -> ImprovementsAnswer:
    rows = tuple(change_row(change, is_old=True) for change in changes)
    count = sum(comparison.counts[state] for state in IMPROVEMENT_STATES)
    return ImprovementsAnswer(
        **asdict(_compared_batches(comparison)), improvements=rows, count=count, states=dict(comparison.counts)
    )


def _compared_batches(comparison: Comparison) -> ComparedBatches:
    """Return the members of an answer that name the two batches and describe how complete their results are."""
    old, new = comparison.old, comparison.new
    return ComparedBatches(
        old_batch_id=old.question.batch.id,
        new_batch_id=new.question.batch.id,
        project=display_path(new.question.batch.about.project_root),
        complete=comparison.is_complete,
        percent=min(old.completeness.percent, new.completeness.percent),
        stale=new.question.is_stale,
    )
