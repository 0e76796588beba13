"""Random trees and changes of them."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.changes.trees import TreeFile

_DIRECTORIES = (b"", b"d/", b"d/e/", b"f g/")
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
PATHS = st.builds(bytes.__add__, st.sampled_from(_DIRECTORIES), st.sampled_from(_NAMES))
_LINES = st.lists(
    st.sampled_from([b"one\n", b"two\n", b"three\r\n", b"\n", b"\xe9\n", b"four\r", b"--- x\n", b"@@\n"]), max_size=12
)
TEXTS = st.builds(lambda lines, end: b"".join(lines) + end, _LINES, st.sampled_from([b"", b"", b"no newline"]))
CONTENTS = st.one_of(TEXTS, TEXTS, st.binary(max_size=200), st.just(b"a\0" + bytes(range(256)) * 40))
FILES = st.builds(TreeFile, CONTENTS, st.sampled_from([0o644, 0o755, 0o600, 0o700]))


@st.composite
def tree_pairs(draw: st.DrawFn) -> tuple[dict[bytes, TreeFile], dict[bytes, TreeFile]]:
    """Return a tree before and after changes. A file keeps its permissions, except that it may become executable."""
    before = draw(st.dictionaries(PATHS, FILES, max_size=6))
    after = dict(before)
    for path in sorted(before):
        content, mode = before[path]
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
    for path, content in draw(st.dictionaries(PATHS, CONTENTS, max_size=3)).items():
        if path not in before:
            after[path] = TreeFile(content, draw(st.sampled_from([0o644, 0o755])))
    return before, after


def _toggled(mode: int) -> int:
    return mode & ~0o111 if mode & 0o100 else mode | (mode & 0o444) >> 2
