"""Planning: a snapshot and a pipeline are turned into a plan with tasks, cache keys, contexts and shards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from codebatch.errors import InvalidConfiguration, InvalidInput, ToolMismatch
from codebatch.model.analysis.shard_boundaries import cut_shards
from codebatch.model.digest import Digest
from codebatch.model.plan import ContextTable, Plan, PlannedTask, order_tasks, plan_digest, plan_items, task_key
from codebatch.model.shard import ShardRule
from codebatch.model.task import ContextFactory, JsonValue
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.entry_points import (
    describe_task,
    implementation_digest,
    load_declaration,
    task_mismatch_error,
    tool_versions,
)
from codebatch.plugins.settings import evaluate_context, prepare_settings, task_configuration, task_contexts
from codebatch.store.snapshots.snapshots import Snapshot


def check_overrides(catalogue: TaskCatalogue, overrides: Mapping[str, Mapping[str, JsonValue]]) -> None:
    """Raise InvalidConfiguration if settings name an unknown task or setting, or have an invalid value.

    `overrides` maps tasks to their settings.
    """
    if catalogue.isolated_loader is not None:
        catalogue.isolated_loader.prefetch(overrides)
    for name, settings in overrides.items():
        effective_config(catalogue, name, settings)


def effective_config(catalogue: TaskCatalogue, name: str, settings: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the complete configuration of a task as JSON: the settings and the defaults.

    Raises InvalidConfiguration.
    """
    isolated = catalogue.task_isolation(name)
    if isolated is not None:
        return isolated.configure(name, settings)
    return task_configuration(load_declaration(catalogue, name), settings)


def prepare_tasks(
    catalogue: TaskCatalogue,
    names: Sequence[str],
    overrides: Mapping[str, Mapping[str, JsonValue]],
    *,
    is_project: bool,
) -> tuple[dict[str, Mapping[str, JsonValue]], list[str]]:
    """Return for each task the settings to plan with, and notes for the user if they differ from the given settings.

    `is_project` is set if the planned tree is the project to which the settings belong. Raises InvalidConfiguration.
    """
    prepared, notes = dict(overrides), []
    for name in names:
        settings, isolated = overrides.get(name, {}), catalogue.task_isolation(name)
        if isolated is not None:
            changed = isolated.prepare(name, settings, is_project=is_project)
        else:
            changed = prepare_settings(load_declaration(catalogue, name), settings, is_project=is_project)
        if changed is not None:
            prepared[name], note = changed
            notes += [note] if note else []
    return prepared, notes


def resolve_tasks(
    catalogue: TaskCatalogue, names: Sequence[str], overrides: Mapping[str, Mapping[str, JsonValue]] | None = None
) -> tuple[PlannedTask, ...]:
    """Return the tasks as this installation would execute them, in dependency order.

    `overrides` maps tasks to settings. Raises InvalidConfiguration or InvalidInput.
    """
    catalogue.look_up_commands(names)
    declarations = {name: describe_task(catalogue, name) for name in names}
    try:
        ordered = order_tasks(names, {name: declaration.needs for name, declaration in declarations.items()})
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    planned: dict[str, PlannedTask] = {}
    for name in ordered:
        declaration = declarations[name]
        for need in declaration.needs:
            if declaration.scope == "file" and declarations[need].scope == "project":
                raise InvalidConfiguration(
                    f"the task {name!r} runs per file, so it cannot need the task {need!r}, which runs once per project"
                )
        config = effective_config(catalogue, name, (overrides or {}).get(name, {}))
        digest = implementation_digest(catalogue, declaration)
        tools = tool_versions(declaration)
        planned[name] = PlannedTask(
            name=name,
            version=declaration.version,
            scope=declaration.scope,
            needs=declaration.needs,
            implementation_digest=digest,
            config=config,
            tools=tools,
            contexts=tuple(sorted(_context_names(catalogue, name, config))),
            key=task_key(
                name=name,
                version=declaration.version,
                implementation_digest=digest,
                config=config,
                tools=tools,
                needs=[(need, planned[need].key) for need in declaration.needs],
            ),
        )
    return tuple(planned.values())


