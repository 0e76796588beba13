"""Imports lead to files of the snapshot by each language's rules; what depends on a file is found backwards."""

from __future__ import annotations

import pytest

from codebatch.query.dependencies import Import, cycles, impact
from codebatch.query.resolution import Resolver

# fmt: off
PATHS = """
src/app/__init__.py src/app/core.py src/app/sub/__init__.py src/app/sub/leaf.py tools/run.py tools/help.py
lib/one/util.py lib/two/util.py tests/test_app.py
web/a.ts web/b.tsx web/dir/index.js web/data.json web/made.ts
c/main.c c/main.h c/inc/deep/x.h c/inc/y.h other/y.h
go/pkg/store/store.go go/pkg/store/disk.go go/pkg/store/store_test.go go/cmd/main.go
j/src/org/acme/Thing.java j/src/org/acme/Other.java
r/src/lib.rs r/src/net/mod.rs r/src/net/tcp.rs r/src/text.rs my-crate/src/lib.rs
sh/lib.sh sh/run.sh
""".split()  # noqa: SIM905  # a list of this length is read more easily so
# fmt: on


@pytest.mark.parametrize(
    ("path", "language", "target", "resolution", "files"),
    [
        ("src/app/core.py", "python", ".sub.leaf.name", "exact", "src/app/sub/leaf.py"),
        ("src/app/core.py", "python", ".name", "exact", "src/app/__init__.py"),
        ("src/app/sub/leaf.py", "python", "..core.f", "exact", "src/app/core.py"),
        ("src/app/core.py", "python", "app.sub.*", "exact", "src/app/sub/__init__.py"),
        ("tests/test_app.py", "python", "app.core", "file", "src/app/core.py"),
        ("tests/test_app.py", "python", "util.f", "name", "lib/one/util.py lib/two/util.py"),
        ("tools/run.py", "python", "help", "exact", "tools/help.py"),
        # `core` and `leaf` are no top-level modules: what holds them is a package.
        ("src/app/sub/leaf.py", "python", "core", "external", ""),
        ("tools/run.py", "python", "os.path", "external", ""),
        ("web/a.ts", "typescript", "./b", "exact", "web/b.tsx"),
        ("web/a.ts", "typescript", "./made.js", "exact", "web/made.ts"),
        ("web/b.tsx", "tsx", "./dir", "exact", "web/dir/index.js"),
        ("web/dir/index.js", "javascript", "../data.json", "exact", "web/data.json"),
        ("web/a.ts", "typescript", "react", "external", ""),
        ("c/main.c", "c", "main.h", "exact", "c/main.h"),
        ("c/main.c", "c", "deep/x.h", "file", "c/inc/deep/x.h"),
        ("c/main.c", "c", "y.h", "name", "c/inc/y.h other/y.h"),
        ("c/main.c", "c", "stdio.h", "external", ""),
        ("go/cmd/main.go", "go", "acme.org/x/pkg/store", "file", "go/pkg/store/disk.go go/pkg/store/store.go"),
        ("go/cmd/main.go", "go", "store", "external", ""),
        ("j/src/org/acme/Other.java", "java", "org.acme.Thing.Inner", "file", "j/src/org/acme/Thing.java"),
        ("j/src/x.java", "java", "org.acme.*", "file", "j/src/org/acme/Other.java j/src/org/acme/Thing.java"),
        ("j/src/org/acme/Other.java", "java", "java.util.List", "external", ""),
        ("r/src/net/tcp.rs", "rust", "crate::text::Line", "exact", "r/src/text.rs"),
        ("r/src/net/tcp.rs", "rust", "crate::Error", "exact", "r/src/lib.rs"),
        ("r/src/net/mod.rs", "rust", "self::tcp", "exact", "r/src/net/tcp.rs"),
        ("r/src/net/mod.rs", "rust", "super::text", "exact", "r/src/text.rs"),
        ("r/src/lib.rs", "rust", "net::tcp::Socket", "exact", "r/src/net/tcp.rs"),
        ("r/src/lib.rs", "rust", "my_crate::f", "file", "my-crate/src/lib.rs"),
        ("r/src/lib.rs", "rust", "std::fmt", "external", ""),
        ("sh/run.sh", "bash", "./lib.sh", "exact", "sh/lib.sh"),
        ("sh/run.sh", "bash", "$HOME/x.sh", "external", ""),
        ("sh/run.sh", "text", "./lib.sh", "external", ""),
    ],
)
def test_import_leads_where_the_language_says(
    path: str, language: str, target: str, resolution: str, files: str
) -> None:
    resolved = Resolver(PATHS).resolve(path, language, target)
    assert (resolved.resolution, " ".join(resolved.paths)) == (resolution, files)


def test_dependents_come_nearest_first_and_once_even_in_a_cycle() -> None:
    pairs = ["b a 9", "b a 2", "c b 1", "a c 1", "d a 1", "d c 5", "e x 1"]
    imports = [Import(each[0], each[2], int(each[4:]), "exact") for each in pairs]
    found = [(each.path, each.distance, each.imports, each.line) for each in impact(imports, "a")]
    assert found == [("b", 1, "a", 2), ("d", 1, "a", 1), ("c", 2, "b", 1)]
    assert impact(imports, "e") == []


def test_cycles_are_told_with_the_shortest_way_back_and_without_what_is_not_sure() -> None:
    pairs = ["a b", "b c", "c a", "c d", "d c", "d b", "e e", "f g", "g f", "h a"]
    imports = [Import(each[0], each[2], 1, "exact") for each in pairs] + [Import("a", "h", 2, "name")]
    assert [(cycle.files, cycle.shortest) for cycle in cycles(imports)] == [
        (("a", "b", "c", "d"), ("a", "b", "c", "a")),
        (("f", "g"), ("f", "g", "f")),
    ]
    assert cycles([]) == []
