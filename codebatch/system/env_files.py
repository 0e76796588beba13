"""Env files, which hold variables: `.env` in the syntax of python-dotenv and Docker Compose (SPEC.md "Work files").

python-dotenv reads the lines. Its own look-up of variables is not used: it takes an unset one for the empty text, and
expands what stands in single quotes.
"""

from __future__ import annotations

import errno
import io
import re
from collections.abc import Mapping
from pathlib import Path

from codebatch.model.work.variables import VariableError, expand_variables
from codebatch.system.files.regular_files import read_regular

ENV_FILE_BYTES_MAX = 1 << 20
_SINGLE_QUOTED = re.compile(r"\s*(?:export\s+)?[^=]*=\s*'")


class EnvFileError(Exception):
    """An env file that cannot be read. The text begins with its name, and says nothing of its values."""


def read_env_file(path: Path, name: str, scope: Mapping[str, str], *, is_required: bool = True) -> dict[str, str]:
    """Return the variables of an env file, called `name` in messages. A later line is over an earlier one.

    `scope` has the variables that its values may use, besides those of the lines before. A name without a value stands
    for that of the scope, if there is one. If the file is missing and not required, there are none. Raises
    EnvFileError.
    """
    text = _text_of(path, name, is_required=is_required)
    from dotenv.parser import parse_stream  # 20 ms, of lists with env files alone

    found: dict[str, str] = {}
    for line in parse_stream(io.StringIO(text)):
        written = line.original.string
        place = f"{name}:{line.original.line + _blank_lines(written)}"
        if line.error or "\0" in written:
            raise EnvFileError(f"{place} is not NAME=VALUE")
        if line.key is None:
            continue
        if line.value is None:
            found |= {line.key: scope[line.key]} if line.key in scope else {}
        elif _SINGLE_QUOTED.match(written):
            found[line.key] = line.value
        else:
            try:
                found[line.key] = expand_variables(line.value, {**scope, **found})
            except VariableError as error:
                raise EnvFileError(f"{place}: {error}") from error
    return found


def _text_of(path: Path, name: str, *, is_required: bool) -> str:
    try:
        return read_regular(path, bytes_max=ENV_FILE_BYTES_MAX, is_link_followed=True).decode("utf-8-sig")
    except OSError as error:
        if not is_required and error.errno in (errno.ENOENT, errno.ENOTDIR):
            return ""
        raise EnvFileError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise EnvFileError(f"{name} is not UTF-8") from error
    except ValueError as error:  # A path with a NUL in it.
        raise EnvFileError(f"cannot read {name!r}: {error}") from error


def _blank_lines(text: str) -> int:
    """Return the number of blank lines at the begin of a text."""
    return text[: len(text) - len(text.lstrip())].count("\n")
