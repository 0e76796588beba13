"""`-o` and `--escape-formulas`: the form in which rows are written."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import get_args

import click

from codebatch.cli.groups import given_of
from codebatch.cli.options import Form
from codebatch.errors import InvalidInput

ESCAPE_FORMULAS = "escape_formulas"


def form_option(function: Callable[..., object]) -> Callable[..., object]:
    """Give a command `-o`, as its `form` argument, and `--escape-formulas`, which `escapes_formulas` reads."""

    @click.option(
        "-o", "--output", "form", type=click.Choice(get_args(Form)), help="The form of the answer; --json is json."
    )
    @click.option(
        "--escape-formulas",
        ESCAPE_FORMULAS,
        is_flag=True,
        help="With -o csv: put ' before texts that a spreadsheet takes for formulas.",
    )
    @functools.wraps(function)
    def wrapped(*arguments: object, form: Form | None, escape_formulas: bool, **options: object) -> object:
        if escape_formulas and form != "csv":
            raise InvalidInput("--escape-formulas needs -o csv", hint="add -o csv: -o csv --escape-formulas")
        given_of(click.get_current_context())[ESCAPE_FORMULAS] = escape_formulas
        return function(*arguments, form=form, **options)

    return wrapped


def escapes_formulas() -> bool:
    """Whether the command that runs was given `--escape-formulas`."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(given_of(context).get(ESCAPE_FORMULAS))
