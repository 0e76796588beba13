"""The text of Lua."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_source import LanguageSource

SOURCE: Mapping[str, LanguageSource] = {
    "lua": LanguageSource(parameter_nodes="identifier vararg_expression"),
}
