"""Which records are asked for. Pure: of counts and lines alone, wherever they come from."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator

import msgspec

from codebatch.model.counts import Counts
from codebatch.model.entry import display_path
from codebatch.model.record import KINDS, SEVERITIES
from codebatch.model.task import Json
from codebatch.query.arguments import refuse_text, refuse_unknown

JsonRecord = dict[str, Json]

_decoder = msgspec.json.Decoder(JsonRecord)


class RecordFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which records are asked for; an empty field asks for all. `path` is a part of the path as people are shown it;
    `names` and `codes` are exact, but for a `*` at the end."""

    kinds: tuple[str, ...] = ()
    severities: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    path: str = ""

    def check(self) -> RecordFilter:
        """The same filter. Raises InvalidInput for a kind or severity that does not exist, and text where a tuple is
        meant.
        """
        refuse_text(kinds=self.kinds, severities=self.severities, codes=self.codes, tools=self.tools, names=self.names)
        refuse_unknown("kind", self.kinds, KINDS)
        refuse_unknown("severity", self.severities, SEVERITIES)
        return self

    def may_match(self, counts: Counts) -> bool:
        """Whether a shard with these counts can hold anything asked for."""
        kinds = set(self.kinds) or set(KINDS)
        if self.severities or self.codes or self.tools:
            kinds &= {"diagnostic"}
        if self.names:
            kinds &= {"symbol"}
        if not any(counts.kinds.get(kind) for kind in kinds):
            return False
        if self.severities and not any(counts.severities.get(severity) for severity in self.severities):
            return False
        return not self.codes or any(_matches(code, self.codes) for code in counts.codes)

    def matches(self, record: JsonRecord) -> bool:
        """Whether a record is asked for."""
        return (
            (not self.kinds or record["kind"] in self.kinds)
            and (not self.severities or record.get("severity") in self.severities)
            and (not self.codes or _matches(record.get("code"), self.codes))
            and (not self.tools or record.get("tool") in self.tools)
            and (not self.names or _matches(record.get("name"), self.names))
            and (not self.path or self.path in record_path(record))
        )

    def iter_matching(self, blocks: Iterable[bytes]) -> Iterator[JsonRecord]:
        """The records that are asked for among blocks of whole record lines, in their order."""
        prefixes = tuple(b'{"kind":"%s"' % kind.encode() for kind in self.kinds)
        for block in blocks:
            for line in block.splitlines():
                if not prefixes or line.startswith(prefixes):
                    record = _decoder.decode(line)
                    if self.matches(record):
                        yield record


def record_path(record: JsonRecord, field: str = "path") -> str:
    """A record's path for people; the other one where `field` says so."""
    path_b64 = record.get(f"{field}_b64")
    if isinstance(path_b64, str):
        return display_path(base64.b64decode(path_b64))
    return str(record.get(field, ""))


def decode_records(lines: bytes) -> list[JsonRecord]:
    """The records of some record lines."""
    return _decoder.decode_lines(lines)


def _matches(value: object, wanted: Iterable[str]) -> bool:
    return isinstance(value, str) and any(
        value.startswith(one[:-1]) if one.endswith("*") else value == one for one in wanted
    )
