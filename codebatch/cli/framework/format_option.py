"""The options `-o` and `--escape-formulas`: the output format of rows."""

from __future__ import annotations

import functools
from collections.abc import Callable

import click
import msgspec

from codebatch.cli.framework.common_options import OutputForm, common_option
from codebatch.cli.framework.context import CommandContext
from codebatch.cli.framework.groups import get_global_options
from codebatch.errors import InvalidInput

ESCAPE_FORMULAS_KEY = "escape_formulas"


def resolve_form(context: CommandContext, form: OutputForm | None) -> tuple[OutputForm | None, CommandContext]:
    """Return the output format, or None for the default, and the context. With `-o json`, the context prints JSON.

    Raises InvalidInput if `--json` and another format are given.
    """
    if context.as_json and form not in (None, "json"):
        raise InvalidInput(f"-o {form} cannot be used with --json")
    form = "json" if context.as_json else form
    return form, msgspec.structs.replace(context, as_json=form == "json")


def form_option(function: Callable[..., object]) -> Callable[..., object]:
    """Add `-o` and `--escape-formulas` to a command.

    The command receives `-o` as the argument `form`. `escapes_formulas` returns whether `--escape-formulas` was given.
    """

    @common_option("output")
    @common_option("escape-formulas")
    @functools.wraps(function)
    def wrapped(*arguments: object, form: OutputForm | None, escape_formulas: bool, **options: object) -> object:
        if escape_formulas and form != "csv":
            raise InvalidInput("--escape-formulas needs -o csv", hint="use both options: -o csv --escape-formulas")
        get_global_options(click.get_current_context())[ESCAPE_FORMULAS_KEY] = escape_formulas
        return function(*arguments, form=form, **options)

    return wrapped


def escapes_formulas() -> bool:
    """Return whether `--escape-formulas` was given to the current command."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(get_global_options(context).get(ESCAPE_FORMULAS_KEY))
