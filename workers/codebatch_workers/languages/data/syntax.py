"""Syntax of HCL, JSON, SQL, TOML and YAML."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from tree_sitter import Node

from codebatch_workers.syntax.language_syntax import LanguageSyntax, MigrationFramework, TemplateMarks, UnseenError
from codebatch_workers.syntax.names import names_by_field

# The path of a migration in SQL contains a number or date. In Flyway, golang-migrate, goose, dbmate and sqlx, file
# names begin with a number. In Prisma and Diesel, names of directories do. In other tools, file names begin with a
# date, with or without a time.
_MIGRATION_PATH = re.compile(
    rb"(?:^|/)(?:migrations?|updates?|upgrades?)/(?:[^/]+/)*(?:[VU]?\d[^/]*|\d[^/]*/[^/]+)\.sql$|"
    rb"(?:^|/)(?:19|20)\d{6}(?:\d{2}|\d{4}|\d{6})?(?:[-_.][^/]*)?\.sql$",
    re.IGNORECASE,
)

# A control character in a JSON string. Many files are indented by tabs, so the pattern needs another character before
# it on the line.
_CONTROL_CHARACTER = re.compile(rb"(?<=\S) {0,100}([\x00-\t\x0b\x0c\x0e-\x1f])")
_JSON_MARKS = TemplateMarks(others=re.compile(rb"(?<![\w\"'])__\w+__(?![\w\"'])"))

# Lines that open very many blocks. The scanner of a grammar must store its state in 1,024 bytes. For such lines, the
# scanner of YAML writes more, from 254 levels on (tree-sitter-yaml issue 48). Two levels can begin in one column.
_DEEP_LINE = re.compile(rb"\n[ \t?:-]{120}")
# The scanner of YAML counts lines and columns in 16 bits (tree-sitter-yaml issue 49).
_YAML_COUNT_MAX = 32_767


def _find_control_characters(root: Node, utf8: bytes) -> Iterator[UnseenError]:
    for match in _CONTROL_CHARACTER.finditer(utf8):
        start, end = match.span(1)
        node = root.descendant_for_byte_range(start, end)
        if node is not None and node.type == "string_content":
            yield UnseenError(start, end, f"control character in a string, write it as \\u{match[1][0]:04x}")


def _overruns_yaml_scanner(utf8: bytes) -> bool:
    if len(utf8) >= _YAML_COUNT_MAX:
        lines = utf8.split(b"\n")
        if len(lines) - (not lines[-1]) > _YAML_COUNT_MAX or max(map(len, lines)) >= _YAML_COUNT_MAX:
            return True
    # A search for a line feed is ten times as fast as a search for `^`.
    return _DEEP_LINE.search(b"\n" + utf8) is not None


_JSON = LanguageSyntax(
    has_right_to_left_text=True,
    is_declarative=True,
    queries=("json",),
    comments=("//",),
    unseen_errors=_find_control_characters,
    template_marks=_JSON_MARKS,
)
SYNTAX = {
    "hcl": LanguageSyntax(is_declarative=True, queries=("hcl",), declared_names=names_by_field, comments=("#", "//")),
    "json": _JSON,
    "jsonc": msgspec.structs.replace(_JSON, has_right_to_left_text=False),
    "sql": LanguageSyntax(
        is_approximate=True,
        queries=("sql",),
        declared_names=names_by_field,
        name_marks=(b'"', b"`", b"["),
        comments=("--",),
        migrations=(MigrationFramework(b"", path=_MIGRATION_PATH),),
    ),
    "toml": LanguageSyntax(
        requires_utf8=True, is_declarative=True, queries=("toml",), comments=("#",), template_marks=TemplateMarks()
    ),
    "yaml": LanguageSyntax(
        requires_utf8=True,
        has_right_to_left_text=True,
        is_declarative=True,
        queries=("yaml",),
        comments=("#",),
        overruns_scanner=_overruns_yaml_scanner,
        template_marks=TemplateMarks(),
    ),
}
