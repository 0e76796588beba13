"""Start of a command: arguments, environment, directory and standard input, with values in place of placeholders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from codebatch.system.processes.command_processes import ProcessNotStarted, ProcessStart
from codebatch_workers.commands.attempt_inputs import AttemptFiles
from codebatch_workers.commands.masking import SecretMasker

_VARIABLES_KEPT_IF_CLEAN = ("PATH", "HOME", "TMPDIR", "LANG", "TERM")
_STDIN_FILE_PREFIX = "file:"


def make_process_start(
    command: Command,
    run: str | tuple[str, ...],
    materials: AttemptFiles,
    *,
    batch: str,
    round_: int,
    root: Path,
    base_environment: Mapping[str, str],
    mark: str,
    tree_variables: Mapping[str, str],
    masker: SecretMasker,
    reads: bool = True,
) -> ProcessStart:
    """Return how to start a command, or the check of a command. Raises ProcessNotStarted.

    `run` is the command line. Paths are relative to `root`. `base_environment` is the caller's environment without
    variables that codebatch set. `mark` identifies the attempt in the environment of its processes. `tree_variables`
    are those of an attempt in a tree of its own. `masker` gets all variables whose values the command can know. Unless
    `reads` is set, the process has no standard input.
    """
    directory = root if command.cwd == "." else root / command.cwd
    own_variables = {
        "CODEBATCH_BATCH": batch,
        "CODEBATCH_TASK": command.id,
        "CODEBATCH_ROUND": str(round_),
        **materials.environment_variables(),
        **tree_variables,
        ATTEMPT_VARIABLE: mark,
        "PWD": str(directory),
    }
    values = materials.placeholder_values(command)
    try:
        arguments, variables = _expand_arguments(run, values, command.files)
        environment = _command_environment(command, root, base_environment, values, masker)
    except PlaceholderError as error:
        raise ProcessNotStarted(f"cannot build its arguments: {error}") from error
    return ProcessStart(
        arguments=arguments,
        directory=directory,
        environment={**environment, **variables, **own_variables},
        stdin=_stdin_path(command, root, materials.text) if reads else None,
        mark=mark,
    )


def _expand_arguments(
    run: str | tuple[str, ...], values: Mapping[str, str], files: Sequence[str]
) -> tuple[list[str], dict[str, str]]:
    """Return the arguments of a command, with values in place of placeholders, and variables for a shell script.

    A shell script gets each value in a variable, so that the shell does not parse it. Raises PlaceholderError.
    """
    longest_bytes = longest_argument(run, values)
    if longest_bytes > ARGUMENT_BYTES_MAX:
        raise PlaceholderError(f"an argument has {longest_bytes:,} bytes, more than {ARGUMENT_BYTES_MAX:,}")
    if isinstance(run, str):
        arguments = ["/bin/sh", "-c", shell_script(run)]
        return [*arguments, "sh", *files] if files else arguments, shell_variables(values)
    return expand_arguments(run, values, files), {}


def _command_environment(
    command: Command,
    root: Path,
    base_environment: Mapping[str, str],
    values: Mapping[str, str],
    masker: SecretMasker,
) -> dict[str, str]:
    """Return the environment of a command. Raises ProcessNotStarted.

    It starts with the caller's environment, or with the few variables that most programs need. Then each layer of
    settings in the command's definition adds or replaces variables.
    """

    def expand(text: str) -> str:
        return expand_arguments([text], values)[0]

    if command.clean_env:
        variables_by_name = {
            name: base_environment[name] for name in _VARIABLES_KEPT_IF_CLEAN if name in base_environment
        }
    else:
        variables_by_name = dict(base_environment)
    variables_by_name |= read_list_variables(command, root, base_environment, masker, expand)
    masker.add_variables(variables_by_name)
    return variables_by_name


def read_list_variables(
    command: Command,
    root: Path,
    base_environment: Mapping[str, str],
    masker: SecretMasker,
    expand: Callable[[str], str] = str,
) -> dict[str, str]:
    """Return the variables that the task list defines for a command. Raises ProcessNotStarted.

    `expand` replaces the placeholders in a text.
    """
    layers = [*(command.env_under or ()), EnvLayer(env=command.env)]
    list_variables: dict[str, str] = {}
    layer_variables: list[dict[str, str]] = []
    scope = dict(base_environment)
    masker.add_variables(scope)
    for layer in layers:
        layer_variables.append({})
        for file in layer.files:
            try:
                layer_variables[-1] |= read_env_file(root / file.path, file.path, scope, is_required=file.required)
            except EnvFileError as error:
                raise ProcessNotStarted(f"cannot build its environment: {error}") from error
            masker.add_variables(layer_variables[-1])
            scope |= layer_variables[-1]
    for layer, variables in zip(layers, layer_variables, strict=True):
        list_variables |= variables
        for name, value in layer.env.items():
            list_variables[name] = _expand_value(name, value, scope, expand)
    return list_variables


def _expand_value(name: str, value: str, scope: Mapping[str, str], expand: Callable[[str], str]) -> str:
    """Return the value of the variable `name`: the text `value`, in which variables and placeholders are expanded.

    Texts that the expansion inserts are not expanded again. Raises ProcessNotStarted.
    """
    try:
        return expand_value(value, scope, expand)
    except (PlaceholderError, VariableError) as error:
        raise ProcessNotStarted(f"cannot build its environment: {name}: {error}") from error


def _stdin_path(command: Command, root: Path, text: Path) -> Path | None:
    if command.stdin == "none":
        return None
    return text if command.stdin == "text" else root / command.stdin.removeprefix(_STDIN_FILE_PREFIX)
