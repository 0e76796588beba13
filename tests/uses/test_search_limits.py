"""Limits of searches for evidence: what they leave out is counted, so that no `none` is firm.

A use in modules that all re-export each other is resolved in bounded time, or it is known by name only.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.operations.names import file_evidence, file_impact, in_source_tests, joined_names
from codebatch.operations.queries.batch_query import Answer
from codebatch.query.answers.search_coverage import SearchCoverage
from tests.uses.shapes import resolve_marked
from tests.uses.small_batches import batch_of

_UNRELATED = {f"m{number}.py": f"x = {number}  # do_ w\n" for number in range(3)}
_MODULES = 14


def _unsearched(answer: Answer[object]) -> dict[str, int]:
    coverage = answer.coverage
    assert isinstance(coverage, SearchCoverage)
    return {evidence.text: evidence.count for evidence in coverage.evidence if evidence.kind == "unsearched"}


def test_files_with_a_part_of_a_name_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a.py": "class A:\n    def do_walk(self): ...\n", **_UNRELATED}
    with batch_of(tmp_path, files) as batch:
        assert _unsearched(batch.callers("do_walk")) == {}
        monkeypatch.setattr(joined_names, "_FILES_READ_MAX", 1)
        assert _unsearched(batch.callers("do_walk")) == {"3 more files with parts of do_walk were not searched": 3}


def test_importers_and_definitions_of_a_file_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"w.py": "def one(): ...\ndef two(): ...\n", **_UNRELATED}
    with batch_of(tmp_path, files) as batch:
        assert _unsearched(batch.impact("w.py")) == {}
        monkeypatch.setattr(file_evidence, "_IMPORTERS_READ_MAX", 2)
        monkeypatch.setattr(file_evidence, "_DEFINED_NAMES_MAX", 1)
        assert _unsearched(batch.impact("w.py")) == {
            "1 more file with w was not searched": 1,
            "1 more definition was not searched": 1,
        }


def test_dependents_are_counted_if_none_of_them_is_a_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"Cargo.toml": '[package]\nname = "p"\n', "src/lib.rs": "mod a;\nmod b;\n", "src/b.rs": "use crate::a;\n"}
    with batch_of(tmp_path, {**files, "src/a.rs": "pub fn f() {}\n"}) as batch:
        answer = batch.impact("src/a.rs", for_tests=True)
        assert _unsearched(answer) == {}
        monkeypatch.setattr(file_impact, "_SEARCHED_FOR_TESTS_MAX", 1)
        monkeypatch.setattr(in_source_tests, "_FILES_READ_MAX", 2)
        dependents = len(answer.result.dependents)
        assert sorted(_unsearched(batch.impact("src/a.rs", for_tests=True)).values()) == sorted(
            [dependents, dependents + 1 - 2]
        )


def test_first_of_many_searched_words_are_named(tmp_path: Path) -> None:
    methods = "".join(f"    public static int F{number}() {{ return 1; }}\n" for number in range(30))
    with batch_of(tmp_path, {"W.cs": f"class W {{\n{methods}}}\n", "v.erb": "W\n"}) as batch:
        coverage = batch.impact("W.cs").coverage
        assert coverage is not None
        assert (len(coverage.words), coverage.words_text.endswith(" or F17 or 12 more names")) == (32, True)


def test_javascript_modules_that_export_each_other() -> None:
    files = {
        f"m{number}.ts": "".join(f"export * from './m{other}';\n" for other in range(_MODULES) if other != number)
        for number in range(_MODULES)
    }
    assert resolve_marked({**files, "u.ts": "import { f } from './m0';\n«f»();\n"}) == ("name", [])


def test_python_modules_that_import_each_other() -> None:
    files = {
        f"m{number}.py": "".join(f"from m{other} import *\n" for other in range(_MODULES) if other != number)
        for number in range(_MODULES)
    }
    assert resolve_marked({**files, "u.py": "from m0 import *\n«f»()\n"}) == ("name", [])
