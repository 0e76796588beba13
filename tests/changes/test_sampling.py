"""Samples and groups of changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codebatch.model.change import ProposedChange, TreeChange
from codebatch.model.owners import CodeOwners
from codebatch.operations.changes.groups import group_changes, split_changes
from codebatch.operations.changes.sampling import edit_shape, sample_changes
from tests.changes.trees import Tree, TreeFile, proposed_changes, tree_contents


def edits(*pairs: tuple[bytes, bytes, bytes]) -> tuple[list[ProposedChange], Tree, Tree]:
    before = {path: TreeFile(old) for path, old, _ in pairs}
    after = {path: TreeFile(new) for path, _, new in pairs}
    return proposed_changes(before, after), before, after


def shape(old: TreeFile | None, new: TreeFile | None) -> object:
    before = {} if old is None else {b"x": old}
    after = {} if new is None else {b"x": new}
    (proposed,) = proposed_changes(before, after)
    return edit_shape(proposed.change, tree_contents(before, after).read)


def replaced(old: bytes, new: bytes) -> object:
    return shape(TreeFile(old), TreeFile(new))


def test_equal_replacements_in_different_lines_have_one_shape() -> None:
    same = replaced(b"a = old(1)\n", b"a = new(1)\n")
    assert replaced(b"x\n\nreturn old(x)\nold()\n", b"x\n\nreturn new(x)\nnew()\n") == same
    assert replaced(b"old + old\n", b"new + new\n") == same
    assert replaced(b"z  +  old\n", b"z  +  new\n") == same


def test_different_kinds_of_edits_have_different_shapes() -> None:
    old, new, link = TreeFile(b"old\n"), TreeFile(b"new\n"), TreeFile(b"old", kind="link")
    shapes = [
        replaced(b"old\n", b"new\n"),
        replaced(b"old\n", b"newer\n"),
        replaced(b"a = old(b)\n", b"a = (old)(b)\n"),
        replaced(b"a\nold\nb\n", b"a\nnew one\nnew two\nb\n"),
        replaced(b"a\nb\n", b"a\n"),
        replaced(b"a\n", b"a\nb\n"),
        replaced(b"a\0", b"b\0"),
        shape(None, new),
        shape(old, None),
        shape(old, TreeFile(b"new\n", 0o755)),
        shape(None, link),
        shape(link, TreeFile(b"x", kind="link")),
    ]
    assert len({*shapes}) == len(shapes)


def test_sample_has_each_shape_before_a_shape_twice_then_each_directory() -> None:
    many = [(b"a/%02d" % number, b"old\n", b"new\n") for number in range(20)]
    others = [(b"b/x", b"old\n", b"new\n"), (b"c/y", b"old\n", b"new\n"), (b"a/50", b"old\n", b"OTHER\n")]
    proposed, before, after = edits(*many, *others)
    read = tree_contents(before, after).read

    def sampled(count: int) -> list[bytes]:
        sample = sample_changes(proposed, count, lambda change: edit_shape(change, read))
        return [each.change.path for each in sample]

    assert sampled(1) == [b"a/00"]
    assert sampled(2) == [b"a/00", b"a/50"]
    assert sampled(4) == [b"a/00", b"a/50", b"b/x", b"c/y"]
    assert sampled(100) == [each.change.path for each in proposed]
    assert sampled(7) == sampled(7)


CHANGES = st.lists(
    st.tuples(st.sampled_from([b"a/", b"b/", b"c/d/", b""]), st.integers(0, 99), st.integers(0, 3)),
    unique_by=lambda each: each[:2],
    max_size=30,
)


def changes_of(drawn: list[tuple[bytes, int, int]]) -> tuple[list[ProposedChange], dict[bytes, int]]:
    shapes = {b"%b%d" % (directory, number): kind for directory, number, kind in drawn}
    changes = [
        ProposedChange(change=TreeChange(path=path, before=None, after=None), task=f"t{kind}", added=1, removed=kind)
        for path, kind in sorted(shapes.items())
    ]
    return changes, shapes


@given(CHANGES, st.integers(1, 40))
def test_sample_covers_as_many_shapes_and_directories_as_it_can(
    drawn: list[tuple[bytes, int, int]], count: int
) -> None:
    proposed, shapes = changes_of(drawn)
    sample = sample_changes(proposed, count, lambda change: shapes[change.path])
    assert len(sample) == min(count, len(proposed))
    assert [each.change.path for each in sample] == sorted({each.change.path for each in sample})
    used = {shapes[each.change.path] for each in sample}
    assert len(used) == min(count, len({*shapes.values()}))
    if len({*shapes.values()}) == 1:
        directories = {each.change.path.rpartition(b"/")[0] for each in sample}
        assert len(directories) == min(count, len({path.rpartition(b"/")[0] for path in shapes}))


@given(CHANGES, st.integers(1, 40))
def test_groups_have_each_change_once(drawn: list[tuple[bytes, int, int]], count: int) -> None:
    proposed, _ = changes_of(drawn)
    owners = CodeOwners(b"/a/ @a\n/b/1 @b\n")
    for by in ("task", "owner", "directory"):
        groups = group_changes(proposed, by, owners)
        grouped = [change for group in groups for change in group.changes]
        assert sorted(grouped, key=lambda each: each.change.path) == proposed
        assert len({group.label for group in groups}) == len(groups)
    parts = split_changes(proposed, count)
    assert [change for part in parts for change in part.changes] == proposed
    assert all(len(part.changes) == count for part in parts[:-1])
    assert [part.label for part in parts] == [f"{at + 1} of {len(parts)}" for at in range(len(parts))]


def test_labels_of_groups() -> None:
    proposed, _ = changes_of([(b"a/", 1, 0), (b"c/d/", 1, 1), (b"", 1, 2), (b"b/", 1, 0)])
    owners = CodeOwners(b"/a/ @z @y\n/c/ @b\n")
    assert [group.label for group in group_changes(proposed, "task", owners)] == ["t0", "t1", "t2"]
    assert [group.label for group in group_changes(proposed, "owner", owners)] == ["@b", "@z @y", None]
    assert [group.label for group in group_changes(proposed, "directory", owners)] == [".", "a", "b", "c"]
