"""Symbolic links of a tree: a link that leaves the tree, directly or through others, is not created."""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch_workers.programs.inner_links import inner_links

DEEP = b"a/b/c/d/e"


@pytest.mark.parametrize(
    ("targets", "inside"),
    [
        ({b"x": b"y"}, [b"x"]),
        ({b"a/x": b"../y"}, [b"a/x"]),
        ({b"x": b"a//./b"}, [b"x"]),
        ({b"x": b".."}, []),
        ({b"x": b"."}, []),
        ({b"x": b""}, []),
        ({b"x": b"a\0b"}, []),
        ({b"x": b"/etc/passwd"}, []),
        ({b"a/x": b"../../y"}, []),
        ({b"x": b"x"}, []),
        ({b"x": b"y", b"y": b"x"}, []),
        ({b"x": b"y/z", b"y": b"/etc"}, []),
        # `..` after a link is the parent of its target, so the second link leaves the tree.
        ({DEEP + b"/up": b"../../../../f", b"x": DEEP + b"/up/../../../etc"}, [DEEP + b"/up"]),
        ({DEEP + b"/up": b"../../../../f", b"x": DEEP + b"/up/../g"}, [DEEP + b"/up", b"x"]),
        ({b"lib/.bin/tool": b"../tool/cli.js", b"x": b"lib/.bin/tool"}, [b"lib/.bin/tool", b"x"]),
    ],
    ids=str,
)  # fmt: skip
def test_links_that_stay_inside(targets: dict[bytes, bytes], inside: list[bytes]) -> None:
    assert inner_links(targets) == {path: targets[path] for path in inside}


_NAMES = st.sampled_from([b"a", b"b", b"c"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=4).map(b"/".join)
_TARGETS = st.lists(st.sampled_from([b"a", b"b", b"c", b"..", b"..", b"."]), min_size=1, max_size=7).map(b"/".join)


@given(st.dictionaries(_PATHS, _TARGETS, max_size=6))
def test_kernel_resolves_no_accepted_link_to_a_path_outside(targets: dict[bytes, bytes]) -> None:
    targets = {
        path: target for path, target in targets.items() if not any(path.startswith(b"%b/" % link) for link in targets)
    }  # A tree has nothing below a link.
    with TemporaryDirectory() as directory:
        root = os.fsencode(os.path.realpath(directory)) + b"/1/2/3/4/5/6/7/tree"
        for path, target in targets.items():
            os.makedirs(os.path.dirname(root + b"/" + path), exist_ok=True)
            os.symlink(target, root + b"/" + path)
        for path in inner_links(targets):
            assert os.path.realpath(root + b"/" + path).startswith(root + b"/")
