"""The tree of a project's code, cut to the files in which most of it is. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codebatch.query.answers.import_rules import may_be_used_without_import
from codebatch.report.contents import ReportTree
from codebatch.report.gathering import PRODUCTION, FileSums
from codebatch.report.limits import ReportLimits, cut

DEPTH_MAX = 40
"""Directories below this are told in the name of what is in them."""
_COLUMNS = {
    "code": "code",
    "cognitive": "cognitive",
    "duplicated": "duplicated_lines",
}


def cut_tree(files: Sequence[FileSums], limits: ReportLimits, changes: Mapping[bytes, int] | None) -> ReportTree:
    """The tree of files that hold code. Those that are too many, the ones with least code, are one row of the nearest
    directory that is kept.
    """
    ordered = sorted((each for each in files if each["code"]), key=lambda each: (-each["code"], each.path))
    directories: dict[tuple[str, ...], None] = {(): None}
    kept: list[FileSums] = []
    dropped: list[FileSums] = []
    for each in ordered:
        above = _above(each.path)
        new = [directory for directory in above if directory not in directories]
        # Each directory may need a row for what of it is left out.
        if 2 * (len(directories) + len(new)) + len(kept) + 1 > limits.nodes:
            dropped.append(each)
        else:
            directories.update(dict.fromkeys(new))
            kept.append(each)
    rows = _Rows(limits, changes)
    for each in sorted(kept, key=lambda each: each.path):
        rows.add_file(each)
    rows.add_rest(dropped)
    return rows.tree


def _parts(path: str) -> list[str]:
    parts = path.split("/")
    return [*parts[:DEPTH_MAX], "/".join(parts[DEPTH_MAX:])] if len(parts) > DEPTH_MAX + 1 else parts


def _above(path: str) -> list[tuple[str, ...]]:
    parts = _parts(path)
    return [tuple(parts[:depth]) for depth in range(1, len(parts))]


class _Rows:
    """Makes the rows of a tree."""

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
        self._add("", 0, ())
        self._directories[()] = 0

    def add_file(self, file: FileSums) -> None:
        """A row for a file, and one for each directory above it that has none."""
        parent = 0
        for directory in _above(file.path):
            if directory not in self._directories:
                self._directories[directory] = self._add(directory[-1], parent, ())
            parent = self._directories[directory]
        self._add(_parts(file.path)[-1], parent, (file,))

    def add_rest(self, files: Sequence[FileSums]) -> None:
        """A row for those of some files that are in, or below, the same directory, and in none that has a row."""
        rests: dict[int, list[FileSums]] = {}
        for each in files:
            known = [self._directories[above] for above in _above(each.path) if above in self._directories]
            rests.setdefault(known[-1] if known else 0, []).append(each)
        for parent in sorted(rests):
            self._add("", parent, rests[parent])

    def _add(self, name: str, parent: int, files: Sequence[FileSums]) -> int:
        tree = self.tree
        tree.names.append(cut(name, self._limits.text))
        tree.parents.append(parent)
        tree.files.append(len(files))
        tree.languages.append(files[0].language if len(files) == 1 else "")
        for column, metric in _COLUMNS.items():
            values: list[int] = getattr(tree, column)
            values.append(sum(each[metric] for each in files))
        tree.findings.append(sum(each.findings for each in files))
        tree.categories.append(min((each.category for each in files), default=PRODUCTION))
        tree.hardest.append(max((each["max_cognitive"] for each in files), default=0))
        tree.dependents.append(max((each["dependents"] for each in files), default=0))
        tree.partial.append(int(any(may_be_used_without_import(each.language, each.key) for each in files)))
        if tree.changes is not None and self._changes is not None:
            tree.changes.append(sum(self._changes.get(each.key, 0) for each in files))
        return len(tree.names) - 1
