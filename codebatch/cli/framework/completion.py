"""Shell completion of batch references, and of files and commands of a batch.

An error is never shown: nothing is suggested then.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import click

from codebatch.cli.framework.groups import STORE_VARIABLE
from codebatch.errors import CodebatchError
from codebatch.model.task import PIPELINES
from codebatch.operations.project.stores import StoreLocator
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import StoreDir

_COMPLETABLE_WORD = re.compile(r"[\w./+@][\w./+@-]*")
"""A pattern of words that need no quoting in any shell.

Only such words are suggested. Paths of a tree are untrusted and would become part of a command line.
"""


def complete_batch(ctx: click.Context, _: click.Parameter, word: str) -> list[str]:
    """Return the names and IDs of batches that begin with a word."""
    from codebatch.operations.queries.completion import batches_beginning

    try:
        return list(filter(_COMPLETABLE_WORD.fullmatch, batches_beginning(_completed_store(ctx), word)))
    except (CodebatchError, OSError, ValueError):
        return []


def complete_pipeline(_ctx: click.Context, _: click.Parameter, word: str) -> list[str]:
    """Return the names of the pipelines that begin with a word, of the project in the current directory."""
    from codebatch.operations.project.configuration import load_configuration
    from codebatch.operations.project.pipelines import pipeline_names

    try:
        names = pipeline_names(load_configuration(Path.cwd()))
    except (CodebatchError, OSError, ValueError):
        names = tuple(PIPELINES)
    return [name for name in names if name.startswith(word)]


def complete_file(ctx: click.Context, _: click.Parameter, word: str) -> list[str]:
    """Return the completions of a path in the queried batch: files and directories that begin with a word."""
    from codebatch.operations.queries.completion import files_beginning

    reference = ctx.params.get("batch_reference")
    try:
        return list(filter(_COMPLETABLE_WORD.fullmatch, files_beginning(_completed_store(ctx), reference, word)))
    except (CodebatchError, OSError, ValueError):
        return []


def complete_command(ctx: click.Context, _: click.Parameter, word: str) -> list[str]:
    """Return the IDs of commands that begin with a word.

    They are those of the queried batch, by default of the latest batch of commands.
    """
    from codebatch.store.work.work_batches import read_work
    from codebatch.work.control.batch_selection import select_batch

    try:
        batch = select_batch(_completed_store(ctx), ctx.params.get("batch_reference"))
        return [id_ for id_ in read_work(batch).order if id_.startswith(word) and _COMPLETABLE_WORD.fullmatch(id_)]
    except (CodebatchError, OSError, ValueError):
        return []


def complete_task(ctx: click.Context, _: click.Parameter, word: str) -> list[str]:
    """Return the names of tasks of the queried batch that begin with a word."""
    from codebatch.store.batches.batch_directory import is_work
    from codebatch.store.work.work_batches import read_work

    try:
        store, reference = _completed_store(ctx), ctx.params.get("batch_reference")
        batch = resolve_batch(store, reference, kind="analysis" if reference is None else "any")
        names = read_work(batch).order if is_work(batch) else batch.plan().task_names
    except (CodebatchError, OSError, ValueError):
        return []
    return [name for name in names if name.startswith(word) and _COMPLETABLE_WORD.fullmatch(name)]


def _completed_store(ctx: click.Context) -> StoreDir:
    """Return the store that is named on the incomplete command line, otherwise the default store."""
    options = (context.params.get("store") for context in (ctx, ctx.parent, ctx.find_root()) if context is not None)
    named = next(filter(None, options), None) or os.environ.get(STORE_VARIABLE)
    return StoreLocator(Path(str(named)) if named else None).open()
