"""PATH arguments and the option `--path`. They restrict a query to files and directories."""

from __future__ import annotations

from collections.abc import Sequence

import click

from codebatch.cli.framework.completion import complete_file
from codebatch.errors import InvalidInput
from codebatch.operations.api.batch import Batch

paths_argument = click.argument("paths", nargs=-1, metavar="[PATH]...", shell_complete=complete_file)


def path_restriction(batch: Batch, paths: Sequence[str], path: str) -> str | tuple[str, ...]:
    """Return the path restriction of a query, from its arguments or `--path`. Raises InvalidInput if both are given."""
    if paths and path:
        raise InvalidInput("--path cannot be used with PATH", hint="give all paths as arguments, or use --path only")
    return batch.find_paths(paths) if paths else path


def path_clause(path: str | tuple[str, ...]) -> str:
    """Return the path restriction as text that is appended to a message. Return "" if there is no restriction."""
    if isinstance(path, tuple):
        return f" in {', '.join(restriction.removeprefix('/') or 'the project' for restriction in path)}"
    return f" whose path contains {path!r}" if path else ""
