"""Planning: a snapshot and a pipeline, resolved to tasks with keys, contexts and shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codebatch.errors import InvalidConfiguration, InvalidInput, ToolMismatch
from codebatch.model.plan import ContextTable, Plan, PlannedTask, items_of, order_tasks, plan_digest, task_key
from codebatch.model.shard import ShardRule, cut_shards
from codebatch.model.task import PIPELINES, Context, Json, Pipeline
from codebatch.store.snapshots import Snapshot
from codebatch.system.plugins import implementation_digest, load_declaration, tool_versions


def find_pipeline(name: str) -> Pipeline:
    """A pipeline by name. Raises InvalidInput."""
    pipeline = PIPELINES.get(name)
    if pipeline is None:
        raise InvalidInput(f"there is no pipeline {name!r}", hint=f"one of: {', '.join(PIPELINES)}")
    return pipeline


def check_overrides(overrides: Mapping[str, Mapping[str, Json]]) -> None:
    """Refuse settings of tasks that there are not, that a task does not have, or that it cannot use.

    Raises InvalidConfiguration.
    """
    for name, settings in overrides.items():
        declaration = load_declaration(name)
        defaults = declaration.config
        for key, value in settings.items():
            if key not in defaults:
                raise InvalidConfiguration(
                    f"the task {name!r} has no setting {key!r}",
                    hint=f"one of: {', '.join(defaults)}" if defaults else "it has no settings",
                )
            if type(value) is not type(defaults[key]):
                raise InvalidConfiguration(
                    f"the setting {key!r} of the task {name!r} is a {type(defaults[key]).__name__}, not {value!r}"
                )
        try:
            declaration.check_config({**defaults, **settings})
        except (TypeError, ValueError) as error:
            raise InvalidConfiguration(str(error), hint=f"check [tasks.{name}] of your configuration") from error


def resolve_tasks(
    names: Sequence[str], overrides: Mapping[str, Mapping[str, Json]] | None = None
) -> tuple[PlannedTask, ...]:
    """The tasks as this installation would run them, in order. Raises InvalidConfiguration or InvalidInput."""
    declarations = {name: load_declaration(name) for name in names}
    try:
        ordered = order_tasks(names, {name: declaration.needs for name, declaration in declarations.items()})
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    planned: dict[str, PlannedTask] = {}
    for name in ordered:
        declaration = declarations[name]
        config = {**declaration.config, **(overrides or {}).get(name, {})}
        digest = implementation_digest(declaration)
        tools = tool_versions(declaration)
        planned[name] = PlannedTask(
            name=name,
            version=declaration.version,
            scope=declaration.scope,
            needs=declaration.needs,
            implementation_digest=digest,
            config=config,
            tools=tools,
            contexts=tuple(sorted(declaration.contexts)),
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


def make_plan(snapshot: Snapshot, pipeline: str, tasks: Sequence[PlannedTask], rule: ShardRule) -> Plan:
    """Resolve everything. A pure function of its arguments and the declared contexts."""
    items = items_of(snapshot.entries)
    functions: dict[str, Context] = {}
    for task in tasks:
        functions.update(load_declaration(task.name).contexts)
    contexts: dict[str, ContextTable] = {}
    for name in sorted(functions):
        context = functions[name](snapshot)
        indexes: dict[bytes, int] = {}
        column = tuple(indexes.setdefault(context(item), len(indexes)) for item in items)
        contexts[name] = ContextTable(values=tuple(indexes), items=column)
    return Plan(
        digest=plan_digest(snapshot.digest, tasks),
        snapshot_id=snapshot.id,
        snapshot_digest=snapshot.digest,
        pipeline=pipeline,
        tasks=tuple(tasks),
        shard_rule=rule,
        shards=tuple(cut_shards(items, rule)),
        contexts=contexts,
    )


def check_tools(plan: Plan) -> None:
    """Refuse to work on a plan whose tasks this installation would run differently. Raises ToolMismatch."""
    here = {task.name: task for task in resolve_tasks(plan.task_names, {task.name: task.config for task in plan.tasks})}
    for task in plan.tasks:
        own = here[task.name]
        if own.key != task.key:
            different = [
                field
                for field in ("version", "implementation_digest", "config", "tools")
                if getattr(own, field) != getattr(task, field)
            ]
            raise ToolMismatch(
                f"the batch was planned with another {task.name} ({', '.join(different) or 'needed task'} differ)",
                hint="use the installation that made the batch, or make a new batch with: codebatch run PATH",
            )
