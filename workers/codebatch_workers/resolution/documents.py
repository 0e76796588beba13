"""Readers for configuration files of the source tree: JSON with comments, and TOML.

The content is untrusted. An invalid file is read as an empty object or table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from codebatch.model.text.toml import TomlError, parse_toml
from codebatch_workers.resolution.configuration_files import RUST, decoded
from codebatch_workers.resolution.tree import PathTree

Document = Mapping[str, object]

_JSON_BYTES_MAX = 1024 * 1024

# A string or a comment in JSON. If a string is not closed, the match extends to the end of the text. Otherwise, each
# later quote would start another search.
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*"?)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*"?)|,(?=\s*[}\]])', re.DOTALL)


def read_json(tree: PathTree, path: str) -> Document:
    """Return the object in a JSON file. Comments and trailing commas are allowed, as in TypeScript's files.

    If the file is invalid or missing, the object is empty.
    """
    # In a Rust file, only the declarations of modules may affect resolution (`decisive_part`). So a `.rs` path that
    # another file names as JSON is not read.
    content = None if path.endswith(RUST) else tree.read(path)
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
    """Return the table in a TOML file. If the file is invalid or missing, the table is empty."""
    try:
        return parse_toml(read_text(tree, path))
    except TomlError:
        return {}


def read_text(tree: PathTree, path: str) -> str:
    """Return the text of a file, decoded from UTF-8. It is empty if the file does not exist."""
    return decoded(tree.read(path) or b"")


def mapping(value: object) -> Document:
    """Return `value` if it is an object, otherwise an empty object."""
    return value if isinstance(value, dict) else {}


def table_at(document: Document, *keys: str) -> Document:
    """Return the object at a path of keys. If there is none, return an empty object."""
    for key in keys:
        document = mapping(document.get(key))
    return document


def string(value: object) -> str | None:
    """Return `value` if it is a non-empty string, otherwise None."""
    return value if isinstance(value, str) and value else None


def strings(value: object) -> Sequence[str]:
    """Return the strings in the list `value`. If it is not a list, return an empty list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
