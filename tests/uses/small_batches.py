"""Batches of small trees, for questions about names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import codebatch as api
from codebatch import Batch
from codebatch.operations import ignore_note
from tests.support.command_line import write
from tests.support.inline_workers import inline, run


@contextmanager
def batch_of(root: Path, files: Mapping[str, str]) -> Iterator[Batch]:
    """Write files below `root`, analyse them, and open the batch. Incomplete answers are accepted."""
    for path, text in files.items():
        write(root / "tree" / path, text)
    with inline():
        result = run(root / "tree", root / "store")
    with api.open(root / "store", note=ignore_note) as store:
        yield store.batch(result.batch.id, partial=True)
