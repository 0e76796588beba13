"""The text of Go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tree_sitter import Node

from codebatch_workers.syntax.language_source import LanguageSource, TemplateMarks, UnseenError

_TOP_LEVEL_NODES = frozenset(
    {
        "comment",
        "const_declaration",
        "empty_statement",
        "function_declaration",
        "import_declaration",
        "method_declaration",
        "package_clause",
        "type_declaration",
        "var_declaration",
    }
)


def _find_code_outside_functions(root: Node, _utf8: bytes) -> Iterator[UnseenError]:
    nodes = [node for node in root.named_children if node.type != "comment"]
    if nodes and nodes[0].type != "package_clause":
        yield UnseenError(nodes[0].start_byte, nodes[0].end_byte, "missing package clause")
        return
    for node in nodes:
        if node.type not in _TOP_LEVEL_NODES:
            yield UnseenError(node.start_byte, node.end_byte, "statement outside of a function")


SOURCE: Mapping[str, LanguageSource] = {
    "go": LanguageSource(unseen_errors=_find_code_outside_functions, template_marks=TemplateMarks(are_names=True)),
}
