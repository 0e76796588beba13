"""Tests of imports of Java, Kotlin and Scala: they lead to the files that define the name."""

from __future__ import annotations

import pytest

from codebatch_workers.resolution.import_rule import PackageDefinitions
from tests.tasks.resolution.resolving import answer

_USES, _MAIN = "src/test/java/org/usage/annotation/UsesTest.java", "src/main/java/org/lib"
_A, _T, _B = "a/src/main/kotlin/p", "a/src/test/kotlin/p", "b/src/main/kotlin/q"
DEFINED = {
    f"{_A}/Result.kt": ("p", "Result Failure"),
    f"{_A}/Other.kt": ("p", "Other helper"),
    f"{_A}/More.kt": ("p", "helper"),
    f"{_A}/spec/RuleSpec.kt": ("p.spec", "RuleSpec"),
    f"{_T}/ResultTest.kt": ("p", "ResultTest"),
    f"{_B}/Main.kt": ("q", "Main"),
    f"{_B}/tools.kt": ("q.tools", "run"),
    "b/src/test/kotlin/q/MainTest.kt": ("q", "MainTest"),
    "src/main/java/org/lib/Mark.java": ("org.lib", "Mark"),
    "src/test/java/org/usage/annotation/org/lib/Mark.java": ("org.usage.annotation.org.lib", "Mark"),
    "src/test/java/org/usage/annotation/UsesTest.java": ("org.usage.annotation", "UsesTest"),
    "src/main/java/org/lib/Lost.java": ("org.lib", "!"),
    "one/src/d/D.java": ("d", "D"),
    "two/src/d/D.java": ("d", "D"),
    "two/src/d/deep/E.java": ("d.deep", "E"),
    "three/F.java": ("three", "F"),
    "emul/java/util/List.java": ("java.util", "List"),
    "s/A.scala": ("x.y.z", "A"),
    "s/B.scala": ("x.y", "B"),
    "s/C.scala": ("x.y.w", "C"),
    "bare/Script.kt": ("", "Loose"),
}
DEFINITIONS = {
    path: PackageDefinitions(package, frozenset(names.split()), is_partial=names == "!")
    for path, (package, names) in DEFINED.items()
}
TREE = dict.fromkeys(DEFINED, "")


@pytest.mark.parametrize(
    ("path", "target", "resolution", "files"),
    [
        # The file that defines the name, whatever its own name. A function may be defined in several files.
        (f"{_B}/Main.kt", "p.Failure", "exact", f"{_A}/Result.kt"),
        (f"{_B}/Main.kt", "p.Failure.Inner", "exact", f"{_A}/Result.kt"),
        (f"{_B}/Main.kt", "p.helper", "exact", f"{_A}/More.kt {_A}/Other.kt"),
        (f"{_B}/Main.kt", "q.tools.run", "exact", f"{_B}/tools.kt"),
        (f"{_B}/Main.kt", "p.Gone", "external", ""),
        # Main sources do not import tests. A file with a similar name is not the target.
        (f"{_B}/Main.kt", "p.ResultTest", "external", ""),
        (f"{_B}/Main.kt", "p.*", "exact", f"{_A}/More.kt {_A}/Other.kt {_A}/Result.kt"),
        (f"{_B}/Main.kt", "p.spec.RuleSpec", "exact", f"{_A}/spec/RuleSpec.kt"),
        ("b/src/test/kotlin/q/MainTest.kt", "p.ResultTest", "exact", f"{_T}/ResultTest.kt"),
        (f"{_T}/ResultTest.kt", "p.*", "exact", f"{_A}/More.kt {_A}/Other.kt {_A}/Result.kt {_T}/ResultTest.kt"),
        (f"{_T}/ResultTest.kt", "p.helper", "exact", f"{_A}/More.kt {_A}/Other.kt"),
        # The package decides, not the end of the path.
        (
            "src/test/java/org/usage/annotation/UsesTest.java",
            "org.lib.Mark",
            "exact",
            "src/main/java/org/lib/Mark.java",
        ),
        (
            "src/test/java/org/usage/annotation/UsesTest.java",
            "org.lib.Lost",
            "exact",
            "src/main/java/org/lib/Lost.java",
        ),
        # Among several files, the one below the importing file's root, otherwise the nearest, otherwise all.
        ("two/src/d/deep/E.java", "d.D", "exact", "two/src/d/D.java"),
        ("three/F.java", "d.D", "name", "one/src/d/D.java two/src/d/D.java"),
        ("three/F.java", "java.util.List", "external", ""),
        # Java names the class that contains the functions of a file.
        ("three/F.java", "q.tools.ToolsKt.run", "exact", f"{_B}/tools.kt"),
        # In Scala, an import may be relative to an enclosing package.
        ("s/A.scala", "w.C", "exact", "s/C.scala"),
        ("s/A.scala", "x.y.B", "exact", "s/B.scala"),
        ("s/A.scala", "B", "exact", "s/B.scala"),
        ("s/A.scala", "Loose", "external", ""),
        ("s/A.scala", "y.w._", "exact", "s/C.scala"),
    ],
)
def test_jvm_names_resolve_to_their_defining_files(path: str, target: str, resolution: str, files: str) -> None:
    language = {"kt": "kotlin", "java": "java", "scala": "scala"}[path.rpartition(".")[2]]
    assert answer(TREE, path, language, target, DEFINITIONS) == (resolution, files)


def test_partially_parsed_file_may_define_any_name_of_its_package() -> None:
    known = {**DEFINITIONS, f"{_A}/Other.kt": PackageDefinitions("p", frozenset(), is_partial=True)}
    assert answer(TREE, f"{_B}/Main.kt", "kotlin", "p.Gone", known) == ("name", f"{_A}/Other.kt")
