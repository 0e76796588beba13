"""Configuration files of the tree, which anyone may have written: JSON with comments, TOML. Unsound ones are empty."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from codebatch.model.text.toml import TomlError, parse_toml
from codebatch_workers.resolution.configuration_files import RUST, decoded
from codebatch_workers.resolution.tree import PathTree

Document = Mapping[str, object]

_JSON_BYTES_MAX = 1024 * 1024

# A string is taken whole even where it does not end, so that no character is looked at twice.
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*"?)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*"?)|,(?=\s*[}\]])', re.DOTALL)


def read_json(tree: PathTree, path: str) -> Document:
    """The object in a JSON file, which may hold comments and trailing commas as TypeScript's do."""
    content = None if path.endswith(RUST) else tree.read(path)  # Of that its modules alone decide.
    if content is None or len(content) > _JSON_BYTES_MAX:
        return {}
    text = content.decode("utf-8-sig", "replace")
    document = _decoded(text)
    if document is None:
        document = _decoded(_TRAILING_COMMA.sub(r"\1", _COMMENT.sub(r"\1", text)))
    return mapping(document)


def _decoded(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None


def read_toml(tree: PathTree, path: str) -> Document:
    """The table in a TOML file."""
    try:
        return parse_toml(read_text(tree, path))
    except TomlError:
        return {}


def read_text(tree: PathTree, path: str) -> str:
    """The text of a file, as UTF-8; empty where there is none."""
    return decoded(tree.read(path) or b"")


def mapping(value: object) -> Document:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def at(document: Document, *keys: str) -> Document:
    """The object at the end of some keys."""
    for key in keys:
        document = mapping(document.get(key))
    return document


def string(value: object) -> str | None:
    """The value where it is a string that is not empty."""
    return value if isinstance(value, str) and value else None


def strings(value: object) -> Sequence[str]:
    """The strings of a list; of anything else none."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
