"""Whether a file is missing in one batch because it was left out there, and not because it was not there.

Known are the patterns of both runs, and of ignore files those that the snapshots hold.
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain

from codebatch.compare.matching.trees import Side, TreeComparison, other_side
from codebatch.errors import ObjectMissing
from codebatch.model.nearest_directories import parent_of
from codebatch.query.sources.records import BatchRecords
from codebatch.snapshotting.selection import SelectionRules, SourceRules
from codebatch.snapshotting.staleness import rules_of
from codebatch.snapshotting.stat_cache import IGNORE_FILE
from codebatch.snapshotting.walk import GITIGNORE

_IGNORE_FILES = (IGNORE_FILE, GITIGNORE)


class FileSelectionDiff:
    """Which files two batches take."""

    def __init__(self, trees: TreeComparison) -> None:
        self._trees = trees

    def is_left_out(self, side: Side, path: bytes) -> bool:
        """Whether one batch leaves out a path that it would take by the other's choice. Raises StoreCorrupt."""
        if not self._differ:
            return False
        other = other_side(side)
        return self._of[side].leaves_out(path) and not self._of[other].leaves_out(path)

    @cached_property
    def _differ(self) -> bool:
        every = chain(*self._trees.unlike)
        if any(path.rpartition(b"/")[2] in _IGNORE_FILES for path in every):
            return True
        # A stat cache is named by the source and its patterns.
        old, new = (each.batch.about.stat_cache for each in (self._trees.old, self._trees.new))
        return old != new and self._patterns[0] != self._patterns[1]

    @cached_property
    def _of(self) -> dict[Side, FileSelection]:
        old, new = self._patterns
        return {"old": FileSelection(self._trees.old, old), "new": FileSelection(self._trees.new, new)}

    @cached_property
    def _patterns(self) -> tuple[SourceRules, SourceRules]:
        """Those of both; where one is not known any more it is taken for the same."""
        batches = self._trees.old, self._trees.new
        old, new = (rules_of(each.store.files, each.store.root, each.batch.about.stat_cache) for each in batches)
        return old or new or SourceRules(), new or old or SourceRules()


class FileSelection:
    """Which files one batch takes."""

    def __init__(self, records: BatchRecords, patterns: SourceRules) -> None:
        self._records = records
        # Those of git decide before ours, and beside them.
        self._rules = {
            IGNORE_FILE: SelectionRules(patterns, None, None),
            GITIGNORE: SelectionRules(SourceRules(), None, None),
        }
        self._known: set[bytes] = set()

    @classmethod
    def of(cls, records: BatchRecords) -> FileSelection:
        """That of a batch, as far as it is known yet by which patterns it was made."""
        store, batch = records.store, records.batch
        return cls(records, rules_of(store.files, store.root, batch.about.stat_cache) or SourceRules())

    def leaves_out(self, path: bytes) -> bool:
        """Whether a path is one that it does not take. Raises StoreCorrupt."""
        directory = parent_of(path)
        while directory not in self._known:
            self._known.add(directory)
            self._heed(directory)
            directory = parent_of(directory)
        return any(rules.leaves_out(path) is not None for rules in self._rules.values())

    def _heed(self, directory: bytes) -> None:
        for name, rules in self._rules.items():
            entry = self._records.snapshot.entry(directory + b"/" + name if directory else name)
            if entry is not None and entry.kind == "file":
                try:
                    rules.heed(entry.path, self._records.read_object(entry))
                except ObjectMissing:
                    continue
