"""An example of an own task: words that shall not be in the source.

Copy it to `tools/banned_words.py` of your project, and say in its `codebatch.toml`:

    [tasks.banned-words]
    python = "tools/banned_words.py:task"
    words = ["foo", "frobnicate"]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from codebatch_workers.api import Diagnostic, SourceFile, diagnostic


class Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The configuration of this task: every field has a default, and is checked before anything runs."""

    words: tuple[str, ...] = ("foo",)


def task(file: SourceFile, config: Words) -> Iterator[Diagnostic]:
    """words that shall not be in the source"""
    banned = re.compile(rb"\b(?:%s)\b" % b"|".join(re.escape(word.encode()) for word in config.words))
    for match in banned.finditer(file.utf8):
        yield diagnostic(file, match.start(), match.end(), code="banned-word", message=f"`{match[0].decode()}`")
