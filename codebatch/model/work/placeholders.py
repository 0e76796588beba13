"""Placeholders: how what a command has to say comes into what it runs (SPEC.md "Work files").

Values are never program text. In a list `{id}` becomes the value, within its argument. In a script it becomes
`"$CODEBATCH_V_ID"`, with the quotes, and the value stands in the environment: so it cannot stand inside of quotes.
`{files}`, which stands alone, becomes as many arguments as there are files: in a script it is `"$@"`.
`{{id}}` is `{id}` itself, and so is `${id}` left as it is: a shell's own.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from codebatch.model.text.suggestions import closest
from codebatch.model.work.shell_quoting import Inside, iter_places

NAMES = ("id", "title", "text", "text_file", "try", "answers_file", "previous_log", "session")
NAMES_OF_EACH = ("file", "files", "value", "line")
"""Those of a task with `each`: which of them it has that says. Of `value` there may be many: `value.KEY`."""
NAMES_TO_COME = ("report",)
ARGUMENT_BYTES_MAX = 128 * 1024 - 1
"""What Linux takes as one argument, or one variable with its name and `=` (MAX_ARG_STRLEN, execve(2))."""

_VARIABLE = "CODEBATCH_V_"
_SHELLS = {"sh", "bash", "dash", "ash", "ksh", "zsh"}
_SCRIPT_OPTION = re.compile(r"-[a-z]*c\Z")
_NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)?"
_IN_LIST = re.compile(rf"\{{\{{({_NAME})\}}\}}|(?<!\$)\{{({_NAME})\}}")
_FILES = "{files}"
_OURS = "|".join((*NAMES, "files?", r"value(?:\.[A-Za-z0-9_]+)?", "line"))
_AROUND_A_WORD = set(" \t\n;&|()<>")
_IN_SCRIPT = re.compile(rf"\{{\{{({_OURS})\}}\}}|\{{({_OURS})\}}")


class PlaceholderError(ValueError):
    """A value that no argument can have, or a placeholder that `problems` tells of."""


class Problem(NamedTuple):
    """What is wrong with a placeholder, as a sentence without its subject, and what to do."""

    told: str
    hint: str


_IN_A_WORD = Problem(
    "has {files} inside a word, but {files} expands to several words", "write {files} as a separate argument"
)


def expand_arguments(run: Sequence[str], values: Mapping[str, str], files: Sequence[str] = ()) -> list[str]:
    """The arguments of a list. What a value holds is not expanded again. Raises PlaceholderError."""
    for value in (*values.values(), *files):
        _check(value)

    def replaced(found: re.Match[str]) -> str:
        if found[1]:
            return f"{{{found[1]}}}"
        if found[2] not in values:
            raise PlaceholderError(f"unknown placeholder {found[0]}")
        return values[found[2]]

    return [each for argument in run for each in (files if argument == _FILES else [_IN_LIST.sub(replaced, argument)])]


def shell_script(run: str) -> str:
    """The script of a string: variables in the place of placeholders. Raises PlaceholderError for one in quotes."""
    pieces: list[str] = []
    at = 0
    for found, inside in iter_places(run, _IN_SCRIPT):
        if found[2] and inside is not Inside.SCRIPT:
            raise PlaceholderError(f"{found[0]} is inside {inside.value}")
        pieces += run[at : found.start()], _shell_word(found[2]) if found[2] else f"{{{found[1]}}}"
        at = found.end()
    return "".join((*pieces, run[at:]))


def shell_variables(values: Mapping[str, str]) -> dict[str, str]:
    """The environment that such a script needs. Raises PlaceholderError.

    A value longer than a variable can be is left out: a command that has a placeholder for one is refused when read.
    """
    variables: dict[str, str] = {}
    for name, value in values.items():
        variable = _variable(name)
        if len(variable) + 1 + len(_check(value)) <= ARGUMENT_BYTES_MAX:
            variables[variable] = value
    return variables


def names_used(run: str | Sequence[str]) -> set[str]:
    """The placeholders of a `run`. For one without problems."""
    if isinstance(run, str):
        return {found[2] for found, _ in iter_places(run, _IN_SCRIPT) if found[2]}
    return {found[2] for argument in run for found in _IN_LIST.finditer(argument) if found[2]}


def problems(run: str | Sequence[str]) -> list[Problem]:
    """What is wrong with the placeholders of a `run`, in their order."""
    if "{" not in (run if isinstance(run, str) else "".join(run)):
        return []
    if isinstance(run, str):
        places = [(found, inside) for found, inside in iter_places(run, _IN_SCRIPT) if found[2]]
        wrong = [_in_quotes(found[2], inside) for found, inside in places if inside is not Inside.SCRIPT]
        return wrong or [_IN_A_WORD for found, _ in places if found[2] == "files" and not _is_alone(run, found)]
    wrong = [
        _unknown(found[2])
        for argument in run
        for found in _IN_LIST.finditer(argument)
        if found[2] and not _is_known(found[2])
    ]
    wrong += [_IN_A_WORD for argument in run if argument != _FILES and "files" in names_used([argument])]
    return wrong + _in_scripts_of_lists(run)


def longest_argument(run: str | Sequence[str], values: Mapping[str, str]) -> int:
    """The bytes of the longest argument, or variable, that some values make. For a `run` without problems."""
    if isinstance(run, str):
        used = {found[2] for found, _ in iter_places(run, _IN_SCRIPT) if found[2] in values}
        variables = [len(_variable(name)) + 1 + len(_check(values[name])) for name in used]
        return max(len(_check(shell_script(run))), *variables, 0)
    missing = dict.fromkeys(names_used(run) - values.keys(), "")
    return max((len(_check(argument)) for argument in expand_arguments(run, {**missing, **values})), default=0)


def _check(value: str) -> bytes:
    """The bytes of a value. A path may hold bytes that are no UTF-8, as `os.fsdecode` has them."""
    try:
        data = value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise PlaceholderError("a value is not valid Unicode") from error
    if b"\0" in data:
        raise PlaceholderError("a value contains a NUL character, which arguments cannot contain")
    return data


@functools.lru_cache(maxsize=1000)
def _variable(name: str) -> str:
    """The variable that a script has a value in."""
    return f"{_VARIABLE}{name.upper().replace('.', '_')}"


def _shell_word(name: str) -> str:
    return '"$@"' if name == "files" else f'"${_variable(name)}"'


def _is_known(name: str) -> bool:
    return name.partition(".")[0] in (*NAMES, *NAMES_OF_EACH) and ("." not in name or name.startswith("value."))


def _is_alone(script: str, found: re.Match[str]) -> bool:
    """Whether a placeholder is a word of its own."""
    around = script[found.start() - 1 : found.start()] + script[found.end() : found.end() + 1]
    return set(around) <= _AROUND_A_WORD


def _in_quotes(name: str, inside: Inside) -> Problem:
    value = f"placeholders are quoted automatically: close the quotes before it, or write {_shell_word(name)} yourself"
    hint = f"{value}; for a literal {{{name}}} write {{{{{name}}}}}"
    return Problem(f"has {{{name}}} inside {inside.value}", hint)


def _unknown(name: str) -> Problem:
    known = (*NAMES, *NAMES_OF_EACH)
    if name.split(".", 1)[0] in NAMES_TO_COME:
        return Problem(f"has {{{name}}}, which this version does not support yet", f"placeholders: {_shown(known)}")
    meant = closest(name, known)
    guess = f"placeholders: {_shown(known)}" if meant is None else f"did you mean {{{meant}}}?"
    hint = f"{guess} (for a literal {{{name}}} write {{{{{name}}}}})"
    return Problem(f"has {{{name}}}, which is not a placeholder", hint)


def _in_scripts_of_lists(run: Sequence[str]) -> list[Problem]:
    """`["sh", "-c", "… {text}"]` would run what the text says. An id is made of harmless characters."""
    if len(run) < 3 or run[0].rpartition("/")[2] not in _SHELLS or not _SCRIPT_OPTION.match(run[1]):
        return []
    names = dict.fromkeys(found[2] for found in _IN_LIST.finditer(run[2]) if found[2] and _is_known(found[2]))
    names.pop("id", None)
    hint = "make `run` a string, in which placeholders are safe; or pass the value after the script and use $1"
    return [Problem(f"has {{{name}}} in a script, where the value would be executed", hint) for name in names]


def _shown(names: Sequence[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)
