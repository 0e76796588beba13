"""Names that declaration files of TypeScript (`.d.ts`) declare for all files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from tree_sitter import Node

from codebatch.model.record import Symbol
from codebatch_workers.uses.entities import DefinedEntity, Meaning, merge_meanings
from codebatch_workers.uses.file_facts import SourceFacts

_DECLARATION_ENDINGS = (".d.ts", ".d.mts", ".d.cts")
_FILES_MAX = 20
_MODULE_STATEMENTS = frozenset({"export_statement", "import_statement"})


class ScriptGlobals:
    """The global names of a snapshot.

    A file without imports and exports declares global names. Other files do so in `declare global`. The compiler may
    not include all of these files, so no such meaning is exact.
    """

    def __init__(
        self, facts_of: Callable[[str], SourceFacts | None], files_with_name: Callable[[str], Collection[str]]
    ) -> None:
        self._facts_of = facts_of
        self._files_with_name = files_with_name

    def find(self, name: str) -> Meaning | None:
        """Return what a name means that a file does not bind itself."""
        paths = sorted(path for path in self._files_with_name(name) if path.endswith(_DECLARATION_ENDINGS))
        return merge_meanings(self._declared(path, name) for path in paths[:_FILES_MAX])

    def _declared(self, path: str, name: str) -> Meaning | None:
        facts = self._facts_of(path)
        symbols = () if facts is None else tuple(_global_symbols(facts, name))
        return Meaning("inferred", (DefinedEntity(facts, symbols),)) if facts is not None and symbols else None


def _global_symbols(facts: SourceFacts, name: str) -> Iterator[Symbol]:
    root = None if facts.file.tree is None else facts.file.tree.root_node
    is_module = root is not None and any(child.type in _MODULE_STATEMENTS for child in root.named_children)
    for symbol in facts.symbols_named(name):
        node = facts.node_at(facts.offset(symbol))
        if node is not None and (not is_module or _is_in_global_block(node)):
            yield symbol


def _is_in_global_block(node: Node) -> bool:
    above: Node | None = node
    while above is not None and above.type != "ambient_declaration":
        above = above.parent
    while above is not None:
        if above.type == "ambient_declaration" and any(child.type == "global" for child in above.children):
            return True
        above = above.parent
    return False
