"""The command `selftest`, with the alias `gate`: self-tests of a store, a batch and this installation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from msgspec.structs import asdict, replace

from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.context import CommandContext, batch_option, table_lines, with_common_options
from codebatch.cli.framework.groups import CommandGroup, group_with_common_options
from codebatch.cli.run.run import RunListener
from codebatch.errors import BatchIncomplete
from codebatch.model.text.quantities import count_text
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.runs.execution import ExecutionSettings
from codebatch.selftests.catalogue import (
    BUNDLE_NAMES,
    SELFTEST_GATES,
    GateExplainAnswer,
    GateResult,
    find_gate,
    run_bundle,
    run_gate,
)
from codebatch.selftests.subject import SelftestSubject

EXIT_GATE_FAILED = 1
_FAILURES_SHOWN_MAX = 20


@click.group(cls=CommandGroup)
@group_with_common_options
def selftest() -> None:
    """Run self-tests on the store, a batch and this installation."""


@command("list")
@option(
    "--status",
    metavar="STATUS",
    type=click.Choice(["ENFORCED", "HARNESS", "PLACEHOLDER"]),
    help="Only self-tests with this status, as in CodeBatch 1",
    details="The statuses are ENFORCED, HARNESS and PLACEHOLDER. All self-tests are ENFORCED now.",
)
@option("--tag", metavar="TAG", help="Only self-tests with this tag, such as program, store or batch")
@with_common_options
def gate_list(context: CommandContext, status: str | None, tag: str | None) -> None:
    """List the self-tests and what they check.

    Self-tests are listed in the order in which `codebatch selftest bundle` runs them. The column of aliases shows their
    names in CodeBatch 1.0.2, and the names of self-tests that are part of them.
    """
    gates = tuple(
        gate for gate in SELFTEST_GATES if (not status or gate.status == status) and (not tag or tag in gate.tags)
    )
    rows = [(gate.gate_id, gate.status, " ".join(gate.aliases) or "-", gate.invariant) for gate in gates]
    context.print(
        gates,
        table_lines(rows, ("self-test", "status", "aliases", "checks")) if rows else [],
        if_none="no matching self-tests",
    )


@command("run")
@click.argument("name", metavar="NAME")
@batch_option
@with_common_options
def gate_run(context: CommandContext, name: str, batch_reference: str | None) -> int:
    """Run one self-test.

    Exit status 1 if it fails. Exit status 3 if it is skipped because something that it needs is missing.
    """
    chosen = find_gate(name)
    result = _with_store_in_hints(context, run_gate(chosen, _open_subject(context, batch_reference)))
    context.print(result, _result_lines(result))
    return _gates_exit_status(context, [result])


@command("bundle")
@click.argument("name", metavar="[BUNDLE]", type=click.Choice(BUNDLE_NAMES), default="all")
@batch_option
@option("--fail-fast", is_flag=True, help="Stop at the first failure")
@with_common_options
def gate_bundle(context: CommandContext, name: str, batch_reference: str | None, fail_fast: bool) -> int:
    """Run all self-tests.

    BUNDLE is `all`. The names of CodeBatch 1.0.2 (phase1, phase2, phase3 and release) also run all self-tests. If
    something that a self-test needs is missing, the self-test is skipped.

    Exit status 1 if a self-test fails. Otherwise, exit status 3 if one is skipped.
    """
    bundle = run_bundle(name, _open_subject(context, batch_reference), is_stopping=fail_fast)
    bundle = replace(bundle, results=tuple(_with_store_in_hints(context, result) for result in bundle.results))
    lines = [line for result in bundle.results for line in _result_lines(result)]
    counts = {"passed": bundle.passed_count, "failed": bundle.failed_count, "skipped": bundle.skipped_count}
    lines.append(", ".join(f"{count:,} {word}" for word, count in counts.items() if count))
    context.print(bundle, lines)
    return _gates_exit_status(context, bundle.results)


@command("explain")
@click.argument("name", metavar="NAME")
@with_common_options
def gate_explain(context: CommandContext, name: str) -> None:
    """Describe a self-test: what it checks, reads and writes."""
    description = find_gate(name)
    lines = [
        f"{description.gate_id} ({description.status}): {description.invariant}",
        f"names      {' '.join((description.gate_id, *description.aliases))}",
        f"needs      {description.needs}",
        f"checks     {description.inspects}",
        f"writes     {description.writes or 'nothing'}",
    ]
    context.print(GateExplainAnswer(**asdict(description)), lines)


for _command in (gate_list, gate_run, gate_bundle, gate_explain):
    selftest.add_command(_command)


def _open_subject(context: CommandContext, reference: str | None) -> SelftestSubject:
    """Return the store, batch and program to check. Raises an error if the user named one that does not exist."""
    subject = SelftestSubject(
        place=context.store_place,
        reference=reference,
        execution=lambda: ExecutionSettings(configuration=load_configuration(Path.cwd())),
        load_commands=load_commands,
        listener=RunListener(context),
    )
    subject.check_reference()
    return subject


def load_commands() -> int:
    """Load all commands, and return their number. Raises ImportError or AttributeError if one cannot be loaded."""
    from codebatch.cli import cli  # Imported late, because `codebatch.cli` imports this module.
    from codebatch.cli.reference.interface import describe_interface

    return len(describe_interface(cli).commands)


def _with_store_in_hints(context: CommandContext, result: GateResult) -> GateResult:
    """Return the result of a self-test. If the user named a store, commands in its hints name this store."""
    failures = tuple(
        replace(failure, suggestion=failure.suggestion and context.complete_hint(failure.suggestion))
        for failure in result.failures
    )
    return replace(result, failures=failures, reason=context.complete_hint(result.reason))


def _result_lines(result: GateResult) -> Iterator[str]:
    looked = ", ".join(count_text(count, _singular(noun), noun) for noun, count in result.details.items())
    failed = count_text(result.failures_count, "failure")
    detail = {"passed": looked, "failed": f"{failed}; {looked}" if looked else failed, "skipped": result.reason}
    yield f"{result.outcome:7}  {result.gate_id:25}  {detail[result.outcome]}".rstrip()
    for failure in result.failures[:_FAILURES_SHOWN_MAX]:
        yield f"    {failure.location}: {failure.message}" if failure.location else f"    {failure.message}"
        differs = (("expected", failure.expected), ("actual", failure.actual), ("hint", failure.suggestion))
        yield from (f"      {word}: {text}" for word, text in differs if text)
    if (more := result.failures_count - _FAILURES_SHOWN_MAX) > 0:
        yield f"    {count_text(more, 'more failure')}"


def _singular(noun: str) -> str:
    return noun.removesuffix("es" if noun.endswith("ches") else "s")


def _gates_exit_status(context: CommandContext, results: Sequence[GateResult]) -> int:
    """Return the exit status for the results of self-tests. Skipped self-tests are reported even with `-q`."""
    skipped_ids = [result.gate_id for result in results if result.outcome == "skipped"]
    if skipped_ids:
        context.report(f"incomplete: skipped {', '.join(skipped_ids)}")
    if any(result.outcome == "failed" for result in results):
        return EXIT_GATE_FAILED
    return BatchIncomplete.exit_status if skipped_ids else 0
