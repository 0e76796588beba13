"""The methods that a method overrides or implements, by the declared bases of its class.

Bases are compared by their names, because classes of other files are not resolved here. In languages with structural
types, a type implements each interface whose methods it has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from codebatch.plugins.worker_services import fact_services
from codebatch.query.fields import JsonRecord
from codebatch.query.filters.filters import RecordFilter, last_name, path_bytes
from codebatch.query.sources.records import BatchRecords

_CLASSES_FOLLOWED_MAX = 100
"""Maximum number of bases that are followed for one question."""
_METHOD_TYPES = frozenset({"method", "property", "function"})
_CLASS_TYPES = frozenset({"class", "struct", "interface", "trait", "enum", "module"})


def find_overridden_methods(
    records: BatchRecords, methods: Sequence[JsonRecord], same_name: Sequence[JsonRecord]
) -> list[JsonRecord]:
    """Return the methods among `same_name` that one of `methods` overrides. All have one name. Raises StoreCorrupt."""
    chosen = {_key(record) for record in methods}
    others = [record for record in same_name if record.get("scope") and _key(record) not in chosen]
    if not others:
        return []
    hierarchy = _Hierarchy(records)
    found: dict[tuple[object, ...], JsonRecord] = {}
    for method in methods:
        if method["symbol_type"] not in _METHOD_TYPES or not method.get("scope"):
            continue
        bases = hierarchy.bases(path_bytes(method), str(method["scope"]))
        for other in others:
            owner = str(last_name(other["scope"]))
            is_base = owner in bases or hierarchy.is_implemented(other, method)
            if is_base and other["symbol_type"] in _METHOD_TYPES:
                found[_key(other)] = other
    return list(found.values())


def find_outer_bases(records: BatchRecords, method: JsonRecord) -> list[str]:
    """Return the bases of the class of a method that the batch does not define, by name. Raises StoreCorrupt."""
    if method["symbol_type"] not in _METHOD_TYPES or not method.get("scope"):
        return []
    bases = _Hierarchy(records).bases(path_bytes(method), str(method["scope"]))
    return sorted(base for base, is_defined in bases.items() if not is_defined)


def _key(record: JsonRecord) -> tuple[object, ...]:
    return path_bytes(record), record["qualified"]


class _Hierarchy:
    """The bases of classes. The records of a file are read once."""

    def __init__(self, records: BatchRecords) -> None:
        self._records = records
        self._by_path: dict[bytes, list[JsonRecord]] = {}

    def bases(self, path: bytes, scope: str) -> Mapping[str, bool]:
        """Return the names of all bases of a class, also of inherited ones, and whether the batch defines them."""
        found = dict.fromkeys(self._bases(path, scope), False)
        pending = list(found)
        while pending and len(found) <= _CLASSES_FOLLOWED_MAX:
            name = pending.pop()
            definitions = RecordFilter(kinds=("symbol",), names=(name,))
            for record in self._records.iter_records("symbols", definitions, is_auxiliary=True):
                if record["symbol_type"] in _CLASS_TYPES:
                    found[name] = True
                    inherited = {*self._bases(path_bytes(record), str(record["qualified"]))} - found.keys()
                    found |= dict.fromkeys(inherited, False)
                    pending += inherited
        return found

    def is_implemented(self, declared: JsonRecord, method: JsonRecord) -> bool:
        """Return whether a structural type has all methods of the interface that declares a method."""
        facts_of = fact_services().path_facts
        if not all(facts_of(path_bytes(record)).has_structural_types for record in (declared, method)):
            return False
        interface = self._methods(declared)
        is_interface = any(
            symbol["qualified"] == declared["scope"] and symbol["symbol_type"] == "interface"
            for symbol in self._symbols(path_bytes(declared))
        )
        return is_interface and interface <= self._methods_of_type(method, interface)

    def _methods_of_type(self, method: JsonRecord, names: Collection[str]) -> set[str]:
        """Return which of some names are methods of the type of a method, in all files of the package."""
        directory = path_bytes(method).rpartition(b"/")[0]
        wanted = RecordFilter(kinds=("symbol",), names=tuple(names))
        return {
            str(record["name"])
            for record in self._records.iter_records("symbols", wanted, is_auxiliary=True)
            if record.get("scope") == method["scope"] and path_bytes(record).rpartition(b"/")[0] == directory
        }

    def _methods(self, member: JsonRecord) -> set[str]:
        """Return the names of all methods of the type to which a member belongs, in the file of the member."""
        symbols = self._symbols(path_bytes(member))
        return {
            str(symbol["name"])
            for symbol in symbols
            if symbol.get("scope") == member["scope"] and symbol["symbol_type"] == "method"
        }

    def _symbols(self, path: bytes) -> Iterator[JsonRecord]:
        return (record for record in self._file_records(path) if record["kind"] == "symbol")

    def _bases(self, path: bytes, scope: str) -> Iterator[str]:
        for record in self._file_records(path):
            if record["kind"] == "edge" and record["edge_type"] == "inherits" and record.get("source") == scope:
                yield str(last_name(record["target"]))

    def _file_records(self, path: bytes) -> Sequence[JsonRecord]:
        if path not in self._by_path:
            item = self._records.find_items([path]).get(path)
            self._by_path[path] = [] if item is None else self._records.item_records("symbols", item) or []
        return self._by_path[path]
