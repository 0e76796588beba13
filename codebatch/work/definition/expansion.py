"""Expansion of `each`: a task becomes a group with a member for each file, value or line (SPEC.md "Work files").

The key of a member depends only on the member's value. So members keep their IDs if others are added or removed.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from codebatch.errors import CodebatchError, InvalidConfiguration
from codebatch.model.analysis.shard_boundaries import unique_prefixes
from codebatch.model.digest import digest_bytes
from codebatch.model.entry import display_path, is_utf8
from codebatch.model.text.json_text import JsonError, parse_json
from codebatch.model.work.command import COMMAND_ID_PATTERN
from codebatch.model.work.work_batch import COMMANDS_MAX
from codebatch.snapshotting.directories import DirectoryDescriptors
from codebatch.snapshotting.listing import TreeLister
from codebatch.snapshotting.roots import resolve_sources
from codebatch.snapshotting.selection import SelectionRules, SourceRules
from codebatch.work.definition.problems import DefinitionProblems
from codebatch.work.definition.table_checks import TableLocation
from codebatch.work.definition.tables import EachTable
from codebatch.work.definition.task_files import text_lines
from codebatch.work.definition.work_files import decode_text, read_bytes

_VALUE_NAME = re.compile(r"[A-Za-z0-9_]+\Z")
_PATTERN_SPECIAL = re.compile(r"[\\*?\[\] !#]")
_LABEL_CHARACTERS_MAX = 80


class GroupMember(NamedTuple):
    """A member of a group: its key, its label, and the values of placeholders.

    `files` is the value of `{files}`. `identity` is the whole value: the path of a file, or the value itself.
    """

    key: str
    label: str
    values: Mapping[str, str]
    files: tuple[str, ...] = ()
    identity: str = ""

    def pair_values(self) -> dict[str, str]:
        """Return the values of placeholders in `needs` and `after`. Paths are relative to the root, unlike in `run`."""
        values = {**self.values, "each": self.identity}
        return values | {"file": self.identity} if "file" in values else values

    def expand_patterns(self, patterns: Sequence[str]) -> tuple[str, ...]:
        """Return `inputs` or `outputs` with the values of this member in place of placeholders.

        Special characters of values are escaped. Other text in braces stays.
        """
        values = self.pair_values()
        names = re.compile(f"{{({'|'.join(map(re.escape, values))})}}")
        return tuple(
            names.sub(lambda match: _PATTERN_SPECIAL.sub(r"\\\g<0>", values[match[1]]), each) for each in patterns
        )


class _ExpandedItem(NamedTuple):
    """A value for which a member is created.

    If `name` is a valid ID and unique, it becomes the key of the member. Otherwise, the key is a digest of `identity`.
    """

    name: str
    identity: str
    label: str
    values: Mapping[str, str]
    files: tuple[str, ...] = ()


class GroupExpander:
    """A converter of `each` tables into group members.

    Texts about skipped values are added to `warnings`, errors to `problems`.
    """

    def __init__(self, root: Path, problems: DefinitionProblems, warnings: list[str]) -> None:
        self._root = root
        self._problems = problems
        self._warnings = warnings
        self._paths: list[bytes] | None = None

    def expand_members(self, place: TableLocation, table: EachTable, cwd: str) -> list[GroupMember]:
        """Return the members that a task's `table` defines, in source order. Errors are added to the problems."""
        sources = [key for key in ("files", "values", "matrix", "lines", "json") if getattr(table, key) is not UNSET]
        if len(sources) != 1:
            message = f"sets {' and '.join(sources)}" if sources else "has no source of members"
            self._problems.add(f"{place} {message}", "set one of files, values, matrix, lines and json")
            return []
        if table.chunk != 1 and sources != ["files"]:
            self._problems.add(f"{place} sets `chunk`, which needs `files`")
        try:
            return self._distinct_members(place, self._expanded_items(place, table, cwd))
        except CodebatchError as error:
            self._problems.add(f"{place}: {error.message}", error.hint)
            return []

    def line_members(self, place: TableLocation, lines: Sequence[str]) -> list[GroupMember]:
        """Return a member for each line of a work file that is a list of lines."""
        return self._distinct_members(place, map(_line_item, lines))

    def _expanded_items(self, place: TableLocation, table: EachTable, cwd: str) -> Iterable[_ExpandedItem]:
        if table.files is not UNSET:
            return self._file_items(table.files, table.chunk, cwd)
        if table.values is not UNSET:
            return [_ExpandedItem(value, value, value, {"value": value}) for value in table.values]
        if table.matrix is not UNSET:
            return self._matrix_items(place, table.matrix)
        if table.lines is not UNSET:
            return map(_line_item, text_lines(self._read_text(table.lines)))
        assert table.json is not UNSET
        return self._json_items(table.json)

    def _read_text(self, name: str) -> str:
        return decode_text(read_bytes(self._root / name, name), name)

    def _file_items(self, patterns: Sequence[str], chunk: int | str, cwd: str) -> Iterator[_ExpandedItem]:
        rules = SelectionRules(SourceRules(include=tuple(patterns)), None, None)
        paths = [path for path in self._listed_paths() if rules.exclusion_reason(path) is None] if patterns else []
        unreadable = [path for path in paths if not is_utf8(path)]
        if unreadable:
            more = f" and {len(unreadable) - 1:,} more" if len(unreadable) > 1 else ""
            self._warnings.append(f"skipped, because the name is not valid UTF-8: {display_path(unreadable[0])}{more}")
        texts = [path.decode() for path in paths if is_utf8(path)]
        for part in _iter_chunks(texts, chunk):
            files = tuple(_as_argument(path, cwd) for path in part)
            label = part[0] if len(part) == 1 else f"{part[0]} and {len(part) - 1:,} more"
            values = {"file": files[0]} if chunk == 1 else {}
            yield _ExpandedItem("", "\0".join(part), label, values, files)

    def _listed_paths(self) -> list[bytes]:
        """Return the regular files below the root that a snapshot would contain, sorted by path."""
        if self._paths is None:
            sources = resolve_sources([self._root], None)
            with DirectoryDescriptors(sources.base) as directories:
                rules = SelectionRules(SourceRules(), directories, None)
                with TreeLister(sources, directories, rules) as lister:
                    tree = lister.list_all()
            self._paths = sorted(path for path, status in tree.stats.items() if stat.S_ISREG(status.mode))
        return self._paths

    def _matrix_items(self, place: TableLocation, matrix: Mapping[str, Sequence[str]]) -> list[_ExpandedItem]:
        for name in matrix:
            if _VALUE_NAME.match(name) is None:
                self._problems.add(f"{place} has an invalid name {name!r} in its matrix", "use letters, digits and '_'")
        if len({name.upper() for name in matrix}) < len(matrix):
            self._problems.add(f"{place} has names in its matrix that differ only in case")
        size = 1
        for values in matrix.values():
            size *= len(values)
        if size > COMMANDS_MAX:
            self._problems.add(f"{place} has a matrix of {size:,} members, more than {COMMANDS_MAX:,}")
            return []
        rows = itertools.product(*matrix.values()) if matrix else ()
        return [
            _ExpandedItem(
                "-".join(row),
                "\0".join(row),
                " ".join(row),
                {f"value.{k}": v for k, v in zip(matrix, row, strict=True)},
            )
            for row in rows
        ]

    def _json_items(self, name: str) -> Iterator[_ExpandedItem]:
        text = self._read_text(name)
        for place, value in _json_values(text, name):
            if value is None:
                self._problems.add(f"{place} is null", "remove it")
            elif isinstance(value, dict):
                values = {
                    f"value.{key}": _as_text(each)
                    for key, each in value.items()
                    if each is not None and _VALUE_NAME.match(key)
                }
                if len({key.upper() for key in values}) < len(values):
                    self._problems.add(f"{place} has keys that differ only in case")
                id_ = value.get("id")
                identity = msgspec.json.encode(value, order="sorted").decode()
                label = id_ if isinstance(id_, str) else next(iter(values.values()), place)
                yield _ExpandedItem(id_ if isinstance(id_, str) else "", identity, label, values)
            else:
                text_value = _as_text(value)
                yield _ExpandedItem(text_value, text_value, text_value, {"value": text_value})

    def _distinct_members(self, place: TableLocation, items: Iterable[_ExpandedItem]) -> list[GroupMember]:
        """Return a member for each distinct item. Each member has a unique key.

        The key is a prefix of a digest in two cases: the name of an item is not a valid ID, or it differs from another
        name only in case.
        """
        distinct: dict[tuple[str, str], _ExpandedItem] = {}
        for item in items:
            if (item.name, item.identity) in distinct:
                self._warnings.append(f"{place}: {item.label[:_LABEL_CHARACTERS_MAX]!r} is listed twice and used once")
            if any("\0" in value for value in item.values.values()):
                self._problems.add(f"{place}: {item.label[:_LABEL_CHARACTERS_MAX]!r} contains a NUL character")
            distinct.setdefault((item.name, item.identity), item)
        counts: dict[str, int] = {}
        for item in distinct.values():
            counts[item.name.lower()] = counts.get(item.name.lower(), 0) + 1
        named = {
            key: bool(COMMAND_ID_PATTERN.match(item.name)) and counts[item.name.lower()] == 1
            for key, item in distinct.items()
        }
        unnamed_keys = [key for key in distinct if not named[key]]
        digests = {key: digest_bytes(key[1].encode("utf-8", "surrogatepass")) for key in unnamed_keys}
        short = dict(zip(unnamed_keys, unique_prefixes([*digests.values()]), strict=True))
        return [
            GroupMember(
                item.name if named[key] else short[key],
                item.label[:_LABEL_CHARACTERS_MAX],
                item.values,
                item.files,
                item.identity,
            )
            for key, item in distinct.items()
        ]


