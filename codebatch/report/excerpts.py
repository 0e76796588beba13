"""Lines of the files of a batch, as they were frozen."""

from __future__ import annotations

from codebatch.errors import ObjectMissing
from codebatch.model.entry import display_path
from codebatch.operations.api.batch import Batch
from codebatch.operations.queries.source_line import SourceLine, read_lines
from codebatch.report.contents import Excerpt
from codebatch.report.limits import cut, cut_path


class Excerpts:
    """Reads lines of files. `lost` are the files that could not be read."""

    def __init__(self, batch: Batch, text_max: int) -> None:
        self._question = batch.question
        self._text_max = text_max
        self.lost: set[bytes] = set()

    def read(self, path: bytes, first: int, last: int) -> Excerpt:
        """Some lines of a file, none where it cannot be read. Raises StoreCorrupt."""
        lines: tuple[SourceLine, ...] = ()
        found = self._question.records.find_items([path])
        if path in found and first > 0:
            try:
                _, lines = read_lines(self._question, path, found[path], first, last)
            except ObjectMissing:
                self.lost.add(path)
        text = [cut(line.text.removesuffix("\r"), self._text_max) for line in lines]
        return Excerpt(path=cut_path(display_path(path), self._text_max), line=first, text=text)
