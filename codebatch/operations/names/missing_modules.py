"""Imports of modules that the batch lacks, but that are named like the files of a symbol.

Settings that are not read can map the beginning of a module name to any directory. So such an import may lead to the
symbol. No I/O.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from codebatch.model.record import Edge
from codebatch.plugins.worker_services import fact_services
from codebatch.query.answers.path_mentions import file_names, is_named_module, names_file


class MissingModules:
    """The modules with the names of the files of some symbols. A symbol is given by its path and qualified name."""

    def __init__(self, symbols: Collection[tuple[str, str]]) -> None:
        self._names = [file_names(file, is_unique=False) for file in {file for file, _ in symbols}]
        modules = {own.directories[-1] if own.is_directory else own.stem for own in self._names}
        self._modules = frozenset(modules)
        self._members = {(module, name) for module in modules for _, name in symbols}

    def are_imported(self, file: str, links: Sequence[Edge], language: str) -> bool:
        """Return whether a file in some language imports one of the modules, by its links that lead to no file."""
        has_roots = fact_services().language_facts(language).maps_module_roots
        targets = [edge.target.strip(".") for edge in links if edge.resolution == "external"]
        return any(
            any(names_file(target, names, file.split("/")[:-1]) for names in self._names)
            or (has_roots and any(is_named_module(target, *member) for member in self._members))
            for target in targets
            if not self._modules.isdisjoint(re.split(r"[./\\:]+", target))
        )
