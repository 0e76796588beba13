"""Syntax of Ruby."""

from __future__ import annotations

import re
from collections.abc import Mapping

from codebatch_workers.syntax.language_syntax import LanguageSyntax, MigrationFramework
from codebatch_workers.syntax.names import names_by_field

SYNTAX: Mapping[str, LanguageSyntax] = {
    "ruby": LanguageSyntax(
        queries=("ruby",),
        declared_names=names_by_field,
        comments=("#",),
        migrations=(
            MigrationFramework(
                b"ActiveRecord::Migration",
                (re.compile(rb"(?m)^[ \t]*class [\w:]+ < (?:::)?ActiveRecord::Migration\b"),),
            ),
            MigrationFramework(b"Sequel.migration", (re.compile(rb"(?m)^Sequel\.migration\b"),)),
        ),
    )
}
