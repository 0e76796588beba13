"""The files and directories that a question is restricted to: PATH arguments, and `--path`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from codebatch.cli.framework.completion import complete_file
from codebatch.errors import InvalidInput
from codebatch.operations.api.batch import Batch

paths_argument = click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=complete_file)


def chosen_paths(batch: Batch, paths: Sequence[str], path: str) -> str | tuple[str, ...]:
    """Return what the arguments and `--path` ask for, as questions take it. Raises InvalidInput."""
    if paths and path:
        raise InvalidInput("--path cannot be used with PATH", hint="give all paths as arguments, or use --path only")
    return batch.find_paths(paths) if paths else path


def path_clause(path: str | tuple[str, ...]) -> str:
    """Return what restricts files to some paths, for people; empty if nothing does."""
    if isinstance(path, tuple):
        return f" in {', '.join(each.removeprefix('/') or 'the project' for each in path)}"
    return f" whose path contains {path!r}" if path else ""
