"""Tests of the matching of findings: an edit elsewhere makes no finding new, and no finding is matched twice."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.compare.matching.findings import MatchableFinding, MatchingPass, pair_anywhere, pair_in_file
from codebatch.compare.matching.lines import NO_LINE
from codebatch.compare.matching.scopes import FileScopes
from codebatch.model.record import Symbol


def _finding(line: int = 1, column: int = 1, **fields: str | bytes) -> MatchableFinding:
    base = MatchableFinding("ruff", "B018", line, column, "Found useless expression", "", b"x", (b"w",), (b"y",))
    return base._replace(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "new", "paired_lines", "by"),
    [
        (_finding(3), _finding(5), [0, 1, 4], "line"),
        (_finding(3, message="f is 12 long"), _finding(5, message="f is 13 long"), [0, 1, 4], "line"),
        (_finding(1, text=b"a"), _finding(9, text=b"a"), [NO_LINE], "text"),
        (_finding(1, text=b"a"), _finding(9, text=b"b"), [NO_LINE], "message"),
        (_finding(1, text=b"a", message="12 of 3"), _finding(9, text=b"b", message="7 of 40"), [NO_LINE], "message"),
        (_finding(1, text=b"a", message="one"), _finding(9, text=b"b", message="two"), [NO_LINE], None),
        (_finding(1, scope="f"), _finding(9, scope="g"), [NO_LINE], "text"),
        (_finding(1, scope="f", text=b""), _finding(9, scope="g", text=b""), [NO_LINE], None),
        (_finding(1), _finding(1, code="B019"), [0], None),
        (_finding(1), _finding(1, tool="mine"), [0], None),
        # A line number beyond the text matches no line of the other text.
        (_finding(7, text=b"a", message="m"), _finding(7, text=b"b"), [0], None),
        (_finding(0, text=b"a", message="m"), _finding(1, text=b"b"), [0], None),
    ],
)
def test_finding_is_matched_by_the_expected_pass(
    old: MatchableFinding, new: MatchableFinding, paired_lines: list[int], by: MatchingPass | None
) -> None:
    pairing = pair_in_file([old], [new], paired_lines)
    assert [pair.by for pair in pairing.pairs] == ([by] if by else [])
    assert (pairing.old, pairing.new) == (([], []) if by else ([0], [0]))


def test_findings_on_a_line_are_matched_by_column_then_message() -> None:
    old = [_finding(1, 5, message="one"), _finding(1, 9, message="two")]
    new = [_finding(1, 8, message="one"), _finding(1, 30, message="two")]
    assert [pair[:2] for pair in pair_in_file(old, new, [0]).pairs] == [(1, 0), (0, 1)]
    new = [_finding(1, 7, message="two"), _finding(1, 7, message="one")]
    assert [pair[:2] for pair in pair_in_file(old, new, [0]).pairs] == [(0, 1), (1, 0)]


def test_equal_findings_are_matched_in_order() -> None:
    old = [_finding(line) for line in (10, 20, 30)]
    new = [_finding(line) for line in (105, 101)]
    pairing = pair_in_file(old, new, [NO_LINE] * 40)
    assert [pair[:2] for pair in pairing.pairs] == [(0, 1), (1, 0)]
    assert (pairing.old, pairing.new) == ([2], [])


def test_findings_of_a_block_with_other_scope_are_matched_by_lines_without_space() -> None:
    """Their texts are not unique, but the block was only indented, and one line was added to it."""
    old = [_finding(line, scope="f") for line in (1, 2, 3)]
    new = [_finding(line, scope="A.f") for line in (2, 3, 4, 9)]
    pairing = pair_in_file(old, new, [NO_LINE] * 3, lambda: [1, 2, 3])
    assert [tuple(pair) for pair in pairing.pairs] == [(0, 0, "text"), (1, 1, "text"), (2, 2, "text")]
    assert (pairing.old, pairing.new) == ([], [3])


def test_equal_text_in_other_scopes_must_be_unique() -> None:
    """Otherwise, it is unknown which of the findings are really new."""
    pairing = pair_in_file(
        [_finding(1, scope="f", message="m")], [_finding(7, scope="g"), _finding(8, scope="h")], [-1]
    )
    assert (pairing.pairs, pairing.old, pairing.new) == ([], [0], [0, 1])


@pytest.mark.parametrize(
    ("old", "new", "is_matched"),
    [
        ({"before": (b"1", b"2"), "behind": (b"x",)}, {"before": (b"1", b"2"), "behind": (b"y",)}, True),
        ({"before": (b"x",), "behind": (b"1", b"2")}, {"before": (), "behind": (b"1", b"2")}, True),
        ({"before": (b"1", b"x")}, {"before": (b"1", b"y"), "behind": ()}, False),
        ({"before": (b"1",), "behind": ()}, {"before": (b"1",), "behind": (b"2",)}, False),
        ({"scope": "A.f", "before": (b"1",), "behind": (b"x",)}, {"scope": "f", "before": (b"1",), "behind": ()}, True),
        (
            {"scope": "A.f", "before": (), "behind": (b"1",)},
            {"scope": "B.f", "before": (b"x",), "behind": (b"1",)},
            True,
        ),
        ({"scope": "f", "before": (b"1",), "behind": (b"x",)}, {"scope": "g", "before": (b"1",), "behind": ()}, False),
        ({"scope": "f", "before": (), "behind": ()}, {"scope": "f", "before": (b"x",), "behind": (b"y",)}, False),
    ],
)
def test_edge_of_a_moved_block_needs_two_lines_or_a_scope(
    old: dict[str, object], new: dict[str, object], is_matched: bool
) -> None:
    pairing = pair_anywhere([_finding(1)._replace(**old)], [_finding(2)._replace(**new)])  # type: ignore[arg-type]
    assert bool(pairing.pairs) is is_matched


def test_context_matches_only_unique_findings() -> None:
    old = [_finding(1), _finding(4, text=b"twice"), _finding(9, text=b"twice"), _finding(12, text=b"")]
    new = [_finding(50), _finding(60, text=b"twice"), _finding(70, text=b"")]
    pairing = pair_anywhere(old, new)
    assert [tuple(pair) for pair in pairing.pairs] == [(0, 0, "context")]
    assert (pairing.old, pairing.new) == ([1, 2, 3], [1, 2])


_FINDINGS = st.lists(
    st.builds(
        lambda code, line, column, message, scope, text: _finding(
            line, column, code=code, message=message, scope=scope, text=text
        ),
        *(st.sampled_from("AB"), st.integers(0, 6), st.integers(1, 3), st.sampled_from(["1 a", "2 a", "b"])),
        *(st.sampled_from(["", "f"]), st.sampled_from([b"x", b"y", b""])),
    ),
    max_size=12,
)


@given(old=_FINDINGS, new=_FINDINGS, paired=st.permutations([0, 1, 2, NO_LINE, 3, 4]))
def test_each_finding_is_matched_once_or_left_over(
    old: list[MatchableFinding], new: list[MatchableFinding], paired: Sequence[int]
) -> None:
    pairing = pair_in_file(old, new, paired)
    assert sorted([*(pair.old for pair in pairing.pairs), *pairing.old]) == [*range(len(old))]
    assert sorted([*(pair.new for pair in pairing.pairs), *pairing.new]) == [*range(len(new))]
    assert all(old[pair.old][:2] == new[pair.new][:2] for pair in pairing.pairs)
    # Unmatched findings have no equal properties.
    unmatched = {(finding.code, finding.scope, finding.text) for finding in map(new.__getitem__, pairing.new)}
    assert not unmatched & {
        (finding.code, finding.scope, finding.text) for finding in map(old.__getitem__, pairing.old)
    }


@given(findings=_FINDINGS, shift=st.integers(0, 5))
def test_edit_above_makes_no_finding_new(findings: list[MatchableFinding], shift: int) -> None:
    moved = [finding._replace(line=finding.line + shift) for finding in findings if finding.line]
    original = [finding for finding in findings if finding.line]
    random.Random(shift).shuffle(moved)
    pairing = pair_in_file(original, moved, [line + shift for line in range(6)])
    assert {finding.by for finding in pairing.pairs} <= {"line"}
    assert (pairing.old, pairing.new) == ([], [])


def test_line_with_many_findings_is_matched_quickly() -> None:
    findings = [_finding(1, column) for column in range(20_000)]
    assert len(pair_in_file(findings, findings, [0]).pairs) == 20_000


def test_scope_ends_with_the_last_line_of_its_definition() -> None:
    """A definition that ends in column 1 of a line does not include this line."""
    outer = _symbol("C", 1, 9, end_column=4)
    scopes = FileScopes([outer, _symbol("C.f", 2, 4, end_column=1), _symbol("C.g", 5, 7, end_column=2)])
    assert [scopes.scope_at(line) for line in range(11)] == [
        "", "C", "C.f", "C.f", "C", "C.g", "C.g", "C.g", "C", "C", "",
    ]  # fmt: skip


def _symbol(qualified: str, line: int, end_line: int, end_column: int) -> Symbol:
    return Symbol(
        path="a.py", name=qualified, symbol_type="function", qualified=qualified, scope="", line=line, column=1,
        end_line=end_line, end_column=end_column,
    )  # fmt: skip
