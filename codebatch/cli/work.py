"""`work` and `cancel`: batches of commands, which people call tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, get_args

import click

from codebatch.application.configuration import load_configuration
from codebatch.cli import work_asking, work_control, work_log
from codebatch.cli.groups import Group, answering_group
from codebatch.cli.options import Answering, answering
from codebatch.cli.rehearsal import answer_rehearsal
from codebatch.cli.trusting import telling_foreign
from codebatch.cli.work_analyze import Form, answer_listed
from codebatch.cli.work_lists import Listing, list_options
from codebatch.cli.work_options import Output, WorkWishes, output_option, trust_option
from codebatch.cli.work_progress import WorkTeller
from codebatch.cli.work_ran import answer_nothing_left, answer_ran
from codebatch.cli.work_status import answer_work
from codebatch.engine.lifecycle import BatchState
from codebatch.errors import NothingLeft
from codebatch.model.work import RETRIES_MAX, Halt, OnFailure, Strategy
from codebatch.store.batches import Batch
from codebatch.store.store import Store
from codebatch.work import running
from codebatch.work.detaching import run_detached
from codebatch.work.rehearsing import rehearse
from codebatch.work.settings import WorkOptions

F = TypeVar("F", bound=Callable[..., object])

_STRATEGY_HELP = "One after the other, or several at once; auto: that, and by what texts of tasks say of one another."


@click.group(cls=Group)
@answering_group
def work() -> None:
    """Run lists of commands: builds, codemods, whatever takes long, to their end, whatever dies meanwhile.

    `status`, `resume` and `cancel` are for such batches too.
    """


@work.command("run")
@click.argument("tasks", metavar="[TASK]...", nargs=-1)
@list_options
@click.option("-j", "--max-parallel", type=click.IntRange(min=1), help="How many run at once.")
@click.option(
    "--strategy",
    type=click.Choice(get_args(Strategy)),
    help=_STRATEGY_HELP,
)
@click.option("--on-failure", type=click.Choice(get_args(OnFailure)), help="What becomes of the rest where one fails.")
@click.option("--failures-max", type=click.IntRange(min=1), help="With stop: how many failures stop it. Default: 1.")
@click.option(
    "--halt",
    type=click.Choice(get_args(Halt)),
    help="Stop at the first failure, or at --failures-max of them: now ends what runs, soon lets it run to its end.",
)
@click.option(
    "--timeout",
    type=float,
    metavar="SECONDS",
    help="Time limit of the whole batch. `resume` continues it with as much time again.",
)
@click.option("--retry", type=click.IntRange(0, RETRIES_MAX), help="How often what failed is tried again.")
@click.option("--wait-answers", is_flag=True, help="Go on while a question is open, until it is answered.")
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="A variable of every task; without a value yours, which is not stored as a value is.",
)
@click.option("--parallel-batches", "is_beside", is_flag=True, help="Run beside a batch in the same directory.")
@click.option(
    "--yes",
    "is_sure",
    is_flag=True,
    help="Do not ask before edges are taken that were inferred; with -q, do not tell of them.",
)
@click.option("--analyze", "is_looked_at", is_flag=True, help="Run nothing: as `work analyze`.")
@click.option("--dry-run", "is_rehearsed", is_flag=True, help="Say what would start when; nothing is run or written.")
@click.option("--detach", "is_detached", is_flag=True, help="Run it in the background, and print its id.")
@output_option
@trust_option
@answering
def work_run(
    answering: Answering,
    tasks: tuple[str, ...],
    paths: tuple[Path, ...],
    max_parallel: int | None,
    strategy: Strategy | None,
    on_failure: OnFailure | None,
    failures_max: int | None,
    halt: Halt | None,
    timeout: float | None,
    listing: Listing,
    retry: int | None,
    wait_answers: bool,
    variables: tuple[str, ...],
    is_beside: bool,
    is_sure: bool,
    is_looked_at: bool,
    is_rehearsed: bool,
    is_detached: bool,
    output: Output,
    is_trusted: bool,
) -> int:
    """Run TASKs with all that they need, by default every one: a new batch each time.

    What a file says gives way to what is said here. `resume` goes on with a batch that was broken off or in which
    something failed. Exit status 3 where not all is done.
    """
    options = WorkOptions(
        tasks=tasks,
        max_parallel=max_parallel,
        strategy=strategy,
        on_failure=on_failure,
        failures_max=failures_max,
        halt=halt,
        timeout=timeout,
        retry=retry,
        wait_answers=wait_answers,
        env=variables,
        infer_command=not (is_looked_at or is_rehearsed),
        **listing,
    )
    if is_looked_at:
        answer_listed(answering, running.list_files(paths, options, answering.place), "text", None)
        return 0
    if is_rehearsed:
        answer_rehearsal(answering, rehearse(paths, options, answering.place))
        return 0
    listener = WorkTeller(answering, output, is_sure=is_sure)
    place, keep = answering.place, load_configuration(Path.cwd()).settings.store.keep
    try:
        if not is_detached:
            ran = running.run_files(
                paths, options, place, keep=keep, is_beside=is_beside, is_trusted=is_trusted, listener=listener
            )
            return answer_ran(answering, ran)
        found = run_detached(paths, options, place, is_beside=is_beside, is_trusted=is_trusted, listener=listener)
    except NothingLeft as left:
        return answer_nothing_left(answering, left)
    answer_work(answering, found, [found.batch.id])
    answering.note(f"follow it with: codebatch follow --batch {found.batch.id}")
    return 0


@work.command("analyze")
@click.argument("tasks", metavar="[TASK]...", nargs=-1)
@list_options
@click.option("-j", "--max-parallel", type=click.IntRange(min=1), help="How many run at once.")
@click.option("--strategy", type=click.Choice(get_args(Strategy)), help=_STRATEGY_HELP)
@click.option("--format", "form", type=click.Choice(get_args(Form)), default="text", help="Default: text.")
@click.option("--run-infer", is_flag=True, help="Ask the command that `infer` of the file names, too.")
@click.option(
    "--write", "written", type=click.Path(path_type=Path), metavar="FILE", help="Write inferred edges as TOML, to keep."
)
@answering
def work_analyze(
    answering: Answering,
    tasks: tuple[str, ...],
    paths: tuple[Path, ...],
    listing: Listing,
    max_parallel: int | None,
    strategy: Strategy | None,
    form: Form,
    run_infer: bool,
    written: Path | None,
) -> None:
    """Which TASK waits for which and why, the longest path, how long it takes with how many at once.

    Nothing is run, and no store is needed, but for --unfinished and --blocked. Exit status 2 where tasks need one
    another in a circle.
    """
    options = WorkOptions(tasks=tasks, max_parallel=max_parallel, strategy=strategy, infer_command=run_infer, **listing)
    answer_listed(answering, running.list_files(paths, options, answering.place), form, written)


for command in (
    work_log.log,
    work_asking.questions,
    work_asking.answer,
    work_control.retry,
    work_control.skip,
    work_control.pause,
    work_control.unpause,
    work_control.change,
    work_control.attempts,
):
    work.add_command(command)


def resume_work(
    answering: Answering, store: Store, batch: Batch, wishes: WorkWishes, *, is_trusted: bool, output: Output
) -> int:
    """Go on with a batch of commands, and say how it went; returns the exit status."""
    teller = WorkTeller(answering, output)
    ran = telling_foreign(
        answering,
        lambda: running.resume_work(
            store,
            batch,
            is_forced=wishes.is_forced,
            only=wishes.only,
            blocked=wishes.blocked,
            wait_answers=wishes.wait_answers,
            reloads=wishes.reloads,
            is_trusted=is_trusted,
            listener=teller,
        ),
    )
    if ran.standing.state is BatchState.COMPLETED and not ran.seconds:
        answering.note("all tasks are done; rerun them with --force")
    return answer_ran(answering, ran, name="work-status")