def _line_item(line: str) -> _ExpandedItem:
    return _ExpandedItem(line, line, line, {"line": line})


def _json_values(text: str, name: str) -> Iterator[tuple[str, object]]:
    """Yield the values in the text of a JSON file, each with its location.

    The file has one value on each line, or one array with all values.
    """
    if text.lstrip().startswith("["):
        try:
            document = parse_json(text)
        except JsonError as error:
            raise _invalid_json(name, error.line, error) from error
        assert isinstance(document, list)
        for number, value in enumerate(document, 1):
            yield f"{name}: value {number:,}", value
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield f"{name}:{number}", parse_json(line)
            except JsonError as error:
                raise _invalid_json(name, number, error) from error


def _invalid_json(name: str, line: int, error: JsonError) -> InvalidConfiguration:
    spot = f"{name}:{line}" if line else name
    return InvalidConfiguration(f"{spot} is not valid JSON: {error}")


def _iter_chunks(paths: Sequence[str], chunk: int | str) -> Iterator[Sequence[str]]:
    """Split paths into chunks of at most `chunk` paths.

    A chunk also ends after a path whose digest meets a condition. So adding or removing a path changes few chunks.
    """
    if chunk == 1:
        yield from ([path] for path in paths)
        return
    if chunk == "all":
        yield from [paths] if paths else []
        return
    assert isinstance(chunk, int)
    start, length_min = 0, chunk // 2
    for end, path in enumerate(paths, 1):
        is_boundary = (
            end - start >= length_min and int(digest_bytes(path.encode())[:8], 16) % max(1, chunk - length_min) == 0
        )
        if is_boundary or end - start == chunk or end == len(paths):
            yield paths[start:end]
            start = end


def _as_argument(path: str, cwd: str) -> str:
    """Return a path relative to the working directory of a task.

    If the path starts with "-", "./" is prepended, so that programs do not take the path for an option.
    """
    below = os.path.relpath(path, cwd) if os.path.normpath(cwd) != "." else path
    return f"./{below}" if below.startswith("-") else below


def _as_text(value: object) -> str:
    """Return a JSON value as the text of a placeholder: a string as it is, any other value as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
