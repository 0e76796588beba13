"""The text of Ruby."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tree_sitter import Node

from codebatch_workers.languages.ruby.heredocs import blank_inner_heredocs
from codebatch_workers.syntax.language_source import LanguageSource, TemplateMarks, UnseenError


def _find_unmatched_ends(root: Node, _utf8: bytes) -> Iterator[UnseenError]:
    for node in root.named_children:
        if node.type == "identifier" and node.text == b"end":
            yield UnseenError(node.start_byte, node.end_byte, "unexpected `end`, which ends nothing")


SOURCE: Mapping[str, LanguageSource] = {
    "ruby": LanguageSource(
        repair=blank_inner_heredocs,
        unseen_errors=_find_unmatched_ends,
        template_marks=TemplateMarks(are_names=True),
        parameter_nodes="block_parameter destructured_parameter hash_splat_parameter identifier keyword_parameter "
        "optional_parameter splat_parameter",
    ),
}
