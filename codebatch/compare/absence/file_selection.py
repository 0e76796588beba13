"""Detection of files that a batch lacks because of its selection rules, although they may have existed.

Selection rules are the include and exclude patterns of a run, and the ignore files in its snapshot.
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain

from codebatch.compare.matching.trees import Side, TreeComparison, opposite_side
from codebatch.errors import ObjectMissing
from codebatch.model.nearest_directories import parent_directory
from codebatch.query.sources.records import BatchRecords
from codebatch.snapshotting.selection import SelectionRules, SourceRules
from codebatch.snapshotting.staleness import read_source_rules
from codebatch.snapshotting.stat_cache import IGNORE_FILE
from codebatch.snapshotting.walk import GITIGNORE_NAME

_IGNORE_FILES = (IGNORE_FILE, GITIGNORE_NAME)


class FileSelectionDiff:
    """The differences between the rules by which two batches select files."""

    def __init__(self, trees: TreeComparison) -> None:
        self._trees = trees

    def is_excluded_by(self, side: Side, path: bytes) -> bool:
        """Return whether the rules of one batch exclude a path that the rules of the other batch include.

        `side` is the batch that excludes it. Raises StoreCorrupt.
        """
        if not self._have_selections_changed:
            return False
        other = opposite_side(side)
        return self._selections[side].leaves_out(path) and not self._selections[other].leaves_out(path)

    @cached_property
    def _have_selections_changed(self) -> bool:
        differing = chain(*self._trees.differing_files)
        if any(path.rpartition(b"/")[2] in _IGNORE_FILES for path in differing):
            return True
        # The name of a stat cache is derived from the source and the patterns. So equal names mean equal patterns.
        old, new = (records.batch.about.stat_cache for records in (self._trees.old, self._trees.new))
        return old != new and self._patterns_of_both[0] != self._patterns_of_both[1]

    @cached_property
    def _selections(self) -> dict[Side, FileSelection]:
        old, new = self._patterns_of_both
        return {"old": FileSelection(self._trees.old, old), "new": FileSelection(self._trees.new, new)}

    @cached_property
    def _patterns_of_both(self) -> tuple[SourceRules, SourceRules]:
        """The include and exclude patterns of the older and the newer batch.

        If the patterns of one batch are unknown, they are assumed to equal those of the other batch.
        """
        batches = self._trees.old, self._trees.new
        old, new = (
            read_source_rules(records.store.files, records.store.root, records.batch.about.stat_cache)
            for records in batches
        )
        return old or new or SourceRules(), new or old or SourceRules()


class FileSelection:
    """The rules by which one batch selects files."""

    def __init__(self, records: BatchRecords, patterns: SourceRules) -> None:
        self._records = records
        # The rules of .gitignore files are separate from all other rules. A file is excluded if either set of rules
        # excludes it.
        self._rules = {
            IGNORE_FILE: SelectionRules(patterns, None, None),
            GITIGNORE_NAME: SelectionRules(SourceRules(), None, None),
        }
        self._directories: set[bytes] = set()

    @classmethod
    def from_records(cls, records: BatchRecords) -> FileSelection:
        """Return the selection of a batch.

        If its patterns are no longer stored, only the rules of its ignore files are used.
        """
        store, batch = records.store, records.batch
        return cls(records, read_source_rules(store.files, store.root, batch.about.stat_cache) or SourceRules())

    def leaves_out(self, path: bytes) -> bool:
        """Return whether the selection rules exclude a path. Raises StoreCorrupt."""
        directory = parent_directory(path)
        while directory not in self._directories:
            self._directories.add(directory)
            self._add_ignore_files(directory)
            directory = parent_directory(directory)
        return any(rules.exclusion_reason(path) is not None for rules in self._rules.values())

    def _add_ignore_files(self, directory: bytes) -> None:
        for name, rules in self._rules.items():
            entry = self._records.snapshot.entry(directory + b"/" + name if directory else name)
            if entry is not None and entry.kind == "file":
                try:
                    rules.apply_ignore_file(entry.path, self._records.read_object(entry))
                except ObjectMissing:
                    continue
