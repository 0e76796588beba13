"""What became of the symbols of two trees.

A symbol is known by the file, its qualified name and its type; of several (overloads, `#if` arms) that on the same line
of both texts, then the next in order. What is left on both sides moved from the one to the other where its name, type
and text, white space aside, are there once on both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from codebatch.compare.differences import Change
from codebatch.compare.places import FileMap, FilePlaces, iter_files, pair_places
from codebatch.compare.states import State
from codebatch.model.record import Symbol, SymbolType

# What is written where a symbol stands, without white space; empty where that is lost.
Written = Callable[[Literal["old", "new"], Symbol], bytes]

# Of these the same text in another file is no sign that anything went there.
_WRITTEN_ANYWHERE: frozenset[SymbolType] = frozenset(("import", "parameter"))


def compare_symbols(
    old: Mapping[bytes, Sequence[Symbol]], new: Mapping[bytes, Sequence[Symbol]], files: FileMap, written: Written
) -> Iterator[Change]:
    """What became of each symbol, by path and line, first those of files that are one; those that are equal too."""
    removed: list[Symbol] = []
    added: list[Symbol] = []
    for each in iter_files(old, new, files):
        yield from _compare_file(each, removed, added)
    moved = list(_moved(removed, added, written))
    for one, other in moved:
        yield Change(_state(one, other, is_moved=True), one, other)
    gone, come = {id(one) for one, _ in moved}, {id(other) for _, other in moved}
    yield from (Change("removed", one, None) for one in removed if id(one) not in gone)
    yield from (Change("added", None, other) for other in added if id(other) not in come)


def _compare_file(each: FilePlaces[Symbol], removed: list[Symbol], added: list[Symbol]) -> Iterator[Change]:
    ours, theirs = _by_name(each.old), _by_name(each.new)
    for name in sorted({*ours, *theirs}):
        old, new = ours.get(name, []), theirs.get(name, [])
        places = [symbol.line for symbol in old], [symbol.line for symbol in new]
        pairs, left, right = pair_places(*places, each.lines, are_heads=True)
        for one, other in pairs:
            is_moved = each.old_path != each.new_path
            yield Change(_state(old[one], new[other], is_moved=is_moved), old[one], new[other])
        removed += map(old.__getitem__, left)
        added += map(new.__getitem__, right)


def _by_name(symbols: Sequence[Symbol]) -> Mapping[tuple[str, str], list[Symbol]]:
    found: dict[tuple[str, str], list[Symbol]] = defaultdict(list)
    for symbol in sorted(symbols, key=lambda symbol: (symbol.line, symbol.column)):
        found[symbol.qualified, symbol.symbol_type].append(symbol)
    return found


def _state(old: Symbol, new: Symbol, *, is_moved: bool) -> State:
    if _signature(old) != _signature(new):
        return "changed"
    return "moved" if is_moved else "unchanged"


def _signature(symbol: Symbol) -> object:
    return symbol.parameters, symbol.decorators, symbol.visibility


def _moved(removed: Sequence[Symbol], added: Sequence[Symbol], written: Written) -> Iterator[tuple[Symbol, Symbol]]:
    removed, added = (
        [symbol for symbol in side if symbol.symbol_type not in _WRITTEN_ANYWHERE] for side in (removed, added)
    )
    both = {_named(symbol) for symbol in removed} & {_named(symbol) for symbol in added}
    ours, theirs = _once("old", removed, both, written), _once("new", added, both, written)
    yield from ((one, theirs[text]) for text, one in ours.items() if text in theirs)


def _named(symbol: Symbol) -> tuple[str, str]:
    return symbol.name, symbol.symbol_type


def _once(
    side: Literal["old", "new"], symbols: Iterable[Symbol], names: set[tuple[str, str]], written: Written
) -> dict[tuple[str, str, bytes], Symbol]:
    found: dict[tuple[str, str, bytes], list[Symbol]] = defaultdict(list)
    for symbol in symbols:
        if _named(symbol) in names and (text := written(side, symbol)):
            found[symbol.name, symbol.symbol_type, text].append(symbol)
    return {text: each[0] for text, each in found.items() if len(each) == 1}
