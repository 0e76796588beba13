"""Bounded parsing of untrusted TOML, and writing of values."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

import msgspec

TOML_BYTES_MAX = 1 << 20

_DEPTH_MAX = 100
# For a dotted key, tomllib takes time quadratic in the number of its parts. A key is on one line. So for each line, the
# square of its number of dots is computed. The sum of these squares may be at most this number times the length of the
# text.
_DOTS_SQUARED_SUM_MAX = 10
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class TomlError(ValueError):
    """The text is invalid TOML, or TOML that is not accepted. The message is the reason."""


def parse_toml(text: str, *, length_max: int = TOML_BYTES_MAX) -> dict[str, object]:
    """Return the document of a TOML text of at most `length_max` characters. Raises TomlError.

    Documents that would take long to parse, or that nest too deeply, are rejected too.
    """
    # Imported here because most commands find no file to parse.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    if len(text) > length_max:
        raise TomlError(f"it is longer than {length_max} characters")
    if sum(line.count(".") ** 2 for line in text.splitlines()) > _DOTS_SQUARED_SUM_MAX * length_max:
        raise TomlError("its keys have too many parts")
    try:
        document: dict[str, object] = tomllib.loads(text)
    except ValueError as error:  # Not only TOMLDecodeError: a number may have too many digits.
        raise TomlError(str(error)) from error
    except RecursionError as error:
        raise TomlError("it is nested too deeply") from error
    if is_deeply_nested(document):
        raise TomlError("it is nested too deeply")
    return document


def is_deeply_nested(document: object) -> bool:
    """Return whether the tables and lists of a document nest deeper than _DEPTH_MAX."""
    level: list[object] = [document]
    for _ in range(_DEPTH_MAX):
        if not level:
            return False
        level = [
            below
            for value in level
            if isinstance(value, dict | list)
            for below in (value.values() if isinstance(value, dict) else value)
        ]
    return bool(level)


def toml_value(value: object) -> str:
    """Return a value on one line of TOML. It must be of a type that a TOML parser returns."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():  # A TOML string is written as JSON, except that DEL is escaped too.
            return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(map(toml_value, value))}]"
        case Mapping():
            members = (f"{_toml_key(str(key))} = {toml_value(member)}" for key, member in value.items())
            return f"{{ {', '.join(members)} }}"
        case _:  # Python formats numbers, dates and times as TOML does.
            return str(value)


def _toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else toml_value(key)
