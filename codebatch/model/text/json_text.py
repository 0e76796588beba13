"""Strict parsing of untrusted JSON: duplicate keys, NaN and deep nesting are errors."""

from __future__ import annotations

import functools
import json
from math import isinf
from typing import NoReturn

from codebatch.model.text.toml import is_deeply_nested

_DIGITS_SHOWN_MAX = 40


class JsonError(ValueError):
    """The text is invalid JSON, or JSON that is not accepted. The message is the reason.

    `line` is the line of the error, counted from 1, or 0 if unknown.
    """

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def parse_json(text: str) -> object:
    """Return the value of a JSON text. Raises JsonError."""
    try:
        value: object = _cached_decoder().decode(text)
    except json.JSONDecodeError as error:
        raise JsonError(f"{error.msg} (column {error.colno})", error.lineno) from error
    except RecursionError as error:
        raise JsonError("it is nested too deeply") from error
    except JsonError:
        raise
    except ValueError as error:  # A number has too many digits.
        raise JsonError(str(error)) from error
    if r"\ud" in text.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise JsonError("it has an incomplete surrogate pair") from error
    if is_deeply_nested(value):
        raise JsonError("it is nested too deeply")
    return value


@functools.cache
def _cached_decoder() -> json.JSONDecoder:
    """Return a cached decoder, because each line of JSON Lines is decoded separately."""
    return json.JSONDecoder(object_pairs_hook=_parse_table, parse_constant=_refuse_constant, parse_float=_parse_float)


def _parse_table(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        duplicate = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise JsonError(f"duplicate key {duplicate!r}")
    return table


def _parse_float(digits: str) -> float:
    value = float(digits)
    if isinf(value):
        raise JsonError(f"{digits[:_DIGITS_SHOWN_MAX]} is too large")
    return value


def _refuse_constant(word: str) -> NoReturn:
    raise JsonError(f"{word} is not a number")
