"""Swift: files are linked by the names of their module, and of the modules that they import."""

# ruff: noqa: E501  # Each project is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.tasks.resolution.implicit_links import implicit_links

PACKAGE = {"Package.swift": ""}
A = {"Sources/M/A.swift": "struct A { static func make() {}\n  struct B {} }\n"}

PROJECTS: list[tuple[str, Mapping[str, str], list[str]]] = [
    ("same module", {**PACKAGE, **A, "Sources/M/C.swift": "let c: A\n"}, ["Sources/M/C.swift -> Sources/M/A.swift exact A"]),
    ("static member", {**PACKAGE, **A, "Sources/M/C.swift": "func f() { A.make() }\n"}, ["Sources/M/C.swift -> Sources/M/A.swift exact A"]),
    ("nested type", {**PACKAGE, **A, "Sources/M/C.swift": "let c = A.B()\n"}, ["Sources/M/C.swift -> Sources/M/A.swift exact A.B"]),
    ("base", {**PACKAGE, **A, "Sources/M/C.swift": "class C: A {}\n"}, ["Sources/M/C.swift -> Sources/M/A.swift exact A"]),
    ("extension uses the type", {**PACKAGE, **A, "Sources/M/A+C.swift": "extension A { func g() {} }\n"}, ["Sources/M/A+C.swift -> Sources/M/A.swift exact A"]),
    ("extension defines no type", {**PACKAGE, **A, "Sources/M/A+C.swift": "extension A { func g() {} }\n", "Sources/M/D.swift": "let d: A\n"}, ["Sources/M/A+C.swift -> Sources/M/A.swift exact A", "Sources/M/D.swift -> Sources/M/A.swift exact A"]),
    ("type in an extension", {**PACKAGE, **A, "Sources/M/A+C.swift": "extension A { struct C {} }\n", "Sources/M/D.swift": "let d: A.C\n"}, ["Sources/M/A+C.swift -> Sources/M/A.swift exact A", "Sources/M/D.swift -> Sources/M/A+C.swift exact A.C"]),
    ("extension of a type of the system", {**PACKAGE, "Sources/M/S.swift": "extension String { func g() {} }\n", "Sources/M/D.swift": "let d: String\n"}, []),
    ("test", {**PACKAGE, **A, "Tests/MTests/ATests.swift": "@testable import M\nlet a = A()\n"}, ["Tests/MTests/ATests.swift -> Sources/M/A.swift exact A"]),
    ("imported module", {**PACKAGE, **A, "Sources/N/C.swift": "import M\nlet a: A\n"}, ["Sources/N/C.swift -> Sources/M/A.swift file A"]),
    ("module that exports another", {**PACKAGE, **A, "Sources/N/C.swift": "let a: A\n"}, ["Sources/N/C.swift -> Sources/M/A.swift file A"]),
    ("own module first", {**PACKAGE, **A, "Sources/N/A.swift": "struct A {}\n", "Sources/N/C.swift": "import M\nlet a: A\n"}, ["Sources/N/C.swift -> Sources/N/A.swift exact A"]),
    ("module before the name", {**PACKAGE, **A, "Tests/MTests/T.swift": "import M\nlet a: M.A\n"}, ["Tests/MTests/T.swift -> Sources/M/A.swift exact M.A"]),
    ("directory set by the package", {"Package.swift": '.target(name: "M", path: "Code"), .testTarget(name: "T", path: "Checks")', "Code/x/A.swift": "struct A {}\n", "Code/y/B.swift": "let a: A\n", "Checks/C.swift": "import M\nlet a: A\n"}, ["Checks/C.swift -> Code/x/A.swift file A", "Code/y/B.swift -> Code/x/A.swift exact A"]),
    ("without a package", {"App/A.swift": "struct A {}\n", "App/B.swift": "let a: A\n"}, ["App/B.swift -> App/A.swift file A"]),
    ("private type", {**PACKAGE, "Sources/M/A.swift": "private struct A {}\n", "Sources/M/B.swift": "let a: A\n"}, []),
    ("private type of the file", {**PACKAGE, **A, "Sources/M/B.swift": "private struct A {}\nlet a: A\n"}, []),
    ("nested type of this name", {**PACKAGE, **A, "Sources/M/B.swift": "struct C { struct A {} }\n", "Sources/M/D.swift": "extension C { var a: A }\n"}, ["Sources/M/D.swift -> Sources/M/A.swift file A", "Sources/M/D.swift -> Sources/M/B.swift exact C"]),
    ("type parameter", {**PACKAGE, **A, "Sources/M/C.swift": "struct C<A> { let a: A }\n"}, ["Sources/M/C.swift -> Sources/M/A.swift file A"]),
    ("several files", {**PACKAGE, **A, "Sources/M/A2.swift": "struct A {}\n", "Sources/M/C.swift": "let c: A\n"}, ["Sources/M/C.swift -> Sources/M/A.swift name A", "Sources/M/C.swift -> Sources/M/A2.swift name A"]),
    ("function", {**PACKAGE, "Sources/M/F.swift": "func go() {}\n", "Sources/M/C.swift": "func f() { go() }\n"}, ["Sources/M/C.swift -> Sources/M/F.swift file go"]),
    ("function with a capital", {**PACKAGE, "Tests/T/F.swift": "func XCTAssertFoo() {}\n", "Tests/T/C.swift": "func f() { XCTAssertFoo() }\n"}, ["Tests/T/C.swift -> Tests/T/F.swift file XCTAssertFoo"]),
    ("method of this name", {**PACKAGE, "Sources/M/F.swift": "func go() {}\n", "Sources/M/C.swift": "class C { func go() {}\n  func f() { go() } }\n"}, []),
    ("comments and strings", {**PACKAGE, **A, "Sources/M/C.swift": '// A\nlet c = "A"\n'}, []),
]  # fmt: skip


@pytest.mark.parametrize(("files", "links"), [project[1:] for project in PROJECTS], ids=[each[0] for each in PROJECTS])
def test_names_are_linked(files: Mapping[str, str], links: list[str]) -> None:
    assert implicit_links(files) == links
