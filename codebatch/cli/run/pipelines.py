"""The commands `pipelines` and `pipeline`: the pipelines of the current project, and the tasks of one of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from codebatch.cli.answers.schemas import PipelineAnswer, PipelineRow, TaskRow
from codebatch.cli.framework.commands import command
from codebatch.cli.framework.completion import complete_pipeline
from codebatch.cli.framework.context import CommandContext, table_lines, with_common_options
from codebatch.model.task import PIPELINES
from codebatch.model.text.quantities import count_text
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.pipelines import find_pipeline, iter_pipelines
from codebatch.plugins.entry_points import describe_task, tool_versions

_DEFAULT_MARK = " (default)"
_GRAMMAR_PREFIX = "tree-sitter-"


@command()
@with_common_options
def pipelines(context: CommandContext) -> None:
    """List the pipelines.

    Lists the built-in pipelines, and those of the configuration of the current project with the tasks that they need.
    """
    configuration = load_configuration(Path.cwd())
    rows = [
        PipelineRow(
            name=pipeline.name,
            description=pipeline.summary,
            tasks=pipeline.tasks,
            default=pipeline.name == configuration.settings.pipeline,
            builtin=pipeline.name in PIPELINES,
        )
        for pipeline in iter_pipelines(configuration)
    ]
    context.print(
        rows,
        table_lines(
            (
                (row.name + (_DEFAULT_MARK if row.default else ""), ", ".join(row.tasks), row.description or "-")
                for row in rows
            ),
            ("pipeline", "tasks", "description"),
        ),
    )


@command()
@click.argument("name", shell_complete=complete_pipeline)
@with_common_options
def pipeline(context: CommandContext, name: str) -> None:
    """List the tasks of a pipeline.

    For each task, shows its version, the tasks that it needs and the kinds of records that it emits.
    """
    configuration = load_configuration(Path.cwd())
    chosen = find_pipeline(configuration, name)
    rows = []
    for task in chosen.tasks:
        declared = describe_task(configuration.catalogue, task)
        rows.append(
            TaskRow(
                task_id=declared.name,
                version=declared.version,
                tools=tool_versions(declared),
                scope=declared.scope,
                depends_on=declared.needs,
                kinds=declared.records,
                description=declared.summary,
            )
        )
    context.print(
        PipelineAnswer(name=chosen.name, description=chosen.summary, tasks=tuple(rows)),
        [
            f"{chosen.name}: {chosen.summary or ', '.join(chosen.tasks)}",
            *table_lines(
                (
                    (
                        row.task_id,
                        row.version,
                        ", ".join(row.depends_on) or "-",
                        tools_text(row.tools),
                        ", ".join(row.kinds),
                        row.description,
                    )
                    for row in rows
                ),
                ("task", "version", "needs", "tools", "records", "description"),
            ),
        ],
    )


def tools_text(tools: Mapping[str, str]) -> str:
    """Return the names and versions of tools as text, or `-` if there are none. Grammars of languages are counted."""
    texts = [f"{name} {version}" for name, version in sorted(tools.items()) if not name.startswith(_GRAMMAR_PREFIX)]
    grammars = len(tools) - len(texts)
    return ", ".join([*texts, *([count_text(grammars, "grammar")] if grammars else [])]) or "-"
