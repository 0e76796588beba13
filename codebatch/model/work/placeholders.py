"""Placeholders: insertion of values into the commands of tasks (SPEC.md "Work files").

A value never becomes program text. If the command is a list, `{id}` is replaced by the value within its argument. If
the command is a script, `{id}` is replaced by `"$CODEBATCH_V_ID"`, including the quotes, and the value is in the
environment. So in a script a placeholder must not be inside quotes.

`{files}` must be a separate word. In a list it becomes one argument for each file, in a script `"$@"`. `{{id}}` is a
literal `{id}`. `${id}` is left unchanged, because it belongs to the shell.

`{tasks.NAME.outputs}` is the directory with the outputs of a needed task. NAME is written as in `needs`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from codebatch.model.digest import digest_bytes
from codebatch.model.text.suggestions import closest_word
from codebatch.model.work.shell_quoting import ShellContext, iter_places

PLACEHOLDER_NAMES = ("id", "title", "text", "text_file", "try", "answers_file", "previous_log", "session")
GROUP_PLACEHOLDER_NAMES = ("file", "files", "value", "line")
"""Placeholders that only a task with `each` may have. The kind of `each` determines which of them.

`value` may have keys: `value.KEY`.
"""
FUTURE_PLACEHOLDER_NAMES = ("report",)
ARGUMENT_BYTES_MAX = 128 * 1024 - 1
"""Maximum bytes of one argument on Linux, or of one variable with its name and `=` (MAX_ARG_STRLEN, execve(2))."""

_VARIABLE_PREFIX = "CODEBATCH_V_"
_SHELLS = {"sh", "bash", "dash", "ash", "ksh", "zsh"}
_SCRIPT_OPTION = re.compile(r"-[a-z]*c\Z")
_OUTPUTS_NAME = r"tasks\.(?:[^{}\s]|\{[A-Za-z_][A-Za-z0-9_.]*\})+\.outputs"
_NAME_PATTERN = rf"{_OUTPUTS_NAME}|[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)?"
_MISSPELT_OUTPUTS = re.compile(rf"(?<![{{$])\{{(?!{_OUTPUTS_NAME}\}})(tasks\.[^{{}}\s,;=]* *)\}}")
_PLACEHOLDER_IN_LIST = re.compile(rf"\{{\{{({_NAME_PATTERN})\}}\}}|(?<!\$)\{{({_NAME_PATTERN})\}}")
_FILES_PLACEHOLDER = "{files}"
_SCRIPT_NAMES = "|".join((_OUTPUTS_NAME, *PLACEHOLDER_NAMES, "files?", r"value(?:\.[A-Za-z0-9_]+)?", "line"))
_WORD_BOUNDARIES = set(" \t\n;&|()<>")
_PLACEHOLDER_IN_SCRIPT = re.compile(rf"\{{\{{({_SCRIPT_NAMES})\}}\}}|\{{({_SCRIPT_NAMES})\}}")


def is_outputs_name(name: str) -> bool:
    """Return whether a placeholder is replaced by the directory of a task's outputs."""
    return name.startswith("tasks.") and name.endswith(".outputs")


class PlaceholderError(ValueError):
    """The error that a placeholder is invalid, or that its value cannot be part of an argument.

    `placeholder_problems` lists the problems of invalid placeholders.
    """


class PlaceholderProblem(NamedTuple):
    """A problem with a placeholder. `text` is a sentence without its subject, and `hint` is advice on what to do."""

    text: str
    hint: str


_FILES_IN_WORD_PROBLEM = PlaceholderProblem(
    "has {files} inside a word, but {files} expands to several words", "write {files} as a separate argument"
)


