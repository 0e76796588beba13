"""The self-test `api-complete`: all documented commands and pipelines exist."""

from __future__ import annotations

import re

from codebatch.errors import InvalidConfiguration
from codebatch.model.record import RECORD_KINDS
from codebatch.model.task import PIPELINES
from codebatch.operations.project.pipelines import find_pipeline
from codebatch.plugins.entry_points import describe_task
from codebatch.selftests.findings import SelftestFindings
from codebatch.selftests.subject import SelftestSubject

COMMON_OPTIONS = frozenset(("--store", "--json", "--quiet"))

# In help, a command line is enclosed in backquotes, or it begins a line.
_COMMAND_IN_HELP = re.compile(r"(?:^\s*|`)codebatch ([a-z][a-z-]*)", re.MULTILINE)


def check_program(subject: SelftestSubject, findings: SelftestFindings) -> None:
    """Check that all commands can be loaded, have help and the common options, and are in the answer of `api --json`.

    Check also that every pipeline can be planned, those of the configuration too.
    """
    try:
        commands = subject.commands
    except (ImportError, AttributeError) as error:
        findings.add_failure(f"a command cannot be loaded: {error}", suggestion="reinstall codebatch")
        commands = ()
    names = {command.name for command in commands}
    findings.count_checked("names", sum(" " not in name for name in names))
    for command in commands:
        findings.count_checked("commands")
        if not command.help:
            findings.add_failure("the command has no help", location=command.name)
        if missing_options := sorted(COMMON_OPTIONS - command.options):
            findings.add_failure(
                "the command lacks options that every command has",
                location=command.name,
                expected=", ".join(missing_options),
            )
        for mentioned in sorted(set(_COMMAND_IN_HELP.findall(command.help)) - names):
            findings.add_failure(
                "its help refers to a command that does not exist", location=command.name, actual=mentioned
            )
        if not command.is_described:
            findings.add_failure("`api --json` does not list the command", location=command.name)
    _check_pipelines(subject, findings)


def _check_pipelines(subject: SelftestSubject, findings: SelftestFindings) -> None:
    configuration = subject.execution.configuration
    catalogue = configuration.catalogue
    for name in configuration.settings.pipelines:
        findings.count_checked("pipelines")
        try:
            find_pipeline(configuration, name)
        except InvalidConfiguration as error:
            findings.add_failure(error.message, location=name, suggestion=error.hint)
    for pipeline in PIPELINES.values():
        findings.count_checked("pipelines")
        before: set[str] = set()
        for task in pipeline.tasks:
            place = f"{pipeline.name}: {task}"
            try:
                declaration = describe_task(catalogue, task)
            except InvalidConfiguration as error:
                findings.add_failure(error.message, location=place, suggestion=error.hint)
                continue
            if late := sorted(set(declaration.needs) - before):
                findings.add_failure(
                    "a pipeline lacks a task that this one needs before it", location=place, expected=", ".join(late)
                )
            if unknown := sorted(set(declaration.records) - set(RECORD_KINDS)):
                findings.add_failure(
                    "a task produces records of an unknown kind", location=place, actual=", ".join(unknown)
                )
            before.add(task)
