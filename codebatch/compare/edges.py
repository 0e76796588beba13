"""Comparison of edges. Two edges of a file are equal if only their lines differ, or nothing.

Equal edges are counted. If a file had two equal edges and now has three, one edge was added. If the lines of the file
can be matched, they show which edge is new. An import of a file that was renamed is unchanged, because it still leads
to this file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from codebatch.compare.differences import Change
from codebatch.compare.places import FileMap, iter_files, pair_places
from codebatch.model.record import Edge


def compare_edges(
    old: Mapping[bytes, Sequence[Edge]], new: Mapping[bytes, Sequence[Edge]], files: FileMap
) -> Iterator[Change]:
    """Yield a change for each edge, sorted by path. Unchanged edges are included."""

    def current_target(target: str) -> str:
        path = files.new_path(target.encode("utf-8", "surrogateescape"))
        return target if path is None else path.decode("utf-8", "surrogateescape")

    for file in iter_files(old, new, files):
        old_by_key, new_by_key = _group_edges(file.old, current_target), _group_edges(file.new, str)
        for key in dict.fromkeys((*old_by_key, *new_by_key)):
            old_edges, new_edges = old_by_key.get(key, []), new_by_key.get(key, [])
            lines = [edge.line for edge in old_edges], [edge.line for edge in new_edges]
            pairs, unpaired_old, unpaired_new = pair_places(*lines, file.matching_lines)
            yield from (
                Change("unchanged", old_edges[old_index], new_edges[new_index]) for old_index, new_index in pairs
            )
            yield from (Change("removed", old_edges[index], None) for index in unpaired_old)
            yield from (Change("added", None, new_edges[index]) for index in unpaired_new)


def _group_edges(edges: Sequence[Edge], target_of: Callable[[str], str]) -> Mapping[Hashable, list[Edge]]:
    edges_by_key: dict[Hashable, list[Edge]] = defaultdict(list)
    for edge in sorted(edges, key=lambda edge: edge.line):
        leads_to_file = edge.edge_type == "depends" and edge.resolution != "external"
        target = target_of(edge.target) if leads_to_file else edge.target
        kind = edge.is_module, edge.module_file, edge.type_only, edge.deferred, edge.implicit
        key = (edge.edge_type, edge.source, target, edge.resolution, edge.imported, kind)
        edges_by_key[key].append(edge)
    return edges_by_key
