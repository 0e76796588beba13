"""The places of rewritten code: whether the code around each edit is still read as before.

The trees of the file before and after all edits are compared from the root. Outside of the edits, both must have the
same nodes. In the place of the matched code, there must be one node of the same kind: an expression for an expression,
or a statement for a statement. In a block, several statements or none may replace one.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import accumulate
from typing import NamedTuple

from tree_sitter import Node

from codebatch_workers.syntax.patterns.edits import CodeKind, Edit, length_of, root_of
from codebatch_workers.syntax.patterns.grouping import BARE_LISTS
from codebatch_workers.syntax.patterns.language_patterns import LanguagePatterns
from codebatch_workers.syntax.source import SourceFile

AROUND = "other code would be read differently"
SEVERAL = "the new code is several statements where one statement or expression stands"
STATEMENT = "the new code is a statement where an expression stands"
NOT_ONE = "the new code is not one expression in this place"
NOT_ALONE = "the new code is not a statement without other code"
DECLARATION = "a declaration cannot stand in this place"
BARE_LIST = "the new code is a list without brackets"

# The fields in which a block has its statements, if it has other children too.
_STATEMENT_FIELDS = (None, "body", "local_declaration", "member")
_BODY_FIELDS = ("alternative", "body", "consequence")
_BODIES = ("else_clause", "lock_statement")
"""The types of nodes whose last child is a single statement, without a field."""
_DECLARATION = re.compile(
    r"(?!.*(?:expression|command))(?:.*(?:declaration|definition)|import|export|(?:function|impl|mod|struct|enum)_item)"
)
_BRACKETS = ("(", "[", "{")
# In a shell, commands of a pipeline may be added.
_PIPELINE = "pipeline"
_PIPES = ("|", "|&")
_EXPRESSION_STATEMENT = "expression_statement"
# The parts of the header of `for` that are statements.
_STATEMENT_PARTS = ("init", "initializer", "update")
# A redirection only concerns the last command.
_REDIRECTED = "redirected_statement"
_COMMAND_LISTS = ("list", _PIPELINE)


class Misplaced(NamedTuple):
    """The numbers of edits that cannot be made in their places.

    - `reasons`: the edits that certainly cannot, with the reason.
    - `suspects`: edits of which at least one cannot, if `reasons` is empty. `suspicion` is the reason.
    """

    reasons: Mapping[int, str] = {}
    suspects: Set[int] = frozenset()
    suspicion: str = AROUND

    @property
    def is_empty(self) -> bool:
        """Whether all edits can be made."""
        return not self.reasons and not self.suspects


def is_statement(node_type: str, patterns: LanguagePatterns) -> bool:
    """Return whether nodes of a type are statements or declarations, not expressions."""
    if node_type in patterns.expressions:
        return False
    return "statement" in node_type or _DECLARATION.match(node_type) is not None


def place_reason(file: SourceFile, edit: Edit) -> str | None:
    """Return why code of the kind of an edit can never be in its place, or None if this is not known."""
    node = root_of(file).descendant_for_byte_range(edit.start, edit.end)
    patterns = LanguagePatterns.of(file.language)
    is_whole_statement = False
    while edit.kind in ("statement", "statements") and node is not None and node.parent is not None:
        if node.parent.type in patterns.blocks:
            return None
        is_whole_statement = is_whole_statement or is_statement(node.type, patterns)
        node = node.parent
        if node.start_byte != edit.start or file.utf8[edit.end : node.end_byte] not in (b"", b";"):
            break
    if edit.kind == "statements":
        return SEVERAL
    return STATEMENT if edit.kind == "statement" and not is_whole_statement else None


def find_misplaced(file: SourceFile, changed: SourceFile, edits: Sequence[Edit]) -> Misplaced:
    """Return the edits that are not possible. `changed` is the file after all edits, which are sorted."""
    comparison = _Comparison(file, changed, edits)
    comparison.compare(root_of(file), root_of(changed))
    suspects = comparison.suspects - comparison.fitting
    return Misplaced(comparison.reasons, suspects or comparison.suspects)


class _Child(NamedTuple):
    """A child of a node that is not empty, and its number among all children."""

    node: Node
    number: int


class _Comparison:
    def __init__(self, file: SourceFile, changed: SourceFile, edits: Sequence[Edit]) -> None:
        self._patterns = LanguagePatterns.of(file.language)
        self._text = file.utf8
        self._changed = changed
        self._edits = edits
        self._starts = [edit.start for edit in edits]
        self._ends = [edit.end for edit in edits]
        growth = (length_of(edit.parts) - (edit.end - edit.start) for edit in edits)
        self._shifts = list(accumulate(growth, initial=0))
        self._new_starts = list(map(self._moved, self._starts))
        self._new_ends = list(map(self._moved, self._ends))
        self.reasons: dict[int, str] = {}
        self.suspects: set[int] = set()
        self.fitting: set[int] = set()

    def compare(self, old: Node, new: Node) -> None:
        """Compare two trees, and collect the edits that are not possible."""
        if old.type != new.type:
            self.suspects.update(range(len(self._starts)))
            return
        pending = [(old, new)]
        while pending:
            pending += self._compare_children(*pending.pop())

    def _compare_children(self, old: Node, new: Node) -> Iterator[tuple[Node, Node]]:
        """Yield the pairs of children that contain edits. Compare the other children."""
        olds, news = _children(old), [child for child in _children(new) if not self._is_new_comment(child.node)]
        index = place = 0
        while index < len(olds):
            child = olds[index].node
            edit = self._edit_at(child)
            is_statement = edit is not None and self._is_in_block(old, olds[index])
            is_code_around = edit is None or (not is_statement and self._is_wrapper(child, edit))
            if is_code_around and place < len(news) and self._is_same(child, news[place].node):
                if self._edits_in(child):
                    yield child, news[place].node
                index, place = index + 1, place + 1
                continue
            if edit is None:
                self._record_mismatch(child, news[place].node if place < len(news) else None)
                index += 1
                next_start = self._moved(olds[index].node.start_byte) if index < len(olds) else 0
                while place < len(news) and news[place].node.start_byte < next_start:
                    place += 1
                continue
            end = index + 1
            while not is_statement and end < len(olds) and self._edit_at(olds[end].node) == edit:
                end += 1
            new_end = max(self._moved(olds[end - 1].node.end_byte), self._new_ends[edit])
            last = place
            while last < len(news) and self._ends_by(news[last].node, new_end):
                last += 1
            code = news[place:last]
            if is_statement:
                following = olds[end].node.type if end < len(olds) else ""
                reason = self._statement_reason(code, following, self._edits[edit].kind)
            else:
                reason = self._place_reason(old, new, olds[index:end], code, edit)
            if reason is None:
                self.fitting.add(edit)
            else:
                self.reasons.setdefault(edit, reason)
            index, place = end, last
        if place < len(news):
            self.suspects.update(self._edits_in(old))

    def _record_mismatch(self, old: Node, new: Node | None) -> None:
        """Record the edits because of which a node of the old tree is not in the new one. `new` is in its place."""
        within = self._edits_in(old)
        if new is not None and new.start_byte == self._moved(old.start_byte):
            edit = bisect_left(self._new_ends, new.end_byte + 1)
            if edit in within and self._new_starts[edit] < new.end_byte:
                # The node ends within the new code.
                self.reasons.setdefault(edit, AROUND if self._edits[edit].kind != "statements" else SEVERAL)
                return
        self.suspects.update(range(max(within.start - 1, 0), min(within.stop + 1, len(self._starts))))

    def _moved(self, offset: int) -> int:
        """Return the new offset of a position that is not inside an edit."""
        return offset + self._shifts[bisect_right(self._ends, offset)]

    def _edits_in(self, node: Node) -> range:
        first = bisect_left(self._starts, node.start_byte)
        return range(first, max(first, bisect_right(self._ends, node.end_byte)))

    def _edit_at(self, node: Node) -> int | None:
        """Return the number of the edit that contains a node, except for a semicolon at its end."""
        edit = bisect_right(self._starts, node.start_byte) - 1
        if edit < 0 or node.start_byte >= self._ends[edit]:
            return None
        end = self._ends[edit]
        is_closed = node.start_byte == self._starts[edit] and self._text[end : node.end_byte] == b";"
        return edit if node.end_byte <= end or is_closed else None

    def _is_wrapper(self, node: Node, edit: int) -> bool:
        """Return whether a node has exactly one child, which is replaced by an edit, and perhaps a semicolon.

        Then this child decides: a list may have one value where another node may have several.
        """
        spans = [(child.node.start_byte, child.node.end_byte) for child in _children(node) if child.node.type != ";"]
        return spans == [(self._starts[edit], self._ends[edit])]

    def _is_in_block(self, parent: Node, child: _Child) -> bool:
        return parent.type in self._patterns.blocks and parent.field_name_for_child(child.number) in _STATEMENT_FIELDS

    def _is_same(self, old: Node, new: Node) -> bool:
        """Return whether a node of the new tree is one of the old tree, apart from edits in it."""
        start, end = self._moved(old.start_byte), self._moved(old.end_byte)
        return (
            old.type == new.type
            and old.is_missing == new.is_missing
            and start <= new.start_byte
            and self._ends_by(new, end)
            and self._is_comment(start, new.start_byte)
            and self._is_comment(new.end_byte, end)
        )

    def _ends_by(self, node: Node, end: int) -> bool:
        """Return whether a node of the new tree ends at an offset or before, apart from white space."""
        return node.end_byte <= end or self._changed.utf8[end : node.end_byte].isspace()

    def _is_comment(self, start: int, end: int) -> bool:
        """Return whether there are only comments and white space in a range of the new text."""
        text, root = self._changed.utf8, root_of(self._changed)
        while start < end:
            if text[start : start + 1].isspace():
                start += 1
                continue
            node = root.descendant_for_byte_range(start, start + 1)
            while node is not None and not node.is_extra:
                node = node.parent
            if node is None or node.start_byte != start:
                return False
            start = node.end_byte
        return True

    def _is_new_comment(self, node: Node) -> bool:
        """Return whether a node of the new tree is a comment of the new code."""
        edit = bisect_right(self._new_starts, node.start_byte) - 1
        return node.is_extra and edit >= 0 and node.end_byte <= self._new_ends[edit]

    def _statement_reason(self, code: Sequence[_Child], following: str, kind: CodeKind) -> str | None:
        """Return why some nodes cannot replace a statement in a block, or None. `following` is the token after it."""
        types = [each.node.type.strip("; \n") for each in code]
        if not all(each.node.is_named or not name for each, name in zip(code, types, strict=True)):
            return SEVERAL
        count = sum(name not in ("", "empty_statement") for name in types)
        if any(
            not self._is_alone(each.node.type, child.type) for each in code for child in each.node.named_children[:1]
        ):
            return NOT_ALONE
        if kind in ("expression", "statement"):
            return None if count <= 1 else AROUND
        # In a shell, `&` only concerns the last statement.
        return None if following != "&" else SEVERAL

    def _place_reason(
        self, old: Node, new: Node, replaced: Sequence[_Child], code: Sequence[_Child], edit: int
    ) -> str | None:
        """Return why some nodes cannot replace those of an edit, or None."""
        if len(replaced) > 1 and code:  # The edit is a node without its semicolon.
            return None
        if self._edits[edit].kind == "statements":
            return SEVERAL
        if old.type == _PIPELINE and code and all(child.node.is_named or child.node.type in _PIPES for child in code):
            return None
        if len(code) > 1 or (old.type == _REDIRECTED and code and code[0].node.type in _COMMAND_LISTS):
            return NOT_ONE
        start, end = self._new_starts[edit], self._new_ends[edit]
        before, after = replaced[0].node, code[0].node if code else new
        if not code or not (
            self._is_comment(start, after.start_byte) and self._is_comment(min(after.end_byte, end), end)
        ):
            return AROUND
        field = old.field_name_for_child(replaced[0].number)
        if field != new.field_name_for_child(code[0].number):
            return AROUND
        if after.type in BARE_LISTS and after.type != before.type and after.children[0].type not in _BRACKETS:
            return BARE_LIST
        parent = _EXPRESSION_STATEMENT if field in _STATEMENT_PARTS else old.type
        reason = self._change_reason(parent, before.type, after.type)
        if reason is not None:
            return reason
        is_body = field in _BODY_FIELDS or old.type in _BODIES
        if self._is_declaration(after) and after.type != before.type and (is_body or not self._is_declaration(before)):
            return DECLARATION
        return None

    def _change_reason(self, parent: str, before: str, after: str) -> str | None:
        """Return why a node must not have another type than before below some parent, or None."""
        if before == after:
            return None
        if not self._is_alone(parent, after):
            return NOT_ALONE
        refused = self._patterns.refused_changes.get(parent)
        if refused is None or (refused and after not in refused):
            return None
        return STATEMENT if after.endswith("block") else NOT_ONE

    def _is_alone(self, parent: str, child: str) -> bool:
        """Return whether a node may be a whole statement, if its parent is such a statement."""
        types = self._patterns.statement_expressions
        return not types or parent != _EXPRESSION_STATEMENT or child in types

    def _is_declaration(self, node: Node) -> bool:
        return "statement" not in node.type and is_statement(node.type, self._patterns)


def _children(node: Node) -> list[_Child]:
    return [
        _Child(child, number)
        for number, child in enumerate(node.children)
        if child.start_byte < child.end_byte or child.is_missing
    ]
