"""Syntax of Ruby."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from codebatch_workers.languages.ruby.heredocs import blank_inner_heredocs
from codebatch_workers.syntax.language_syntax import LanguageSyntax, MigrationFramework, TemplateMarks, UnseenError
from codebatch_workers.syntax.names import names_by_field


def _find_unmatched_ends(root: Node, _utf8: bytes) -> Iterator[UnseenError]:
    for node in root.named_children:
        if node.type == "identifier" and node.text == b"end":
            yield UnseenError(node.start_byte, node.end_byte, "unexpected `end`, which ends nothing")


SYNTAX = {
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
        repair=blank_inner_heredocs,
        unseen_errors=_find_unmatched_ends,
        template_marks=TemplateMarks(are_names=True),
        parameter_nodes=frozenset(
            {
                "block_parameter",
                "destructured_parameter",
                "hash_splat_parameter",
                "identifier",
                "keyword_parameter",
                "optional_parameter",
                "splat_parameter",
            }
        ),
    )
}
