"""Planning: a snapshot and a pipeline, resolved to tasks with keys, contexts and shards."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from codebatch.errors import InvalidConfiguration, InvalidInput
from codebatch.model.cutting import cut_shards
from codebatch.model.likeness import did_you_mean
from codebatch.model.plan import ContextTable, Plan, PlannedTask, items_of, order_tasks, plan_digest, task_key
from codebatch.model.shard import ShardRule
from codebatch.model.task import PIPELINES, Context, Json, Pipeline, TaskDeclaration
from codebatch.store.snapshots import Snapshot
from codebatch.system.plugins import implementation_digest, load_declaration, mismatch, tool_versions
from codebatch.system.task_catalogue import TaskCatalogue


def find_pipeline(name: str, configured: Iterable[str] = ()) -> Pipeline:
    """A pipeline by name; `full` runs every task that the configuration names besides. Raises InvalidInput."""
    pipeline = PIPELINES.get(name)
    if pipeline is None:
        raise InvalidInput(f"there is no pipeline {name!r}", hint=did_you_mean(name, PIPELINES))
    if name != "full":
        return pipeline
    return replace(pipeline, tasks=(*pipeline.tasks, *sorted(set(configured) - set(pipeline.tasks))))


def check_overrides(catalogue: TaskCatalogue, overrides: Mapping[str, Mapping[str, Json]]) -> None:
    """Refuse settings of tasks that there are not, that a task does not have, or that it cannot use.

    Raises InvalidConfiguration.
    """
    for name, settings in overrides.items():
        effective_config(load_declaration(catalogue, name), settings)


def effective_config(declaration: TaskDeclaration, settings: Mapping[str, Json]) -> dict[str, Json]:
    """A task's configuration, defaults included, as JSON. Raises InvalidConfiguration."""
    config: dict[str, Json] = msgspec.to_builtins(_config_of(declaration, settings))
    return config


def _config_of(declaration: TaskDeclaration, settings: Mapping[str, Json]) -> msgspec.Struct:
    known = [field.encode_name for field in msgspec.structs.fields(declaration.config)]
    for key in settings:
        if key not in known:
            raise InvalidConfiguration(
                f"the task {declaration.name!r} has no setting {key!r}",
                hint=did_you_mean(key, known) if known else "it has no settings",
            )
    with _refusing(declaration):
        return msgspec.convert(dict(settings), declaration.config)


# Where in the rules of lint something is wrong, and how each of their fields is written.
_OF_RULE = re.compile(r"at `\$\.rules(?:\[\d+\]|\[\.\.\.\])?\.?(\w*)")
_MISSING = re.compile(r"missing required field `(\w+)`")
_RULE_WRITTEN = {
    "": '[[tasks.lint.rules]] id = "no-print"',
    "bad": 'bad = ["print(1)\\n"]',
    "good": 'good = ["log(1)\\n"]',
    "id": 'id = "no-print"',
    "language": 'language = "python"',
    "message": 'message = "print is left in the code"',
    "pattern": 'pattern = "print($X)"',
    "query": "query = '(call) @report'",
    "severity": 'severity = "warning"',
}


@contextmanager
def _refusing(declaration: TaskDeclaration) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        hint = f"check [tasks.{declaration.name}] of your configuration"
        if wrong := _OF_RULE.search(str(error)):
            missing = _MISSING.search(str(error))
            example = _RULE_WRITTEN.get(missing[1] if missing else wrong[1])
            written = f"write {example}; " if example else ""
            hint = f"{written}a rule that works is written by: codebatch rules new ID"
        raise InvalidConfiguration(f"[tasks.{declaration.name}]: {error}", hint=hint) from error


