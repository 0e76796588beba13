"""The configuration and the contexts of a task for given settings. All functions run code of the declaration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from codebatch.errors import InvalidConfiguration
from codebatch.model.entry import Entry
from codebatch.model.plan import ContextTable
from codebatch.model.task import ContextFactory, JsonValue, SnapshotView, TaskDeclaration
from codebatch.model.text.suggestions import did_you_mean_text

# A pattern for the position of an error in the rules of `lint`. Below it: an example for each field of a rule.
_RULE_ERROR_LOCATION = re.compile(r"at `\$\.rules(?:\[\d+\]|\[\.\.\.\])?\.?(\w*)")
_MISSING_FIELD_ERROR = re.compile(r"missing required field `(\w+)`")
_RULE_FIELD_EXAMPLES = {
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


def task_configuration(declaration: TaskDeclaration, settings: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the configuration that results from settings, as JSON with defaults. Raises InvalidConfiguration."""
    config: dict[str, JsonValue] = msgspec.to_builtins(_decode_config(declaration, settings))
    return config


def prepare_settings(
    declaration: TaskDeclaration, settings: Mapping[str, JsonValue], *, is_project: bool
) -> tuple[Mapping[str, JsonValue], str] | None:
    """Return the settings for the plan, and a note for people. None if the task has no function `prepare`.

    The note describes how the returned settings differ from the given ones. Raises InvalidConfiguration.
    """
    if declaration.prepare is None:
        return None
    task_config = _decode_config(declaration, settings)
    with _rejecting_invalid(declaration):
        config, note = declaration.prepare(task_config, is_project=is_project)
    return msgspec.to_builtins(config), note


def task_contexts(declaration: TaskDeclaration, config: Mapping[str, JsonValue]) -> Mapping[str, ContextFactory]:
    """Return the contexts of a task by name: the declared ones, and those that the configuration adds."""
    if declaration.configured_contexts is None:
        return declaration.contexts
    return {**declaration.contexts, **declaration.configured_contexts(_decode_config(declaration, config))}


def evaluate_context(context: ContextFactory, snapshot: SnapshotView, items: Sequence[Entry]) -> ContextTable:
    """Compute the values that a context has for each item of a snapshot."""
    function = context(snapshot)
    indexes: dict[bytes, int] = {}
    column = tuple(indexes.setdefault(function(item), len(indexes)) for item in items)
    return ContextTable(values=tuple(indexes), items=column)


def _decode_config(declaration: TaskDeclaration, settings: Mapping[str, JsonValue]) -> msgspec.Struct:
    known = [field.encode_name for field in msgspec.structs.fields(declaration.config)]
    for key in settings:
        if key not in known:
            raise InvalidConfiguration(
                f"the task {declaration.name!r} has no setting {key!r}",
                hint=did_you_mean_text(key, known) if known else "this task has no settings",
            )
    with _rejecting_invalid(declaration):
        return msgspec.convert(dict(settings), declaration.config)


@contextmanager
def _rejecting_invalid(declaration: TaskDeclaration) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        hint = f"check [tasks.{declaration.name}] of your configuration"
        if rule_error := _RULE_ERROR_LOCATION.search(str(error)):
            missing = _MISSING_FIELD_ERROR.search(str(error))
            example = _RULE_FIELD_EXAMPLES.get(missing[1] if missing else rule_error[1])
            example_text = f"for example: {example}; " if example else ""
            hint = f"{example_text}create a working rule with: codebatch rules new ID"
        raise InvalidConfiguration(f"[tasks.{declaration.name}]: {error}", hint=hint) from error
