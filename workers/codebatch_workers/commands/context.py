"""What a command is started with: its arguments, environment, directory and standard input, all values put in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from codebatch.model.work.command import Command, EnvLayer
from codebatch.model.work.placeholders import (
    ARGUMENT_BYTES_MAX,
    PlaceholderError,
    expand_arguments,
    longest_argument,
    shell_script,
    shell_variables,
)
from codebatch.model.work.variables import VariableError, expand_value
from codebatch.protocol.launch import ATTEMPT_VARIABLE
from codebatch.system.env_files import EnvFileError, read_env_file
from codebatch.system.processes.command_processes import NotStarted, ProcessStart
from codebatch_workers.commands.attempt_inputs import Materials

_KEPT_IF_CLEAN = ("PATH", "HOME", "TMPDIR", "LANG", "TERM")
_STDIN_FILE = "file:"


def process_start(
    command: Command,
    run: str | tuple[str, ...],
    materials: Materials,
    *,
    batch: str,
    round_: int,
    root: Path,
    given: Mapping[str, str],
    mark: str,
    reads: bool = True,
) -> ProcessStart:
    """How to start a command, or its check: what is to `run`. Raises NotStarted.

    `root` is what its paths are relative to, `given` the caller's environment, without our own marks. It has its
    standard input if it `reads`.
    """
    directory = root if command.cwd == "." else root / command.cwd
    ours = {
        "CODEBATCH_BATCH": batch,
        "CODEBATCH_TASK": command.id,
        "CODEBATCH_ROUND": str(round_),
        **materials.variables(),
        ATTEMPT_VARIABLE: mark,
        "PWD": str(directory),
    }
    values = materials.values(command)
    try:
        arguments, variables = _expanded(run, values, command.files)
        environment = _environment(command, root, given, values)
    except PlaceholderError as error:
        raise NotStarted(f"cannot build its arguments: {error}") from error
    return ProcessStart(
        arguments=arguments,
        directory=directory,
        environment={**environment, **variables, **ours},
        stdin=_stdin(command, root, materials.text) if reads else None,
        mark=mark,
    )


def _expanded(
    run: str | tuple[str, ...], values: Mapping[str, str], files: Sequence[str]
) -> tuple[list[str], dict[str, str]]:
    """The arguments of a command, and the variables that a script has its values in. Raises PlaceholderError."""
    longest = longest_argument(run, values)
    if longest > ARGUMENT_BYTES_MAX:
        raise PlaceholderError(f"an argument has {longest:,} bytes, more than {ARGUMENT_BYTES_MAX:,}")
    if isinstance(run, str):
        arguments = ["/bin/sh", "-c", shell_script(run)]
        return [*arguments, "sh", *files] if files else arguments, shell_variables(values)
    return expand_arguments(run, values, files), {}


def _environment(command: Command, root: Path, given: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """Return the caller's environment, or a little of it, under the layers of the command. Raises NotStarted."""
    if command.clean_env:
        found = {name: given[name] for name in _KEPT_IF_CLEAN if name in given}
    else:
        found = dict(given)
    layers = [*(command.env_under or ()), EnvLayer(env=command.env)]
    read: list[dict[str, str]] = []
    scope = dict(given)
    for layer in layers:
        read.append({})
        for file in layer.files:
            try:
                read[-1] |= read_env_file(root / file.path, file.path, scope, is_required=file.required)
            except EnvFileError as error:
                raise NotStarted(f"cannot build its environment: {error}") from error
            scope |= read[-1]
    for layer, variables in zip(layers, read, strict=True):
        found |= variables
        for name, value in layer.env.items():
            found[name] = _expanded_value(name, value, scope, values)
    return found


def _expanded_value(name: str, value: str, scope: Mapping[str, str], values: Mapping[str, str]) -> str:
    """Return the value of a variable: its variables and placeholders are replaced, each in the text as written."""
    try:
        return expand_value(value, scope, lambda text: expand_arguments([text], values)[0])
    except (PlaceholderError, VariableError) as error:
        raise NotStarted(f"cannot build its environment: {name}: {error}") from error


def _stdin(command: Command, root: Path, text: Path) -> Path | None:
    if command.stdin == "none":
        return None
    return text if command.stdin == "text" else root / command.stdin.removeprefix(_STDIN_FILE)