def _context_names(catalogue: TaskCatalogue, name: str, config: Mapping[str, JsonValue]) -> Iterable[str]:
    """Return the names of the contexts that a task with this configuration uses.

    A context is a value computed from the snapshot that a task's result may depend on.
    """
    isolated = catalogue.task_isolation(name)
    if isolated is not None:
        return isolated.context_names(name, config)
    return task_contexts(load_declaration(catalogue, name), config)


def missing_tools(catalogue: TaskCatalogue, tasks: Sequence[PlannedTask]) -> dict[str, str]:
    """Map each optional distribution that is not installed to the purpose for which a task needs it."""
    return {
        purpose: tool
        for task in tasks
        if catalogue.is_known(task.name)
        for tool, purpose in describe_task(catalogue, task.name).optional_tools.items()
        if tool not in task.tools
    }


def make_plan(
    catalogue: TaskCatalogue,
    snapshot: Snapshot,
    pipeline: str,
    tasks: Sequence[PlannedTask],
    rule: ShardRule,
    paths: tuple[bytes, ...] = (),
) -> Plan:
    """Return a plan. It depends only on the arguments and on the contexts that the tasks declare.

    `paths` restrict the items. Contexts are computed from the whole snapshot nevertheless.
    """
    items = plan_items(snapshot.entries, paths)
    functions: dict[str, ContextFactory] = {}
    contexts: dict[str, ContextTable] = {}
    for task in tasks:
        if catalogue.task_isolation(task.name) is None:
            functions.update(task_contexts(load_declaration(catalogue, task.name), task.config))
    for task in tasks:
        isolated = catalogue.task_isolation(task.name)
        if isolated is not None and not functions.keys() >= set(task.contexts):
            contexts |= isolated.evaluate_contexts(task.name, task.config, snapshot, items)
    contexts |= {name: evaluate_context(context, snapshot, items) for name, context in functions.items()}
    return Plan(
        digest=plan_digest(snapshot.digest, tasks, paths),
        snapshot_id=snapshot.id,
        snapshot_digest=snapshot.digest,
        pipeline=pipeline,
        paths=paths,
        tasks=tuple(tasks),
        shard_rule=rule,
        shards=tuple(cut_shards(items, rule)),
        contexts=dict(sorted(contexts.items())),
    )


def check_tools(catalogue: TaskCatalogue, plan: Plan, programs: Mapping[str, Digest] = MappingProxyType({})) -> None:
    """Raise ToolMismatch if the installed tasks differ from the tasks of a batch with its `plan` and `programs`.

    They differ if a task's installed version, code, configuration or tools would give it another cache key than in the
    plan, or if its program has other content. Then the batch cannot be resumed, because results of two versions would
    be mixed.
    """
    configs = {task.name: task.config for task in plan.tasks}
    for task in plan.tasks:
        if not catalogue.is_known(task.name):
            raise ToolMismatch(
                f"the batch has a task {task.name!r}, which this configuration does not have",
                hint=f"add [tasks.{task.name}] to your configuration, or make a new batch with: codebatch run PATH",
            )
        describe_task(catalogue, task.name)
        try:
            effective_config(catalogue, task.name, task.config)
        # The configuration comes from another version of the task, not from the user. So it is a mismatch of tools.
        except InvalidConfiguration as error:
            raise task_mismatch_error(task.name, ["config"]) from error
    installed = {task.name: task for task in resolve_tasks(catalogue, plan.task_names, configs)}
    for task in plan.tasks:
        installed_task = installed[task.name]
        if installed_task.key != task.key:
            different = [
                field
                for field in ("version", "implementation_digest", "config", "tools")
                if getattr(installed_task, field) != getattr(task, field)
            ]
            raise task_mismatch_error(task.name, different)
    for name, build in catalogue.program_builds(plan.task_names).items():
        if programs.get(name, build) != build:
            raise task_mismatch_error(name, ["program"])
