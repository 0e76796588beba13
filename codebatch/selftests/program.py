"""The self-test `api-complete`: the documented commands and pipelines exist."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from codebatch.errors import InvalidConfiguration
from codebatch.model.record import KINDS
from codebatch.model.task import PIPELINES
from codebatch.plugins.entry_points import describe_task
from codebatch.selftests.findings import SelftestFindings
from codebatch.selftests.subject import Subject, SubjectCommand

COMMON_OPTIONS = frozenset(("--store", "--json", "--quiet"))

# In help, a command line is in backquotes or at the start of a line.
_COMMAND_IN_HELP = re.compile(r"(?:^\s*|`)codebatch ([a-z][a-z-]*)", re.MULTILINE)


def check_program(subject: Subject, findings: SelftestFindings) -> None:
    """Check that documented commands exist, with help and common options, and are described by `api --json`.

    Also check that every pipeline can be planned.
    """
    program = subject.program
    names = {command.name for command in program.commands}
    for reason in program.broken:
        findings.fail(reason, suggestion="reinstall codebatch")
    for name in program.documented:
        findings.count("names")
        if name not in names:
            findings.fail("the documented command does not exist", location=name)
    for command in program.commands:
        findings.count("commands")
        if not command.help:
            findings.fail("the command has no help", location=command.name)
        if lacking := sorted(COMMON_OPTIONS - command.options):
            findings.fail(
                "the command lacks options that every command has", location=command.name, expected=", ".join(lacking)
            )
        for mentioned in sorted(set(_COMMAND_IN_HELP.findall(command.help)) - names):
            findings.fail("its help refers to a command that does not exist", location=command.name, actual=mentioned)
    if program.described is not None:
        _check_described(program.commands, program.described, findings)
    _check_pipelines(subject, findings)


def _check_described(
    commands: Collection[SubjectCommand], described: Mapping[str, frozenset[str]], findings: SelftestFindings
) -> None:
    """Check that `api --json` has exactly the commands and their options. Groups of commands are not listed."""
    names = {command.name for command in commands}
    groups = {name.rpartition(" ")[0] for name in names}
    for command in commands:
        if command.name in groups:
            continue
        options = described.get(command.name)
        if options is None:
            findings.fail("`api --json` does not list the command", location=command.name)
        elif options != command.options:
            findings.fail(
                "`api --json` and the command have different options",
                location=command.name,
                expected=", ".join(sorted(command.options - options)) or None,
                actual=", ".join(sorted(options - command.options)) or None,
            )
    for name in sorted(described.keys() - names):
        findings.fail("`api --json` lists a command that does not exist", location=name)


def _check_pipelines(subject: Subject, findings: SelftestFindings) -> None:
    catalogue = subject.execution.configuration.catalogue
    for pipeline in PIPELINES.values():
        findings.count("pipelines")
        before: set[str] = set()
        for task in pipeline.tasks:
            place = f"{pipeline.name}: {task}"
            try:
                declaration = describe_task(catalogue, task)
            except InvalidConfiguration as error:
                findings.fail(error.message, location=place, suggestion=error.hint)
                continue
            if late := sorted(set(declaration.needs) - before):
                findings.fail(
                    "a pipeline lacks a task that this one needs before it", location=place, expected=", ".join(late)
                )
            if unknown := sorted(set(declaration.records) - set(KINDS)):
                findings.fail("a task produces records of an unknown kind", location=place, actual=", ".join(unknown))
            before.add(task)
