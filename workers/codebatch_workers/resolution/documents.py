"""Readers for configuration files of the source tree: JSON with comments, and TOML.

The content is untrusted. An invalid file is read as an empty object or table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from codebatch.model.text.toml import TomlError, parse_toml
from codebatch_workers.resolution.configuration_files import RUST_ENDING, decode_text
from codebatch_workers.resolution.tree import PathTree

JsonObject = Mapping[str, object]

_JSON_BYTES_MAX = 1024 * 1024

# A string or a comment in JSON. If a string is not closed, the match extends to the end of the text. Otherwise, each
# later quote would start another search.
_JSON_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*"?)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:[^"\\]|\\.)*"?)|,(?=\s*[}\]])', re.DOTALL)


def read_json(tree: PathTree, path: str) -> JsonObject:
    """Return the object in a JSON file. Comments and trailing commas are allowed, as in TypeScript's files.

    If the file is invalid or missing, the object is empty.
    """
    # In a Rust file, only the declarations of modules may affect resolution (`decisive_part`). So a `.rs` path that
    # another file names as JSON is not read.
    content = None if path.endswith(RUST_ENDING) else tree.read(path)
    if content is None or len(content) > _JSON_BYTES_MAX:
        return {}
    text = content.decode("utf-8-sig", "replace")
    document = _decode_json(text)
    if document is None:
        document = _decode_json(_TRAILING_COMMA.sub(r"\1", _JSON_COMMENT.sub(r"\1", text)))
    return as_mapping(document)


def _decode_json(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None


def read_toml(tree: PathTree, path: str) -> JsonObject:
    """Return the table in a TOML file. If the file is invalid or missing, the table is empty."""
    try:
        return parse_toml(read_text(tree, path))
    except TomlError:
        return {}


def read_text(tree: PathTree, path: str) -> str:
    """Return the text of a file, decoded from UTF-8. It is empty if the file does not exist."""
    return decode_text(tree.read(path) or b"")


def as_mapping(value: object) -> JsonObject:
    """Return `value` if it is an object, otherwise an empty object."""
    return value if isinstance(value, dict) else {}


def table_at(document: JsonObject, *keys: str) -> JsonObject:
    """Return the object at a path of keys. If there is none, return an empty object."""
    for key in keys:
        document = as_mapping(document.get(key))
    return document


def as_nonempty_string(value: object) -> str | None:
    """Return `value` if it is a non-empty string, otherwise None."""
    return value if isinstance(value, str) and value else None


def as_strings(value: object) -> Sequence[str]:
    """Return the strings in the list `value`. If it is not a list, return an empty list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
