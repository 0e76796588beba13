"""What an export is, whatever its form."""

from __future__ import annotations

from typing import Literal

import msgspec

from codebatch.exchange.outgoing import Outgoing

Form = Literal["sarif", "github", "gitlab", "checkstyle", "rdjson", "ctags"]


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of an export, and how many findings (of ctags: definitions) are in them.

    `left_out`: what is not in it for it would be too much, in words. `summary` is Markdown to show beside it, for
    GitHub alone.
    """

    data: bytes
    count: int
    left_out: tuple[str, ...] = ()
    summary: bytes = b""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What goes out: findings, and `tools`, those that were asked for some, each with its version or nothing.

    `incomplete` says what lacks of the whole, and is empty where nothing does.
    """

    findings: tuple[Outgoing, ...]
    tools: dict[str, str]
    incomplete: str
