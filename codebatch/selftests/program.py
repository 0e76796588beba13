"""`api-complete`: whether this program has what it tells of."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from codebatch.errors import InvalidConfiguration
from codebatch.model.record import KINDS
from codebatch.model.task import PIPELINES
from codebatch.plugins.entry_points import describe_task
from codebatch.selftests.findings import SelftestFindings
from codebatch.selftests.subject import Subject, SubjectCommand

OF_EVERY_COMMAND = frozenset(("--store", "--json", "--quiet"))

# In help: a command line between backquotes, or at the beginning of a line.
_TOLD_IN_HELP = re.compile(r"(?:^\s*|`)codebatch ([a-z][a-z-]*)", re.MULTILINE)


def check_program(subject: Subject, findings: SelftestFindings) -> None:
    """Every command that is told of is there, with help and the options of all, as `api --json` has it.

    And every pipeline can be planned.
    """
    program = subject.program
    names = {command.name for command in program.commands}
    for reason in program.broken:
        findings.fail(reason, suggestion="reinstall codebatch")
    for name in program.told:
        findings.count("names")
        if name not in names:
            findings.fail("the documented command does not exist", location=name)
    for command in program.commands:
        findings.count("commands")
        if not command.help:
            findings.fail("the command has no help", location=command.name)
        if lacking := sorted(OF_EVERY_COMMAND - command.options):
            findings.fail(
                "the command lacks options that every command has", location=command.name, expected=", ".join(lacking)
            )
        for told in sorted(set(_TOLD_IN_HELP.findall(command.help)) - names):
            findings.fail("its help refers to a command that does not exist", location=command.name, actual=told)
    if program.described is not None:
        _check_described(program.commands, program.described, findings)
    _check_pipelines(subject, findings)


def _check_described(
    commands: Collection[SubjectCommand], described: Mapping[str, frozenset[str]], findings: SelftestFindings
) -> None:
    """Every command is in `api --json` with the options that it has, and nothing else is; a group is none."""
    names = {command.name for command in commands}
    groups = {name.rpartition(" ")[0] for name in names}
    for command in commands:
        if command.name in groups:
            continue
        told = described.get(command.name)
        if told is None:
            findings.fail("`api --json` does not list the command", location=command.name)
        elif told != command.options:
            findings.fail(
                "`api --json` and the command have different options",
                location=command.name,
                expected=", ".join(sorted(command.options - told)) or None,
                actual=", ".join(sorted(told - command.options)) or None,
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
            if strange := sorted(set(declaration.records) - set(KINDS)):
                findings.fail("a task produces records of an unknown kind", location=place, actual=", ".join(strange))
            before.add(task)
