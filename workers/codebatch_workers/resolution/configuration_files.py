"""What of which files decides where imports lead. Of no other file is anything read."""

from __future__ import annotations

import re
from collections.abc import Hashable

# What is above this is not read.
DOCUMENT_BYTES_MAX = 16 * 1024 * 1024
RUST = ".rs"

_SUFFIXES = (".json", ".jsonc", ".toml", ".cfg", "/setup.py", "/go.mod", "/go.work")
_PREFIXES = ("tsconfig.", "jsconfig.")
_MODULE = re.compile(r"\bmod\s+(?:r#)?(\w+)\s*;")


def is_decisive(path: str) -> bool:
    """Whether a file is a configuration file, or Rust source, which says what modules there are."""
    return f"/{path}".endswith((*_SUFFIXES, RUST)) or path.rpartition("/")[2].startswith(_PREFIXES)


def declared_modules(text: str) -> frozenset[str]:
    """The modules that Rust source names with `mod name;`."""
    return frozenset(_MODULE.findall(text))


def decisive_part(path: str, content: bytes) -> Hashable:
    """What of a file decides: two contents that agree in it lead imports the same way."""
    if not is_decisive(path) or len(content) > DOCUMENT_BYTES_MAX:
        return None
    return declared_modules(decoded(content)) if path.endswith(RUST) else content


def decoded(content: bytes) -> str:
    """The text of a file, as UTF-8 with line feeds."""
    return content.decode("utf-8-sig", "replace").replace("\r\n", "\n")
