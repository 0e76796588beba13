"""Names in JSON, SQL, TOML and YAML."""

from __future__ import annotations

from codebatch_workers.symbols.language_symbols import LanguageSymbols
from codebatch_workers.symbols.occurrences.inner_names import is_marked_name

_STRINGS = LanguageSymbols(has_only_strings=True)
SYMBOLS = {
    "json": _STRINGS,
    "jsonc": _STRINGS,
    "sql": LanguageSymbols(inner_names={"identifier": is_marked_name}),
    "toml": _STRINGS,
    "yaml": _STRINGS,
}
