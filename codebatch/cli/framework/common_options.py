"""Options that several commands have. Each is defined once. Only its default can differ between commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import click

from codebatch.cli.framework.commands import HelpfulOption, option
from codebatch.cli.framework.completion import complete_batch, complete_pipeline

F = TypeVar("F", bound=Callable[..., object])

OutputForm = Literal["table", "json", "jsonl", "csv", "md", "plain"]
"""The output formats of records (formats.py)."""


class OptionDefinition(NamedTuple):
    """The definition of an option that several commands have: its names, and arguments of HelpfulOption."""

    declarations: tuple[str, ...]
    arguments: Mapping[str, Any]


def _define_option(*declarations: str, **arguments: Any) -> OptionDefinition:
    return OptionDefinition(declarations, {"is_common": True, **arguments})


COMMON_OPTIONS = {
    "batch": _define_option(
        "--batch",
        "batch_reference",
        metavar="BATCH",
        shell_complete=complete_batch,
        help="Batch ID, unique ID prefix, latest, latest~N or @NAME",
        details="latest~N is the Nth batch before the latest batch, among batches with the same source, paths and "
        "pipeline. "
        "@NAME is the batch with the name set by `codebatch run --name NAME`. By default, commands that answer "
        "questions prefer "
        "a batch of the whole project to a newer one that is restricted to paths.",
    ),
    "path": _define_option(
        "--path",
        "path",
        metavar="TEXT",
        default="",
        help="Only paths that contain TEXT or match the pattern TEXT",
        details="Case is ignored. TEXT with *, ? or [ is a pattern as in .gitignore. "
        "TEXT that starts with / is a file or directory of the project.",
    ),
    "lang": _define_option("--lang", "lang", metavar="NAME", multiple=True, help="Only files in this language"),
    "limit": _define_option(
        "--limit", "limit", metavar="N", type=click.IntRange(min=1), help="Maximum number of results"
    ),
    "output": _define_option(
        "-o",
        "--output",
        "form",
        metavar="FORMAT",
        type=click.Choice(get_args(OutputForm)),
        help="Output format: table, json, jsonl, csv, md or plain",
        details="-o json is the same as --json.",
    ),
    "escape-formulas": _define_option(
        "--escape-formulas",
        is_flag=True,
        help="With -o csv: escape texts that a spreadsheet would evaluate",
        details="A text that a spreadsheet would evaluate as a formula is prefixed with '.",
    ),
    "explain": _define_option(
        "--explain", is_flag=True, help="Print on standard error how many result files and records were read"
    ),
    "jobs": _define_option(
        "-j",
        "--jobs",
        "jobs",
        metavar="N",
        type=click.IntRange(min=1),
        default_text="number of usable cores",
        help="Number of worker processes",
    ),
    "file-seconds": _define_option(
        "--file-seconds",
        "file_seconds",
        metavar="SECONDS",
        type=click.FloatRange(min=0.01),
        default_text="30",
        help="Time limit per file",
    ),
    "memory-mb": _define_option(
        "--memory-mb",
        "memory_mb",
        metavar="MIB",
        type=click.IntRange(min=1),
        default_text="up to 2048",
        help="Memory limit per worker, with its child processes",
        details="By default, the available memory is divided among the workers; each gets at least 256 and at most "
        "2048 MiB.",
    ),
    "take-over": _define_option(
        "--take-over",
        is_flag=True,
        help="Take over the work of dead processes on other hosts",
        details="Use this option only if no process on another host works on the batch.",
    ),
    "tls-ca": _define_option(
        "--tls-ca",
        "tls_ca",
        metavar="FILE",
        type=click.Path(),
        help="Certificate authority (PEM) of an engine with TLS",
    ),
    "tls-cert": _define_option(
        "--tls-cert", "tls_cert", metavar="FILE", type=click.Path(), help="Your certificate (PEM) for an engine"
    ),
    "tls-key": _define_option(
        "--tls-key", "tls_key", metavar="FILE", type=click.Path(), help="The key (PEM) of your certificate"
    ),
    "include": _define_option(
        "--include",
        "include",
        multiple=True,
        metavar="PATTERN",
        is_common=False,
        help="Include only paths matching this gitignore-style pattern",
    ),
    "exclude": _define_option(
        "--exclude",
        "exclude",
        multiple=True,
        metavar="PATTERN",
        is_common=False,
        help="Exclude paths matching this gitignore-style pattern",
    ),
    "base-store": _define_option(
        "--base-store",
        "base_store",
        metavar="PATH",
        is_common=False,
        default_text="store of HEAD",
        help="Store that contains BASE",
    ),
    "pipeline": _define_option(
        "--pipeline",
        "pipeline",
        metavar="NAME",
        is_common=False,
        shell_complete=complete_pipeline,
        default_text="full, or the default of the configuration",
        help="Set of tasks to run: parse, analyze, full, or a pipeline of the configuration",
    ),
}
"""The options by name, in the order in which help lists them."""


def common_option(name: str, **arguments: Any) -> Callable[[F], F]:
    """Return a decorator that adds a common option to a command. `arguments` override those of its definition."""
    definition = COMMON_OPTIONS[name]
    return option(*definition.declarations, **{**definition.arguments, **arguments})


def common_options() -> list[HelpfulOption]:
    """Return the options that help lists as common, with the defaults of their definitions."""
    options = (HelpfulOption(definition.declarations, **definition.arguments) for definition in COMMON_OPTIONS.values())
    return [definition for definition in options if definition.is_common]
