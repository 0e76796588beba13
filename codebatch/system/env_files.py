"""Reading of env files: files such as `.env` that define variables (SPEC.md "Work files").

Their syntax is that of Docker Compose. python-dotenv parses the lines. Its expansion of variables is not used, because
it replaces an unset variable by an empty text, expands variables in single quotes, and does not know `$NAME`.
"""

from __future__ import annotations

import errno
import io
import re
from collections.abc import Mapping
from pathlib import Path

from codebatch.model.work.variables import VariableError, interpolate
from codebatch.system.files.regular_files import read_regular

ENV_FILE_BYTES_MAX = 1 << 20
_SINGLE_QUOTED = re.compile(r"\s*(?:export\s+)?[^=]*=\s*'")


class EnvFileError(Exception):
    """The error that an env file cannot be read.

    The message begins with the name of the file and contains no values.
    """


def read_env_file(path: Path, name: str, scope: Mapping[str, str], *, is_required: bool = True) -> dict[str, str]:
    """Return the variables that an env file defines. Messages call the file `name`. Later lines override earlier ones.

    Values may contain variables of `scope` and of earlier lines. If a line has only the name of a variable, its value
    is taken from `scope`; if it is not in `scope`, the line is ignored. If the file is missing and not required, return
    an empty mapping. Raises EnvFileError.
    """
    text = _read_text(path, name, is_required=is_required)
    from dotenv.parser import parse_stream  # Imported here because only task lists with env files need it.

    variables: dict[str, str] = {}
    for line in parse_stream(io.StringIO(text)):
        source_text = line.original.string
        place = f"{name}:{line.original.line + _blank_lines(source_text)}"
        if line.error or "\0" in source_text:
            raise EnvFileError(f"{place} is not NAME=VALUE")
        if line.key is None:
            continue
        if line.value is None:
            variables |= {line.key: scope[line.key]} if line.key in scope else {}
        elif _SINGLE_QUOTED.match(source_text):
            variables[line.key] = line.value
        else:
            try:
                variables[line.key] = interpolate(line.value, {**scope, **variables})
            except VariableError as error:
                raise EnvFileError(f"{place}: {error}") from error
    return variables


def _read_text(path: Path, name: str, *, is_required: bool) -> str:
    try:
        return read_regular(path, bytes_max=ENV_FILE_BYTES_MAX, is_link_followed=True).decode("utf-8-sig")
    except OSError as error:
        if not is_required and error.errno in (errno.ENOENT, errno.ENOTDIR):
            return ""
        raise EnvFileError(f"cannot read {name}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise EnvFileError(f"{name} is not UTF-8") from error
    except ValueError as error:  # The path contains NUL.
        raise EnvFileError(f"cannot read {name!r}: {error}") from error


def _blank_lines(text: str) -> int:
    """Return the number of blank lines at the beginning of a text."""
    return text[: len(text) - len(text.lstrip())].count("\n")
