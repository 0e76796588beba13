"""The files whose content affects the resolution of imports, and the relevant part of each. No other files are read."""

from __future__ import annotations

import re
from collections.abc import Hashable

# Larger files are treated as missing.
DOCUMENT_BYTES_MAX = 16 * 1024 * 1024
RUST_ENDING = ".rs"

_CONFIGURATION_SUFFIXES = (
    *(".json", ".jsonc", ".toml", ".cfg", ".csproj"),
    *("/Directory.Build.props", "/setup.py", "/go.mod", "/go.work", "/Package.swift"),
)
_CONFIGURATION_PREFIXES = ("tsconfig.", "jsconfig.")
_MODULE_DECLARATION = re.compile(r"\bmod\s+(?:r#)?(\w+)\s*;")


def is_configuration_file(path: str) -> bool:
    """Return whether the content of a file affects how imports resolve.

    This is true of configuration files. It is also true of Rust source, because it declares modules.
    """
    return f"/{path}".endswith((*_CONFIGURATION_SUFFIXES, RUST_ENDING)) or path.rpartition("/")[2].startswith(
        _CONFIGURATION_PREFIXES
    )


def declared_modules(text: str) -> frozenset[str]:
    """Return the modules that Rust source declares with `mod name;`."""
    return frozenset(_MODULE_DECLARATION.findall(text))


def relevant_part(path: str, content: bytes) -> Hashable:
    """Return the part of the content of a configuration file that affects how imports resolve.

    If two contents have equal parts, imports resolve in the same way with either content.
    """
    return declared_modules(decode_text(content)) if path.endswith(RUST_ENDING) else content


def decode_text(content: bytes) -> str:
    """Return the text of a file, decoded from UTF-8, with LF line ends."""
    return content.decode("utf-8-sig", "replace").replace("\r\n", "\n")
