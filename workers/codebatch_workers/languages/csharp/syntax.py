"""Syntax of C#."""

from __future__ import annotations

import re
from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax, MigrationFramework
from codebatch_workers.syntax.names import names_by_field

SYNTAX: Mapping[str, LanguageSyntax] = {
    "csharp": LanguageSyntax(
        is_approximate=True,
        queries=("csharp",),
        binding_queries=("csharp",),
        declared_names=names_by_field,
        name_marks=(b"@",),
        comments=("//",),
        migrations=(
            # Entity Framework, FluentMigrator.
            MigrationFramework(
                b"Migration",
                (
                    re.compile(rb"\bclass\s+\w+\s*:\s*(?:\w+\.)*\w*Migration\s*[,{\r\n]"),
                    re.compile(rb"\boverride\s+void\s+Up\s*\("),
                ),
            ),
        ),
    )
}