def expand_arguments(run: Sequence[str], values: Mapping[str, str], files: Sequence[str] = ()) -> list[str]:
    """Return the arguments of a command list with values in place of placeholders. Raises PlaceholderError.

    Placeholders inside values are not expanded.
    """
    for value in (*values.values(), *files):
        _encode_argument(value)

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            return f"{{{match[1]}}}"
        if match[2] not in values:
            raise PlaceholderError(f"unknown placeholder {match[0]}")
        return values[match[2]]

    return [
        each
        for argument in run
        for each in (files if argument == _FILES_PLACEHOLDER else [_PLACEHOLDER_IN_LIST.sub(replace, argument)])
    ]


def shell_script(run: str) -> str:
    """Return a script in which each placeholder is replaced by a shell variable.

    Raises PlaceholderError for a placeholder inside quotes.
    """
    pieces: list[str] = []
    at = 0
    for match, inside in iter_places(run, _PLACEHOLDER_IN_SCRIPT):
        if match[2] and inside is not ShellContext.SCRIPT:
            raise PlaceholderError(f"{match[0]} is inside {inside.value}")
        pieces += run[at : match.start()], _shell_word(match[2]) if match[2] else f"{{{match[1]}}}"
        at = match.end()
    return "".join((*pieces, run[at:]))


def shell_variables(values: Mapping[str, str]) -> dict[str, str]:
    """Return the shell variables, by name, that a script from `shell_script` needs. Raises PlaceholderError.

    A value that is too long for a variable is omitted. Commands that use the placeholder of such a value are rejected
    when the task list is read.
    """
    variables: dict[str, str] = {}
    for name, value in values.items():
        variable = _variable_name(name)
        if len(variable) + 1 + len(_encode_argument(value)) <= ARGUMENT_BYTES_MAX:
            variables[variable] = value
    return variables


def used_placeholders(run: str | Sequence[str]) -> set[str]:
    """Return the names of the placeholders in a `run`: the command list or script of a task.

    It must have no problems.
    """
    if isinstance(run, str):
        return {match[2] for match, _ in iter_places(run, _PLACEHOLDER_IN_SCRIPT) if match[2]}
    return {match[2] for argument in run for match in _PLACEHOLDER_IN_LIST.finditer(argument) if match[2]}


def placeholder_problems(run: str | Sequence[str]) -> list[PlaceholderProblem]:
    """Return the problems with the placeholders of a `run` (a command list or script), in order."""
    if "{" not in (run if isinstance(run, str) else "".join(run)):
        return []
    texts = [run] if isinstance(run, str) else run
    misspelt = [match[1] for text in texts for match in _MISSPELT_OUTPUTS.finditer(text)]
    if misspelt:
        hint = "the outputs of a task are {tasks.ID.outputs}; see: codebatch help outputs"
        return [PlaceholderProblem(f"has {{{name}}}, which is not a placeholder", hint) for name in misspelt]
    if isinstance(run, str):
        places = [(match, inside) for match, inside in iter_places(run, _PLACEHOLDER_IN_SCRIPT) if match[2]]
        problems_found = [
            _quoted_placeholder_problem(match[2], inside)
            for match, inside in places
            if inside is not ShellContext.SCRIPT
        ]
        return problems_found or [
            _FILES_IN_WORD_PROBLEM for match, _ in places if match[2] == "files" and not _is_separate_word(run, match)
        ]
    problems_found = [
        _unknown_placeholder_problem(match[2])
        for argument in run
        for match in _PLACEHOLDER_IN_LIST.finditer(argument)
        if match[2] and not _is_known(match[2])
    ]
    problems_found += [
        _FILES_IN_WORD_PROBLEM
        for argument in run
        if argument != _FILES_PLACEHOLDER and "files" in used_placeholders([argument])
    ]
    return problems_found + _script_argument_problems(run)


def longest_argument(run: str | Sequence[str], values: Mapping[str, str]) -> int:
    """Return the size in bytes of the longest argument or variable of a command, after inserting `values`.

    `run` is the command list or script. It must have no problems.
    """
    if isinstance(run, str):
        used = {match[2] for match, _ in iter_places(run, _PLACEHOLDER_IN_SCRIPT) if match[2] in values}
        variables = [len(_variable_name(name)) + 1 + len(_encode_argument(values[name])) for name in used]
        return max(len(_encode_argument(shell_script(run))), *variables, 0)
    missing = dict.fromkeys(used_placeholders(run) - values.keys(), "")
    return max(
        (len(_encode_argument(argument)) for argument in expand_arguments(run, {**missing, **values})), default=0
    )


