"""Lines of the files of a batch, as they were frozen."""

from __future__ import annotations

from typing import cast

from codebatch.application.opened_batch import OpenedBatch
from codebatch.errors import ObjectMissing
from codebatch.model.entry import display_path
from codebatch.report.contents import Excerpt
from codebatch.report.limits import cut, cut_path
from codebatch.system.plugins import load_question


class Excerpts:
    """Reads lines of files."""

    def __init__(self, batch: OpenedBatch, text_max: int) -> None:
        self._records = batch.question.records
        self._text_max = text_max
        self._ask = load_question("source_lines")
        self.lost: set[bytes] = set()
        """The files that could not be read."""

    def read(self, path: bytes, first: int, last: int) -> Excerpt:
        """Some lines of a file, none where it cannot be read. Raises StoreCorrupt."""
        lines: list[str] = []
        found = self._records.find_items([path])
        if path in found and first > 0:
            item = found[path]
            try:
                content = self._records.read_object(self._records.items[item])
            except ObjectMissing:
                self.lost.add(path)
            else:
                told = cast(
                    "dict[str, object]",
                    self._ask(path, content, self._records.plan.context_of(item), first, last),
                )
                lines = [] if told["is_binary"] else cast("list[str]", told["lines"])
        text = [cut(line.removesuffix("\r"), self._text_max) for line in lines]
        return Excerpt(path=cut_path(display_path(path), self._text_max), line=first, text=text)
