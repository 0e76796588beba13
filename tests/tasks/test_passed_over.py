"""Tests of code in which duplicates are not searched: translations, and tests within files of other code."""

from __future__ import annotations

from array import array

import pytest

from codebatch_workers.duplicates.code_lines import code_lines
from codebatch_workers.duplicates.excluded_code import is_translation
from codebatch_workers.duplicates.fingerprints import make_fingerprints
from tests.support.source_files import source

CODE = "".join(f"    let name_{at} = compute({at});\n" for at in range(12))


@pytest.mark.parametrize(
    "path",
    [
        "app/lang/jstoolbar-en-gb.js",
        "src/i18n/sr-Cyrl.js",
        "src/locale/de.ts",
        "locales/zh-Hans-CN/app.js",
        "upload/language/en-gb/account/a.php",
        "config/locales/models.pt-BR.rb",
        "a/translations/pt_BR.py",
        "lang/es-419.js",
    ],
)
def test_translations_are_recognized_by_their_paths(path: str) -> None:
    assert is_translation(path.encode())
    assert make_fingerprints(source(path, "a = compute(1);\n" * 12)) is None


@pytest.mark.parametrize(
    "path", ["src/i18n/index.js", "src/lang/go.ts", "src/en.js", "languages/python.py", "lang/plugin.js", "de/a.js"]
)
def test_other_paths_are_not_translations(path: str) -> None:
    assert not is_translation(path.encode())


@pytest.mark.parametrize(
    "attribute",
    ["#[cfg(test)]", '#[cfg(all(test, feature = "a"))]', "#[cfg(test)]\n// A comment.\n#[allow(dead_code)]"],
)
def test_rust_test_modules_count_as_comments(attribute: str) -> None:
    file = source("a.rs", f"// {{}}\nfn f() {{\n{CODE}}}\n{attribute}\nmod tests {{\n// Why.\n{CODE}}}\nfn g() {{}}\n")
    fingerprints = make_fingerprints(file)
    assert fingerprints is not None
    lines, numbers = code_lines(file.utf8, fingerprints.comments)
    assert numbers[-1] == file.utf8.count(b"\n")
    assert sum(line.startswith(b"letname") for line in lines) == 12


@pytest.mark.parametrize("attribute", ["#[cfg(not(test))]", '#[cfg(feature = "test")]', "#[cfg(any(test, unix))]"])
def test_other_rust_modules_are_code(attribute: str) -> None:
    file = source("a.rs", f"fn f() {{\n{CODE}}}\n{attribute}\nmod tests {{\n{CODE}}}\n")
    fingerprints = make_fingerprints(file)
    assert fingerprints is not None
    assert not array("I", fingerprints.comments)


C_CODE = "".join(f"    name_{at} = compute({at});\n" for at in range(12))


@pytest.mark.parametrize(
    ("name", "otherwise", "is_code"),
    [
        ("REDIS_TEST", "", False),
        ("UNITTEST", "", False),
        ("SELF_TESTS", "", False),
        ("REDIS_TEST", "#else\nint a;\n", True),
        ("LATEST", "", True),
        ("TEST_FLAG", "", True),
    ],
)
def test_c_test_groups_count_as_comments(name: str, otherwise: str, is_code: bool) -> None:
    file = source("a.c", f"int f() {{\n{C_CODE}}}\n#ifdef {name}\nint g() {{\n{C_CODE}}}\n{otherwise}#endif\nint h;\n")
    fingerprints = make_fingerprints(file)
    assert fingerprints is not None
    lines, _ = code_lines(file.utf8, fingerprints.comments)
    assert sum(line.startswith(b"name") for line in lines) == (24 if is_code else 12)
    assert lines[-1] == b"inth;"