def prepare_tasks(
    catalogue: TaskCatalogue,
    names: Sequence[str],
    overrides: Mapping[str, Mapping[str, Json]],
    *,
    is_project: bool,
) -> tuple[dict[str, Mapping[str, Json]], list[str]]:
    """The overrides to plan with, and what is done otherwise than they say, for people.

    `is_project` is whether what is planned is the project that they are of. Raises InvalidConfiguration.
    """
    prepared, notes = dict(overrides), []
    for name in names:
        declaration = load_declaration(catalogue, name)
        if declaration.prepare is None:
            continue
        written = _config_of(declaration, overrides.get(declaration.name, {}))
        with _refusing(declaration):
            config, note = declaration.prepare(written, is_project=is_project)
        prepared[declaration.name] = msgspec.to_builtins(config)
        notes += [note] if note else []
    return prepared, notes


def resolve_tasks(
    catalogue: TaskCatalogue, names: Sequence[str], overrides: Mapping[str, Mapping[str, Json]] | None = None
) -> tuple[PlannedTask, ...]:
    """The tasks as this installation would run them, in order. Raises InvalidConfiguration or InvalidInput."""
    declarations = {name: load_declaration(catalogue, name) for name in names}
    try:
        ordered = order_tasks(names, {name: declaration.needs for name, declaration in declarations.items()})
    except ValueError as error:
        raise InvalidInput(str(error)) from error
    planned: dict[str, PlannedTask] = {}
    for name in ordered:
        declaration = declarations[name]
        for need in declaration.needs:
            if declaration.scope == "file" and declarations[need].scope == "project":
                raise InvalidConfiguration(f"the file task {name!r} needs {need!r}, a task of project scope")
        config = effective_config(declaration, (overrides or {}).get(name, {}))
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
            contexts=tuple(sorted(contexts_of(declaration, config))),
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


def contexts_of(declaration: TaskDeclaration, config: Mapping[str, Json]) -> Mapping[str, Context]:
    """The contexts that a task declares as it is configured."""
    if declaration.configured_contexts is None:
        return declaration.contexts
    return {**declaration.contexts, **declaration.configured_contexts(_config_of(declaration, config))}


def missing_tools(catalogue: TaskCatalogue, tasks: Sequence[PlannedTask]) -> dict[str, str]:
    """What tasks cannot do for want of an optional tool, and the distribution that each lacks."""
    return {
        purpose: tool
        for task in tasks
        for tool, purpose in load_declaration(catalogue, task.name).optional_tools.items()
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
    """Resolve everything. A pure function of its arguments and the declared contexts.

    `paths` restrict the work; contexts see the whole snapshot all the same.
    """
    items = items_of(snapshot.entries, paths)
    functions: dict[str, Context] = {}
    for task in tasks:
        functions.update(contexts_of(load_declaration(catalogue, task.name), task.config))
    contexts: dict[str, ContextTable] = {}
    for name in sorted(functions):
        context = functions[name](snapshot)
        indexes: dict[bytes, int] = {}
        column = tuple(indexes.setdefault(context(item), len(indexes)) for item in items)
        contexts[name] = ContextTable(values=tuple(indexes), items=column)
    return Plan(
        digest=plan_digest(snapshot.digest, tasks, paths),
        snapshot_id=snapshot.id,
        snapshot_digest=snapshot.digest,
        pipeline=pipeline,
        paths=paths,
        tasks=tuple(tasks),
        shard_rule=rule,
        shards=tuple(cut_shards(items, rule)),
        contexts=contexts,
    )


def check_tools(catalogue: TaskCatalogue, plan: Plan) -> None:
    """Refuse to work on a plan whose tasks this installation would run differently. Raises ToolMismatch."""
    configs = {task.name: task.config for task in plan.tasks}
    for task in plan.tasks:
        declaration = load_declaration(catalogue, task.name)
        try:
            effective_config(declaration, task.config)
        except InvalidConfiguration as error:  # Not of a user: of a version with other settings.
            raise mismatch(task.name, ["config"]) from error
    here = {task.name: task for task in resolve_tasks(catalogue, plan.task_names, configs)}
    for task in plan.tasks:
        own = here[task.name]
        if own.key != task.key:
            different = [
                field
                for field in ("version", "implementation_digest", "config", "tools")
                if getattr(own, field) != getattr(task, field)
            ]
            raise mismatch(task.name, different)
