"""What an export is, whatever its form."""

from __future__ import annotations

from typing import Literal

import msgspec

from codebatch.exchange.findings import Outgoing

Form = Literal["sarif", "github", "gitlab", "checkstyle", "rdjson", "ctags"]


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of an export, and the number of exported findings. For ctags, it is the number of definitions.

    `excluded` describes what was left out because of limits of the format. `summary` is a summary in Markdown, which
    only the format `github` has.
    """

    data: bytes
    count: int
    excluded: tuple[str, ...] = ()
    summary: bytes = b""


class ExportedFindings(msgspec.Struct, frozen=True, kw_only=True):
    """What goes out: findings, and `tools`, those that were asked for some, each with its version or nothing.

    `incomplete` says what lacks of the whole, and is empty where nothing does.
    """

    findings: tuple[Outgoing, ...]
    tools: dict[str, str]
    incomplete: str
