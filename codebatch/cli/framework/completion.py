"""What shells are offered for words that name a batch, or a file of one. Asked for what cannot be told, nothing is."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from codebatch.cli.framework.groups import STORE_VARIABLE
from codebatch.errors import CodebatchError

if TYPE_CHECKING:
    from codebatch.store.batches.store import StoreDir

_TYPED = re.compile(r"[\w./+@][\w./+@-]*")
"""What stands for itself in every shell: a path of a tree that nobody vouches for is put into a command line."""


def complete_batch(ctx: click.Context, _: click.Parameter, word: str) -> list[str]:
    """The batches whose names or ids begin so."""
    from codebatch.operations.queries.completion import batches_beginning

    try:
        return list(filter(_TYPED.fullmatch, batches_beginning(_store(ctx), word)))
    except (CodebatchError, OSError, ValueError):
        return []


def complete_file(ctx: click.Context, _: click.Parameter, word: str) -> list[str]:
    """The files of the batch that is asked whose paths begin so, or the directories they are in."""
    from codebatch.operations.queries.completion import files_beginning

    reference = ctx.params.get("batch_reference")
    try:
        return list(filter(_TYPED.fullmatch, files_beginning(_store(ctx), reference, word)))
    except (CodebatchError, OSError, ValueError):
        return []


def complete_command(ctx: click.Context, _: click.Parameter, word: str) -> list[str]:
    """The commands of the batch that is asked, or of the latest that has any, whose ids begin so."""
    from codebatch.store.batches.resolution import resolve_batch
    from codebatch.store.work.work_batches import read_work

    try:
        batch = resolve_batch(_store(ctx), ctx.params.get("batch_reference"), kind="work")
        return [id_ for id_ in read_work(batch).order if id_.startswith(word) and _TYPED.fullmatch(id_)]
    except (CodebatchError, OSError, ValueError):
        return []


def _store(ctx: click.Context) -> StoreDir:
    """The store that a command line names so far, or the one that would be asked."""
    from codebatch.operations.project.stores import StorePlace

    told = (each.params.get("store") for each in (ctx, ctx.parent, ctx.find_root()) if each is not None)
    named = next(filter(None, told), None) or os.environ.get(STORE_VARIABLE)
    return StorePlace(Path(str(named)) if named else None).open()
