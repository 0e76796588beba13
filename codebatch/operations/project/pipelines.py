"""The pipelines of a project: built-in ones, and those of its configuration with the tasks that they need."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from codebatch.errors import InvalidConfiguration, InvalidInput
from codebatch.model.analysis.imports import IMPORT_TASK
from codebatch.model.plan import order_tasks
from codebatch.model.task import BUILT_IN_TASKS, PIPELINES, Pipeline
from codebatch.model.text.suggestions import closest_word, did_you_mean_text
from codebatch.operations.project.configuration import Configuration, default_configuration, load_configuration
from codebatch.operations.project.pipeline_settings import pipeline_place
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.entry_points import describe_task


def pipeline_names(configuration: Configuration) -> tuple[str, ...]:
    """Return the names of all pipelines, the built-in ones first."""
    return (*PIPELINES, *configuration.settings.pipelines)


def find_pipeline(configuration: Configuration, name: str | None) -> Pipeline:
    """Return a pipeline with all tasks that it needs, in dependency order. If `name` is None, the default pipeline.

    The pipeline `full` also contains every task that has a table `[tasks.NAME]`. Raises InvalidInput if there is no
    pipeline `name`, and InvalidConfiguration if the configuration names a pipeline or task that does not exist.
    """
    settings = configuration.settings
    chosen = settings.pipeline if name is None else name
    if chosen in settings.pipelines:
        return _complete_pipeline(configuration, chosen)
    pipeline = PIPELINES.get(chosen)
    if pipeline is None:
        hint = did_you_mean_text(chosen, pipeline_names(configuration))
        if name is None:
            raise InvalidConfiguration(f"{configuration.file}: unknown pipeline {chosen!r}", hint=hint)
        raise InvalidInput(f"unknown pipeline {chosen!r}", hint=hint)
    if chosen != "full":
        return pipeline
    return replace(pipeline, tasks=(*pipeline.tasks, *sorted(settings.tasks.keys() - set(pipeline.tasks))))


def project_code_tasks(configuration: Configuration, name: str) -> list[str]:
    """Return the tasks of a pipeline that run code of the project: commands and custom tasks. None of them is loaded.

    Tasks that only other tasks need are left out. If there is no pipeline `name`, the list is empty.
    """
    settings, catalogue = configuration.settings, configuration.catalogue
    table = settings.pipelines.get(name)
    tasks = table.tasks if table is not None else settings.tasks if name == "full" else ()
    return sorted({*catalogue.commands, *catalogue.custom_locations}.intersection(tasks))


def iter_pipelines(configuration: Configuration) -> Iterator[Pipeline]:
    """Yield all pipelines, the built-in ones first. Raises InvalidConfiguration."""
    for name in pipeline_names(configuration):
        yield find_pipeline(configuration, name)


def pipelines_with(tasks: Iterable[str], directory: Path) -> list[str]:
    """Return the names of the pipelines of the project of a directory that have at least one of some tasks.

    The default pipeline comes first. A pipeline with an error in its configuration is left out. If the configuration
    cannot be read, only built-in pipelines are returned.
    """
    try:
        configuration = load_configuration(directory)
    except (InvalidConfiguration, FileNotFoundError):  # The suggested command will report this error itself.
        configuration = default_configuration(directory)
    wanted, names = set(tasks), []
    for name in pipeline_names(configuration):
        with contextlib.suppress(InvalidInput):
            if not wanted.isdisjoint(find_pipeline(configuration, name).tasks):
                names.append(name)
    return sorted(names, key=lambda name: name != configuration.settings.pipeline)


def complete_tasks(catalogue: TaskCatalogue, tasks: Iterable[str]) -> tuple[str, ...]:
    """Return some tasks and all tasks that they need, each after the tasks that it needs.

    Built-in tasks come first, in the order of the pipeline `full`, then the others by name. So the order in which tasks
    are given does not change the plan. Raises InvalidConfiguration for a task that cannot be loaded, and InvalidInput
    if tasks need each other in a cycle.
    """
    needs: dict[str, tuple[str, ...]] = {}
    waiting = list(tasks)
    while waiting:
        name = waiting.pop()
        if name not in needs:
            needs[name] = describe_task(catalogue, name).needs
            waiting += needs[name]
    built_in = [name for name in BUILT_IN_TASKS if name in needs]
    try:
        return order_tasks((*built_in, *sorted(needs.keys() - set(built_in))), needs)
    except ValueError as error:
        raise InvalidInput(str(error)) from error


def _complete_pipeline(configuration: Configuration, name: str) -> Pipeline:
    """Return a pipeline of the configuration with all tasks that it needs. Raises InvalidConfiguration."""
    catalogue, settings = configuration.catalogue, configuration.settings
    table, file = settings.pipelines[name], configuration.file
    known = sorted({*catalogue.installed, *catalogue.locations} - {IMPORT_TASK})
    for task in table.tasks:
        if task not in known:
            suggestion = closest_word(task, known)
            raise _pipeline_error(
                file,
                name,
                f"unknown task {task!r}",
                f"did you mean {suggestion!r}?" if suggestion else f"one of: {', '.join(known)}",
            )
    if catalogue.isolated_loader is not None:
        catalogue.isolated_loader.prefetch({task: settings.tasks.get(task, {}) for task in table.tasks})
    try:
        tasks = complete_tasks(catalogue, table.tasks)
    except InvalidInput as error:
        raise _pipeline_error(file, name, error.message, error.hint) from error
    return Pipeline(name=name, summary=table.description, tasks=tasks)


def _pipeline_error(file: Path | None, name: str, problem: str, hint: str | None) -> InvalidConfiguration:
    assert file is not None, "only a file configures pipelines"
    return InvalidConfiguration(f"{pipeline_place(file, name)}: pipeline {name!r}: {problem}", hint=hint)
