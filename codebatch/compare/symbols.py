"""Comparison of the symbols of two trees.

A symbol is identified by its file, qualified name and type. Several symbols can have the same identity, for example
overloads or `#if` branches. Such symbols are matched by matching lines first, and the remaining ones in order.

A symbol has moved if its name, type and text, ignoring white space, are equal in another file of the other tree. They
must be unique on both sides.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from codebatch.compare.differences import Change
from codebatch.compare.places import FileMap, FilePlaces, iter_files, pair_places
from codebatch.compare.states import ChangeState
from codebatch.model.record import Symbol, SymbolType

# A function that returns the source text of a symbol without white space, or an empty text if the content is lost.
SourceTextReader = Callable[[Literal["old", "new"], Symbol], bytes]

# Symbols of these types often have equal text in several files. So equal text does not show that they moved.
_TYPES_WITH_COMMON_TEXTS: frozenset[SymbolType] = frozenset(("import", "parameter"))


def compare_symbols(
    old: Mapping[bytes, Sequence[Symbol]],
    new: Mapping[bytes, Sequence[Symbol]],
    files: FileMap,
    source_text: SourceTextReader,
) -> Iterator[Change]:
    """Yield a change for each symbol. Unchanged symbols are included.

    First come the symbols of matching files, sorted by path, then symbols that moved to other files, then all others.
    """
    removed: list[Symbol] = []
    added: list[Symbol] = []
    for file in iter_files(old, new, files):
        yield from _compare_file(file, removed, added)
    moved = list(_match_moved(removed, added, source_text))
    for one, other in moved:
        yield Change(_symbol_state(one, other, is_moved=True), one, other)
    moved_from, moved_to = {id(one) for one, _ in moved}, {id(other) for _, other in moved}
    yield from (Change("removed", one, None) for one in removed if id(one) not in moved_from)
    yield from (Change("added", None, other) for other in added if id(other) not in moved_to)


def _compare_file(file: FilePlaces[Symbol], removed: list[Symbol], added: list[Symbol]) -> Iterator[Change]:
    old_groups, new_groups = _group_by_name(file.old), _group_by_name(file.new)
    for name in sorted({*old_groups, *new_groups}):
        old, new = old_groups.get(name, []), new_groups.get(name, [])
        places = [symbol.line for symbol in old], [symbol.line for symbol in new]
        pairs, unpaired_old, unpaired_new = pair_places(*places, file.matching_lines, are_heads=True)
        for one, other in pairs:
            is_moved = file.old_path != file.new_path
            yield Change(_symbol_state(old[one], new[other], is_moved=is_moved), old[one], new[other])
        removed += map(old.__getitem__, unpaired_old)
        added += map(new.__getitem__, unpaired_new)


def _group_by_name(symbols: Sequence[Symbol]) -> Mapping[tuple[str, str], list[Symbol]]:
    symbols_by_name: dict[tuple[str, str], list[Symbol]] = defaultdict(list)
    for symbol in sorted(symbols, key=lambda symbol: (symbol.line, symbol.column)):
        symbols_by_name[symbol.qualified, symbol.symbol_type].append(symbol)
    return symbols_by_name


def _symbol_state(old: Symbol, new: Symbol, *, is_moved: bool) -> ChangeState:
    if _signature(old) != _signature(new):
        return "changed"
    return "moved" if is_moved else "unchanged"


def _signature(symbol: Symbol) -> object:
    return symbol.parameters, symbol.decorators, symbol.visibility


def _match_moved(
    removed: Sequence[Symbol], added: Sequence[Symbol], source_text: SourceTextReader
) -> Iterator[tuple[Symbol, Symbol]]:
    removed, added = (
        [symbol for symbol in side if symbol.symbol_type not in _TYPES_WITH_COMMON_TEXTS] for side in (removed, added)
    )
    common = {_name_and_type(symbol) for symbol in removed} & {_name_and_type(symbol) for symbol in added}
    removed_by_source, added_by_source = (
        _index_unique("old", removed, common, source_text),
        _index_unique("new", added, common, source_text),
    )
    yield from ((one, added_by_source[text]) for text, one in removed_by_source.items() if text in added_by_source)


def _name_and_type(symbol: Symbol) -> tuple[str, str]:
    return symbol.name, symbol.symbol_type


def _index_unique(
    side: Literal["old", "new"], symbols: Iterable[Symbol], names: set[tuple[str, str]], source_text: SourceTextReader
) -> dict[tuple[str, str, bytes], Symbol]:
    symbols_by_text: dict[tuple[str, str, bytes], list[Symbol]] = defaultdict(list)
    for symbol in symbols:
        if _name_and_type(symbol) in names and (text := source_text(side, symbol)):
            symbols_by_text[symbol.name, symbol.symbol_type, text].append(symbol)
    return {text: group[0] for text, group in symbols_by_text.items() if len(group) == 1}
