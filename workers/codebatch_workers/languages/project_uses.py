"""Uses of names in the files of a snapshot, by the rules of the language of each file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from codebatch.model.analysis.uses import SourceReader
from codebatch.model.record import Edge
from codebatch_workers.languages.registry import language_uses
from codebatch_workers.symbols.outline import file_outline
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.uses.snapshot_uses import SnapshotUses


def project_uses(
    read: SourceReader, links_of: Callable[[str], Sequence[Edge]], files_with_name: Callable[[str], Collection[str]]
) -> SnapshotUses:
    """Return the uses of names in a snapshot. The parameters are those of SnapshotUses."""
    return SnapshotUses(read, links_of, files_with_name, language_uses)


def defined_names(path: bytes, content: bytes, contexts: Mapping[str, bytes]) -> frozenset[str]:
    """Return the qualified names of the symbols that a file defines."""
    file = SourceFile(path, content, executable=False, contexts=contexts)
    symbols = file_outline(file).symbols
    return frozenset(symbol.qualified for symbol in symbols if symbol.symbol_type not in ("import", "parameter"))
