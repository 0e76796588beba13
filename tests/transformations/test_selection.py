"""Selection of edits: those that cannot be made do not prevent the others, in a limited number of trials."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch_workers.syntax.patterns.edits import Edit, original_offset
from codebatch_workers.syntax.patterns.rewriting import compile_rewrite, rewrite_content
from codebatch_workers.syntax.patterns.selection import SYNTAX, TOGETHER, TOO_MANY, TRIALS_MAX, select_edits
from codebatch_workers.syntax.source import SourceFile

COUNT = 200


def lines_of(count: int) -> SourceFile:
    """Return a Python file with a call `f(n)` in each line."""
    text = "".join(f"f({number})\n" for number in range(count))
    return SourceFile(b"a.py", text.encode(), executable=False, contexts={})


def edits_of(file: SourceFile, new: Callable[[int], str]) -> list[Edit]:
    """Return edits of all lines."""
    starts = [*file.line_starts, len(file.utf8)]
    return [Edit(starts[n], starts[n + 1] - 1, [new(n)]) for n in range(file.line_count)]


class CountingErrors:
    """A parser that finds an error in each line with a text, and counts its calls for changed files."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.calls = 0

    def __call__(self, file: SourceFile) -> list[int]:
        self.calls += 1
        return [number for number, line in enumerate(file.utf8.split(b"\n"), 1) if self.text in line]


@pytest.mark.parametrize("bad", [{0}, {COUNT - 1}, {3, 4, 5, 77, 150, 151, 198}, {*range(0, COUNT, 2)}])
@pytest.mark.parametrize("is_exact", [False, True])
def test_only_the_edits_that_are_errors_are_left_out(bad: set[int], is_exact: bool) -> None:
    file = lines_of(COUNT)
    error = "g('bad')" if is_exact else "g(("
    edits = edits_of(file, lambda n: error if n in bad else f"g({n})")
    finder = CountingErrors(b"bad")
    selected = select_edits(file, edits, finder)
    made = [line.decode() for line in selected.changed.content.split(b"\n")[:-1]]
    if len(bad) < COUNT // 4:
        assert made == [f"f({n})" if n in bad else f"g({n})" for n in range(COUNT)]
        assert selected.left_out == {edits[n].start: SYNTAX for n in bad}
    assert not any(error in line for line in made)
    assert finder.calls <= 2 * TRIALS_MAX
    assert {*selected.left_out} | {edit.start for edit in selected.made} == {edit.start for edit in edits}


def test_number_of_trials_is_limited() -> None:
    file = lines_of(COUNT)
    calls = []

    def find_errors(changed: SourceFile) -> list[int]:
        calls.append(changed)
        return [] if changed.content == file.content else [1]

    selected = select_edits(file, edits_of(file, lambda n: f"g({n})"), find_errors)
    assert selected.changed.content == file.content
    assert {*selected.left_out.values()} == {SYNTAX, TOO_MANY}
    assert len(calls) <= 2 * TRIALS_MAX + 4


def test_edits_that_exclude_each_other_are_not_both_made() -> None:
    file = lines_of(2)

    def find_errors(changed: SourceFile) -> list[int]:
        return [1] if changed.content.count(b"g") == 2 else []

    selected = select_edits(file, edits_of(file, lambda n: f"g({n})"), find_errors)
    assert selected.changed.content.count(b"g") == 1
    assert [*selected.left_out.values()] == [TOGETHER]


def test_errors_of_the_file_itself_do_not_count() -> None:
    file = SourceFile(b"a.py", b"x = = 1\nf(1)\nf(2)\n", executable=False, contexts={})
    selected = select_edits(file, [Edit(8, 12, ["g(1)"]), Edit(13, 17, ["g("])], lambda _: [1])
    assert selected.changed.content == b"x = = 1\ng(1)\nf(2)\n"
    assert selected.left_out == {13: SYNTAX}


@given(
    st.lists(st.sampled_from(["f(1)", "f(*a)", "f(f(2), 3)", "x = f(1)", "if f(1): f(2)", "lambda: f(x)"]), max_size=8)
)
def test_each_match_of_the_original_is_rewritten_or_has_a_finding(lines: list[str]) -> None:
    content = "".join(f"{line}\n" for line in lines)
    file = SourceFile(b"a.py", content.encode(), executable=False, contexts={})
    result = rewrite_content(file, [compile_rewrite("f($X)", "del $X", "python")])
    found = {match.line for match in result.left_out}
    for number, (before, after) in enumerate(zip(lines, result.content.decode().splitlines(), strict=True), 1):
        rest = after.count("f(") - before.count("f(f")
        assert (rest > 0) == (number in found), (before, after)


def test_match_in_a_later_pass_has_the_line_of_the_original() -> None:
    content = "x\nf(f(\n  f(k=a)))\nf(k=b)\n"
    file = SourceFile(b"a.py", content.encode(), executable=False, contexts={})
    result = rewrite_content(file, [compile_rewrite("f($X)", "g(\n\n$X).y", "python")])
    assert result.content.decode().count("g(") == 4
    result = rewrite_content(file, [compile_rewrite("f($X)", "$X.y", "python")])
    assert [match.line for match in result.left_out] == [3, 4]


@given(st.randoms(use_true_random=False))
def test_offset_of_copied_code_leads_back_to_its_original(random_: random.Random) -> None:
    text = bytes(range(97, 123))
    file = SourceFile(b"a", text, executable=False, contexts={})
    bounds = sorted(random_.sample(range(27), 6))
    edits = [
        Edit(start, end, ["<", (random_.randint(start, end), end), ">"])
        for start, end in zip(bounds[::2], bounds[1::2], strict=True)
    ]
    new = b""
    done = 0
    for edit in edits:
        span = edit.parts[1]
        assert isinstance(span, tuple)
        new += text[done : edit.start] + b"<" + text[slice(*span)] + b">"
        done = edit.end
    new += text[done:]
    for offset, character in enumerate(new):
        original = original_offset(offset, edits)
        assert (original is None) == (character in b"<>")
        assert original is None or file.utf8[original] == character
