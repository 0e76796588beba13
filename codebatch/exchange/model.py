"""The input and the result of an export, independent of its format."""

from __future__ import annotations

from typing import Literal

import msgspec

from codebatch.exchange.findings import Outgoing

Form = Literal["sarif", "github", "gitlab", "checkstyle", "rdjson", "ctags"]


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an export.

    - `data`: the bytes of the exported file.
    - `count`: the number of exported findings, or for ctags the number of definitions.
    - `excluded`: descriptions of findings that were left out because of limits of the format.
    - `summary`: for the format `github`, a summary in Markdown; otherwise empty.
    """

    data: bytes
    count: int
    excluded: tuple[str, ...] = ()
    summary: bytes = b""


class ExportedFindings(msgspec.Struct, frozen=True, kw_only=True):
    """The input of an export: findings, and `tools` with their versions, or an empty string if unknown.

    `tools` also contains tools without findings. `incomplete` describes missing results, or is empty.
    """

    findings: tuple[Outgoing, ...]
    tools: dict[str, str]
    incomplete: str
