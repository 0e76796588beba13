"""Excerpts of files, read from the snapshot of the batch."""

from __future__ import annotations

from codebatch.errors import ObjectMissing
from codebatch.model.entry import display_path
from codebatch.operations.api.batch import Batch
from codebatch.operations.queries.source_line import SourceLine, read_lines
from codebatch.report.contents import SourceExcerpt
from codebatch.report.limits import cut_path, cut_text


class ExcerptReader:
    """A reader of lines of files. `missing_paths` collects the files whose content is missing."""

    def __init__(self, batch: Batch, text_max: int) -> None:
        self._question = batch.question
        self._text_max = text_max
        self.missing_paths: set[bytes] = set()

    def read(self, path: bytes, first: int, last: int) -> SourceExcerpt:
        """Return the lines `first` to `last` of a file.

        If the file is not readable, return no lines. Raises StoreCorrupt.
        """
        lines: tuple[SourceLine, ...] = ()
        items = self._question.records.find_items([path])
        if path in items and first > 0:
            try:
                _, lines = read_lines(self._question, path, items[path], first, last)
            except ObjectMissing:
                self.missing_paths.add(path)
        text = [cut_text(line.text.removesuffix("\r"), self._text_max) for line in lines]
        return SourceExcerpt(path=cut_path(display_path(path), self._text_max), line=first, text=text)
