"""Parsing of the arguments of `work set`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from codebatch.errors import InvalidInput
from codebatch.model.text.quantities import parse_seconds
from codebatch.model.work.limits import Caps
from codebatch.model.work.request import TaskSettings
from codebatch.work.control.requests import LimitChanges

_NUMBER = re.compile(r"-?[0-9]{1,7}(\.[0-9]{1,6})?")
_TASK_SETTINGS = ("timeout", "retries", "priority", "cost-max", "attempts-max")
_LIST_SETTINGS = ("max-parallel", "cost-max", "attempts-max", "deadline")
_POOL_SETTING = re.compile(r"pool\.(?P<name>[^.]+)(?:\.(?P<cap>cost-max|attempts-max))?")
_HINT = (
    f"settings: {', '.join(_LIST_SETTINGS)}, pool.NAME, pool.NAME.cost-max, pool.NAME.attempts-max; "
    f"with TASK: {', '.join(_TASK_SETTINGS)}"
)


def parse_changes(arguments: Sequence[str]) -> LimitChanges:
    """Parse tasks and settings in any order. With tasks, all settings are theirs. Raises InvalidInput."""
    tasks = tuple(argument for argument in arguments if "=" not in argument)
    settings = [argument.partition("=")[::2] for argument in arguments if "=" in argument]
    values = dict(settings)
    if len(values) < len(settings):
        raise InvalidInput("a setting is given twice", hint=_HINT)
    known = _TASK_SETTINGS if tasks else _LIST_SETTINGS
    for name in values:
        if name not in known and (tasks or not _POOL_SETTING.fullmatch(name)):
            of_tasks = " of a task" if tasks else ""
            raise InvalidInput(f"unknown setting{of_tasks} {name!r}", hint=_HINT)
    if tasks:
        return LimitChanges(
            tasks=tasks,
            task_caps=_caps(values, ""),
            settings=TaskSettings(
                timeout_seconds=_seconds(values),
                retries=_integer(values, "retries"),
                priority=_integer(values, "priority"),
            ),
        )
    pools = [found for name in values if (found := _POOL_SETTING.fullmatch(name))]
    sizes = {found["name"]: _integer(values, found[0]) for found in pools if not found["cap"]}
    scopes = [""] if {"cost-max", "attempts-max"} & values.keys() else []
    scopes += dict.fromkeys(f"pool.{found['name']}" for found in pools if found["cap"])
    return LimitChanges(
        max_parallel=_integer(values, "max-parallel"),
        pools={name: size for name, size in sizes.items() if size is not None},
        caps={scope: _caps(values, f"{scope}." if scope else "") for scope in scopes},
        deadline=values.get("deadline", ""),
    )


def _caps(values: dict[str, str], prefix: str) -> Caps:
    return Caps(cost_max=_number(values, f"{prefix}cost-max"), attempts_max=_integer(values, f"{prefix}attempts-max"))


def _number(values: dict[str, str], name: str) -> float | None:
    if name not in values:
        return None
    if not _NUMBER.fullmatch(values[name]):
        hint = "for example: max-parallel=4, pool.browser=2, cost-max=7.5"
        raise InvalidInput(f"'{name}={values[name]}' is not NAME=NUMBER", hint=hint)
    return float(values[name])


def _integer(values: dict[str, str], name: str) -> int | None:
    number = _number(values, name)
    if number is not None and "." in values[name]:
        raise InvalidInput(f"{name} must be a whole number, not {values[name]}")
    return None if number is None else int(number)


def _seconds(values: dict[str, str]) -> float | None:
    if "timeout" not in values:
        return None
    seconds = parse_seconds(values["timeout"])
    if seconds is None:
        hint = "for example: timeout=90, timeout=1h30m"
        raise InvalidInput(f"'timeout={values['timeout']}' is not a duration", hint=hint)
    return seconds
