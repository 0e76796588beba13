"""Java, Kotlin and Scala: an import of a whole package leads to the files whose types the importing file uses."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.support.memory_project import MemoryProject

PACKAGE = {
    "src/p/A.java": "package p;\npublic interface A {}\n",
    "src/p/B.java": "package p;\npublic class B { public static class Inner {} }\n",
    "src/p/Two.kt": "package p\nclass Two\nclass Three\n",
    "src/p/Values.kt": "package p\nclass Four\noperator fun Four.plus(x: Int) = this\n",
    "src/p/Implicit.scala": "package p\nclass Five\n",
    "src/p/low.java": "package p;\npublic class low {}\n",
}
ALWAYS = {"src/p/Values.kt", "src/p/low.java"}
"""Files with names that can be used unnoticed."""
CAST = "package q;\nimport p.*;\nclass U { Object f(Object o) { return (B.Inner) o; } }\n"
LITERAL = "package q;\nimport p.*;\nclass U { A a; Object b = Three.class; }\n"


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("src/q/U.java", "package q;\nimport p.*;\nclass U { A a; }\n", {"src/p/A.java"}),
        ("src/q/U.java", CAST, {"src/p/B.java"}),
        ("src/q/U.java", LITERAL, {"src/p/A.java", "src/p/Two.kt"}),
        ("src/q/U.java", "package q;\nimport p.*;\nclass U { String a; }\n", set()),
        ("src/q/U.kt", "package q\nimport p.*\nval u = Two()\n", {"src/p/Two.kt"}),
    ],
)  # fmt: skip
def test_star_leads_to_the_files_whose_types_are_used(path: str, text: str, expected: set[str]) -> None:
    links = _explicit_links({**PACKAGE, path: text})
    assert links - ALWAYS - {"src/p/Implicit.scala"} == expected
    assert ALWAYS - links == set()


def test_parts_of_a_type_and_unreadable_files_keep_all_links() -> None:
    static = "package q;\nimport static p.B.*;\nclass U { Inner a; }\n"
    assert _explicit_links({**PACKAGE, "src/q/U.java": static}) == {"src/p/B.java"}
    broken = "package q;\nimport p.*;\nclass U { A a; int f( { }\n"
    assert "src/p/B.java" in _explicit_links({**PACKAGE, "src/q/U.java": broken})
    scala = "package q\nimport p._\nclass U\n"
    assert "src/p/Implicit.scala" in _explicit_links({**PACKAGE, "src/q/U.scala": scala})


def test_types_of_a_star_stay_certain() -> None:
    files = {**PACKAGE, "src/q/U.java": "package q;\nimport p.*;\nclass U { A a; }\n"}
    (use,) = MemoryProject(files).uses("src/q/U.java", "A")
    assert (use.resolved.certainty, [found.path for found in use.resolved.definitions]) == ("exact", ["src/p/A.java"])


def _explicit_links(files: Mapping[str, str]) -> set[str]:
    return {edge.target for edge in MemoryProject(files).links() if not edge.implicit and edge.resolution == "exact"}
