"""A matrix of imports between directories. Its order is such that only cycles have cells below the diagonal. No I/O.

It is a design structure matrix (Steward 1981). It starts with one directory. The directory with most files is split
repeatedly, until the number of directories reaches the limit.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping

from codebatch.model.graph import strong_components
from codebatch.query.answers.dependencies import FileImport
from codebatch.report.contents import ImportMatrix
from codebatch.report.limits import cut_path

_DirectoryPair = tuple[str, str]


def make_matrix(imports: Iterable[FileImport], directories_max: int, text: int) -> ImportMatrix | None:
    """Return the matrix of imports, without imports that do not certainly lead to a file. Return None if it is empty.

    `directories_max` limits the directories, `text` the characters of a name.
    """
    pairs = {
        (file_import.source, file_import.target)
        for file_import in imports
        if file_import.resolution != "name" and file_import.source != file_import.target
    }
    if not pairs:
        return None
    directory_of = group_files({path for pair in pairs for path in pair}, directories_max)
    counted = Counter((directory_of[source], directory_of[target]) for source, target in pairs)
    between = {pair: count for pair, count in counted.items() if pair[0] != pair[1]}
    files = Counter(directory_of.values())
    ordered, cycles = _order_directories(sorted(files), between)
    place = {directory: number for number, directory in enumerate(ordered)}
    return ImportMatrix(
        directories=[cut_path(directory, text) for directory in ordered],
        files=[files[directory] for directory in ordered],
        inside=[counted[directory, directory] for directory in ordered],
        cycles=[cycles.get(directory, 0) for directory in ordered],
        cells=sorted((place[source], place[target], count) for (source, target), count in between.items()),
    )


def group_files(paths: Iterable[str], groups_max: int) -> dict[str, str]:
    """Map each file to the directory that represents it in the matrix.

    The directory with most files is split first. The files that are directly in a split directory form a group with the
    name of this directory. A directory is not split if the number of groups would exceed `groups_max`.
    """
    groups: dict[str, list[str]] = {"": sorted(paths)}
    waiting = [(-len(groups[""]), "")]
    while waiting:
        _, directory = heapq.heappop(waiting)
        parts: dict[str, list[str]] = {}
        for path in groups[directory]:
            below, slash, _ = path[len(directory) :].partition("/")
            parts.setdefault(f"{directory}{below}/" if slash else directory, []).append(path)
        if len(groups) - 1 + len(parts) > groups_max:
            continue
        del groups[directory]
        groups.update(parts)
        for part, files in parts.items():
            if part != directory:
                heapq.heappush(waiting, (-len(files), part))
    return {path: directory.rstrip("/") or "." for directory, files in groups.items() for path in files}


def _order_directories(
    directories: list[str], between: Mapping[_DirectoryPair, int]
) -> tuple[list[str], dict[str, int]]:
    """Return the directories, importers first, and for each directory in a cycle the number of this cycle."""
    graph: dict[str, list[str]] = {directory: [] for directory in directories}
    for source, target in sorted(between):
        graph[source].append(target)
    ordered: list[str] = []
    cycles: dict[str, int] = {}
    number = 0
    for component in reversed(list(strong_components(graph))):
        if len(component) > 1:
            number += 1
            cycles.update(dict.fromkeys(component, number))
        ordered += sorted(component, key=lambda name: (-_import_surplus(name, component, between), name))
    return ordered, cycles


def _import_surplus(directory: str, within: Iterable[str], between: Mapping[_DirectoryPair, int]) -> int:
    """Return the imports of directories in `within` by `directory`, minus their imports of `directory`."""
    return sum(between.get((directory, other), 0) - between.get((other, directory), 0) for other in within)
