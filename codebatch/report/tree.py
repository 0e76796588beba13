"""The tree of a project's code, cut to the files with the most code. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codebatch.report.contents import ReportTree
from codebatch.report.gathering import PRODUCTION, FileSums
from codebatch.report.limits import ReportLimits, cut_text

TREE_DEPTH_MAX = 40
"""Maximum number of nested directories in the tree.

For a file that is nested deeper, the rest of its path is the file's name.
"""
_METRIC_BY_COLUMN = {
    "code": "code",
    "cognitive": "cognitive",
    "duplicated": "duplicated_lines",
}


def cut_tree(files: Sequence[FileSums], limits: ReportLimits, changes: Mapping[bytes, int] | None) -> ReportTree:
    """Return the tree of files that contain code, with at most `limits.nodes` rows.

    If there are too many files, those with the least code are merged. A row of merged files belongs to the nearest of
    their directories that is in the tree.
    """
    ordered = sorted((file for file in files if file["code"]), key=lambda file: (-file["code"], file.path))
    directories: dict[tuple[str, ...], None] = {(): None}
    included: list[FileSums] = []
    dropped: list[FileSums] = []
    for file in ordered:
        above = _parent_keys(file.path)
        new = [directory for directory in above if directory not in directories]
        # Each directory may need one more row, for its merged files.
        if 2 * (len(directories) + len(new)) + len(included) + 1 > limits.nodes:
            dropped.append(file)
        else:
            directories.update(dict.fromkeys(new))
            included.append(file)
    rows = _TreeRows(limits, changes)
    for file in sorted(included, key=lambda file: file.path):
        rows.add_file(file)
    rows.add_merged_rows(dropped)
    return rows.tree


def _path_parts(path: str) -> list[str]:
    parts = path.split("/")
    return [*parts[:TREE_DEPTH_MAX], "/".join(parts[TREE_DEPTH_MAX:])] if len(parts) > TREE_DEPTH_MAX + 1 else parts


def _parent_keys(path: str) -> list[tuple[str, ...]]:
    parts = _path_parts(path)
    return [tuple(parts[:depth]) for depth in range(1, len(parts))]


class _TreeRows:
    """A builder of the rows of a tree."""

    def __init__(self, limits: ReportLimits, changes: Mapping[bytes, int] | None) -> None:
        self._limits = limits
        self._changes = changes
        self._directories: dict[tuple[str, ...], int] = {}
        self.tree = ReportTree(
            names=[],
            parents=[],
            files=[],
            languages=[],
            code=[],
            cognitive=[],
            hardest=[],
            duplicated=[],
            dependents=[],
            partial=[],
            findings=[],
            categories=[],
            changes=None if changes is None else [],
        )
        self._add_row("", 0, ())
        self._directories[()] = 0

    def add_file(self, file: FileSums) -> None:
        """Add a row for a file, and rows for its directories that have none."""
        parent = 0
        for directory in _parent_keys(file.path):
            if directory not in self._directories:
                self._directories[directory] = self._add_row(directory[-1], parent, ())
            parent = self._directories[directory]
        self._add_row(_path_parts(file.path)[-1], parent, (file,))

    def add_merged_rows(self, files: Sequence[FileSums]) -> None:
        """Add rows for merged files: one row for each nearest directory that has a row."""
        files_by_ancestor: dict[int, list[FileSums]] = {}
        for file in files:
            rows_above = [self._directories[above] for above in _parent_keys(file.path) if above in self._directories]
            files_by_ancestor.setdefault(rows_above[-1] if rows_above else 0, []).append(file)
        for parent in sorted(files_by_ancestor):
            self._add_row("", parent, files_by_ancestor[parent])

    def _add_row(self, name: str, parent: int, files: Sequence[FileSums]) -> int:
        tree = self.tree
        tree.names.append(cut_text(name, self._limits.text))
        tree.parents.append(parent)
        tree.files.append(len(files))
        tree.languages.append(files[0].language if len(files) == 1 else "")
        for column, metric in _METRIC_BY_COLUMN.items():
            values: list[int] = getattr(tree, column)
            values.append(sum(file[metric] for file in files))
        tree.findings.append(sum(file.findings for file in files))
        tree.categories.append(min((file.category for file in files), default=PRODUCTION))
        tree.hardest.append(max((file["max_cognitive"] for file in files), default=0))
        tree.dependents.append(max((file["dependents"] for file in files), default=0))
        tree.partial.append(int(any(file.dependents_partial for file in files)))
        if tree.changes is not None and self._changes is not None:
            tree.changes.append(sum(self._changes.get(file.key, 0) for file in files))
        return len(tree.names) - 1
