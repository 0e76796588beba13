"""What an export is, whatever its form."""

from __future__ import annotations

from typing import Literal

import msgspec

from codebatch.exchange.outgoing import Outgoing

Form = Literal["sarif", "github", "gitlab", "checkstyle", "rdjson", "ctags"]


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of an export and the number of findings (of definitions for ctags) in it.

    `excluded` describes what exceeds a limit of the format. `summary` is Markdown to show next to it, only for GitHub.
    """

    data: bytes
    count: int
    excluded: tuple[str, ...] = ()
    summary: bytes = b""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What goes out: findings, and `tools`, those that were asked for some, each with its version or nothing.

    `incomplete` says what lacks of the whole, and is empty where nothing does.
    """

    findings: tuple[Outgoing, ...]
    tools: dict[str, str]
    incomplete: str
