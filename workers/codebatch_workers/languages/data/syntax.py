"""Syntax of HCL, JSON, SQL, TOML and YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax, MigrationFramework
from codebatch_workers.syntax.names import names_by_field

# The path of a migration in SQL contains a number or date. In Flyway, golang-migrate, goose, dbmate and sqlx, file
# names begin with a number. In Prisma and Diesel, names of directories do. In other tools, file names begin with a
# date, with or without a time.
_MIGRATION_PATH = re.compile(
    rb"(?:^|/)(?:migrations?|updates?|upgrades?)/(?:[^/]+/)*(?:[VU]?\d[^/]*|\d[^/]*/[^/]+)\.sql$|"
    rb"(?:^|/)(?:19|20)\d{6}(?:\d{2}|\d{4}|\d{6})?(?:[-_.][^/]*)?\.sql$",
    re.IGNORECASE,
)

SYNTAX: Mapping[str, LanguageSyntax] = {
    "hcl": LanguageSyntax(is_data=True, queries=("hcl",), declared_names=names_by_field, comments=("#", "//")),
    "json": LanguageSyntax(is_data=True, queries=("json",), comments=("//",), json_dialect="strict"),
    "jsonc": LanguageSyntax(is_data=True, queries=("json",), comments=("//",), json_dialect="tolerant"),
    "sql": LanguageSyntax(
        is_approximate=True,
        queries=("sql",),
        declared_names=names_by_field,
        name_marks=(b'"', b"`", b"["),
        comments=("--",),
        migrations=(MigrationFramework(b"", path=_MIGRATION_PATH),),
    ),
    "toml": LanguageSyntax(is_data=True, queries=("toml",), comments=("#",)),
    "yaml": LanguageSyntax(is_data=True, queries=("yaml",), comments=("#",)),
}
