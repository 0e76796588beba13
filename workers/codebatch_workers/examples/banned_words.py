"""An example of a custom task: it reports words that must not occur in the source.

Copy it to `tools/banned_words.py` of your project, and add this to its `codebatch.toml`:

    [tasks.banned-words]
    python = "tools/banned_words.py:task"
    words = ["foo", "frobnicate"]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from codebatch_workers.api import Diagnostic, SourceFile


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The configuration of this task. Every field has a default, and values are validated before the task runs."""

    words: tuple[str, ...] = ("foo",)


def task(file: SourceFile, config: Words) -> Iterator[Diagnostic]:
    """words that shall not be in the source"""
    banned = re.compile(rf"\b(?:{'|'.join(map(re.escape, config.words))})\b")
    for number, line in enumerate(file.text.split("\n"), start=1):
        for match in banned.finditer(line):
            yield file.report(number, f"`{match[0]}`", column=match.start() + 1, code="banned-word")
