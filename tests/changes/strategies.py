"""Random trees and changes of them."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from codebatch.model.nearest_directories import directories_above
from tests.changes.trees import TreeFile

_DIRECTORIES = (b"", b"d/", b"d/e/", b"f g/", b"new/", b"new/b/c d/")
_NAMES = (
    b"a.py",
    b"b",
    b"c d",
    b"caf\xc3\xa9",
    b"\xff\xfe",
    b'q"uote',
    b"back\\slash",
    b"tab\there",
    b"line\nfeed",
    b"-x",
    b"end ",
)
_FILES_OR_DIRECTORIES = (b"d", b"d/e", b"new", b"new/b")
PATHS = st.one_of(
    st.builds(bytes.__add__, st.sampled_from(_DIRECTORIES), st.sampled_from(_NAMES)),
    st.sampled_from(_FILES_OR_DIRECTORIES),
)
_LINES = st.lists(
    st.sampled_from([b"one\n", b"two\n", b"three\r\n", b"\n", b"\xe9\n", b"four\r", b"--- x\n", b"@@\n"]), max_size=12
)
TEXTS = st.builds(lambda lines, end: b"".join(lines) + end, _LINES, st.sampled_from([b"", b"", b"no newline"]))
CONTENTS = st.one_of(TEXTS, TEXTS, st.binary(max_size=200), st.just(b"a\0" + bytes(range(256)) * 40))
FILES = st.builds(TreeFile, CONTENTS, st.sampled_from([0o644, 0o755, 0o600, 0o700]), st.just("file"))
_TARGETS = (b"a.py", b"./b", b"missing/x", b"caf\xc3\xa9", b"\xff\xfe", b"tab\there", b"end ", b"d/e/b")


def targets(path: bytes) -> st.SearchStrategy[bytes]:
    """Return targets that a link at a path may have."""
    ups = st.sampled_from([b"../" * depth for depth in range(path.count(b"/") + 1)])
    return st.builds(bytes.__add__, ups, st.sampled_from(_TARGETS))


def links(path: bytes) -> st.SearchStrategy[TreeFile]:
    """Return links that may be at a path."""
    return st.builds(lambda target: TreeFile(target, kind="link"), targets(path))


@st.composite
def tree_pairs(draw: st.DrawFn) -> tuple[dict[bytes, TreeFile], dict[bytes, TreeFile]]:
    """Return a tree before and after changes. A file keeps its permissions, except that it may become executable."""
    before = draw(st.dictionaries(PATHS, FILES, max_size=6))
    before |= {path: draw(links(path)) for path in draw(st.sets(PATHS, max_size=2))}
    before = _possible_tree({}, before)
    after = dict(before)
    emptied = draw(st.sampled_from([None, None, *_DIRECTORIES, *_FILES_OR_DIRECTORIES]))
    for path in sorted(before):
        content, mode, kind = before[path]
        if emptied is not None and path.startswith(emptied):
            del after[path]
            continue
        if kind == "link":
            match draw(st.sampled_from(["keep", "edit", "delete"])):
                case "edit":
                    after[path] = draw(links(path))
                case "delete":
                    del after[path]
                case _:
                    pass
            continue
        match draw(st.sampled_from(["keep", "edit", "edit", "mode", "both", "delete"])):
            case "edit":
                after[path] = TreeFile(draw(CONTENTS), mode)
            case "mode":
                after[path] = TreeFile(content, _toggled(mode))
            case "both":
                after[path] = TreeFile(draw(CONTENTS), _toggled(mode))
            case "delete":
                del after[path]
            case _:
                pass
    return before, _possible_tree(after, draw(created_files(before)))


def _possible_tree(tree: dict[bytes, TreeFile], new: Mapping[bytes, TreeFile]) -> dict[bytes, TreeFile]:
    """Return a tree with those new files for which neither a file is above nor a directory in their place."""
    result = dict(tree)
    for path, file in new.items():
        if path not in directories_above(result) and not directories_above([path]) & result.keys():
            result[path] = file
    return result


@st.composite
def created_files(draw: st.DrawFn, before: Mapping[bytes, TreeFile]) -> dict[bytes, TreeFile]:
    """Return files and links at paths that a tree does not have."""
    created = {path: draw(links(path)) for path in draw(st.sets(PATHS, max_size=2))}
    for path, content in draw(st.dictionaries(PATHS, CONTENTS, max_size=3)).items():
        created[path] = TreeFile(content, draw(st.sampled_from([0o644, 0o755])))
    return {path: file for path, file in created.items() if path not in before}


def _toggled(mode: int) -> int:
    return mode & ~0o111 if mode & 0o100 else mode | (mode & 0o444) >> 2