def _encode_argument(value: str) -> bytes:
    """Return a value as bytes. Raises PlaceholderError if it cannot be an argument.

    Bytes of paths that are not UTF-8 are surrogates in the value (os.fsdecode).
    """
    try:
        data = value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise PlaceholderError("a value is not valid Unicode") from error
    if b"\0" in data:
        raise PlaceholderError("a value contains a NUL character, which arguments cannot contain")
    return data


@functools.lru_cache(maxsize=1000)
def _variable_name(name: str) -> str:
    """Return the name of the shell variable that holds the value `name` in scripts."""
    if is_outputs_name(name):
        return f"{_VARIABLE_PREFIX}OUTPUTS_{digest_bytes(name.encode())[:16].upper()}"
    return f"{_VARIABLE_PREFIX}{name.upper().replace('.', '_')}"


def _shell_word(name: str) -> str:
    return '"$@"' if name == "files" else f'"${_variable_name(name)}"'


def _is_known(name: str) -> bool:
    return is_outputs_name(name) or (
        name.partition(".")[0] in (*PLACEHOLDER_NAMES, *GROUP_PLACEHOLDER_NAMES)
        and ("." not in name or name.startswith("value."))
    )


def _is_separate_word(script: str, match: re.Match[str]) -> bool:
    """Return whether the placeholder at `match` is a separate word of the script."""
    neighbors = script[match.start() - 1 : match.start()] + script[match.end() : match.end() + 1]
    return set(neighbors) <= _WORD_BOUNDARIES


def _quoted_placeholder_problem(name: str, inside: ShellContext) -> PlaceholderProblem:
    value = f"placeholders are quoted automatically: close the quotes before it, or write {_shell_word(name)} yourself"
    hint = f"{value}; for a literal {{{name}}} write {{{{{name}}}}}"
    return PlaceholderProblem(f"has {{{name}}} inside {inside.value}", hint)


def _unknown_placeholder_problem(name: str) -> PlaceholderProblem:
    known = (*PLACEHOLDER_NAMES, *GROUP_PLACEHOLDER_NAMES, "tasks.ID.outputs")
    if name.split(".", 1)[0] in FUTURE_PLACEHOLDER_NAMES:
        return PlaceholderProblem(
            f"has {{{name}}}, which this version does not support yet", f"placeholders: {_join_placeholders(known)}"
        )
    suggestion = closest_word(name, known)
    guess = f"placeholders: {_join_placeholders(known)}" if suggestion is None else f"did you mean {{{suggestion}}}?"
    hint = f"{guess} (for a literal {{{name}}} write {{{{{name}}}}})"
    return PlaceholderProblem(f"has {{{name}}}, which is not a placeholder", hint)


def _script_argument_problems(run: Sequence[str]) -> list[PlaceholderProblem]:
    """Return the problems of command lists like `["sh", "-c", "… {text}"]`, in which the shell would execute the value.

    `{id}` is allowed, because IDs contain only safe characters.
    """
    if len(run) < 3 or run[0].rpartition("/")[2] not in _SHELLS or not _SCRIPT_OPTION.match(run[1]):
        return []
    names = dict.fromkeys(
        match[2] for match in _PLACEHOLDER_IN_LIST.finditer(run[2]) if match[2] and _is_known(match[2])
    )
    names.pop("id", None)
    hint = "make `run` a string, in which placeholders are safe; or pass the value after the script and use $1"
    return [
        PlaceholderProblem(f"has {{{name}}} in a script, where the value would be executed", hint) for name in names
    ]


def _join_placeholders(names: Sequence[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)
