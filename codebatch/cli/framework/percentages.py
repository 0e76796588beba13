"""Options whose value is a percentage."""

from __future__ import annotations

import re

import click

_PERCENTAGE = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)%?\Z", re.ASCII)


def parse_percentage(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """Return a percentage as a number from 0 to 1. Return 0 if the option was not given. Raises BadParameter."""
    if not value and ctx.get_parameter_source(str(param.name)) is click.core.ParameterSource.DEFAULT:
        return 0.0
    match = _PERCENTAGE.match(value)
    share = float(match[1]) / 100 if match else 0.0
    if not 0 < share <= 1:
        raise click.BadParameter(f"{value!r} is not a percentage above 0% and up to 100%", ctx, param)
    return share
