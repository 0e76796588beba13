"""What became of the edges of two trees: counted by all but the line.

An edge that a file has three times and had twice was added once: which of them is told by lines, where they are known.
An import that leads to a file leads to the same file, whatever that is called now.
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
    """What became of each edge, by path; those that are in both too."""

    def now(target: str) -> str:
        path = files.new_path(target.encode("utf-8", "surrogateescape"))
        return target if path is None else path.decode("utf-8", "surrogateescape")

    for each in iter_files(old, new, files):
        ours, theirs = _by_key(each.old, now), _by_key(each.new, str)
        for key in dict.fromkeys((*ours, *theirs)):
            one, other = ours.get(key, []), theirs.get(key, [])
            lines = [edge.line for edge in one], [edge.line for edge in other]
            pairs, left, right = pair_places(*lines, each.lines)
            yield from (Change("unchanged", one[ours_], other[theirs_]) for ours_, theirs_ in pairs)
            yield from (Change("removed", one[place], None) for place in left)
            yield from (Change("added", None, other[place]) for place in right)


def _by_key(edges: Sequence[Edge], target_of: Callable[[str], str]) -> Mapping[Hashable, list[Edge]]:
    found: dict[Hashable, list[Edge]] = defaultdict(list)
    for edge in sorted(edges, key=lambda edge: edge.line):
        leads_to_file = edge.edge_type == "depends" and edge.resolution != "external"
        target = target_of(edge.target) if leads_to_file else edge.target
        kind = edge.is_module, edge.module_file, edge.type_only, edge.deferred
        key = (edge.edge_type, edge.source, target, edge.resolution, edge.imported, kind)
        found[key].append(edge)
    return found
