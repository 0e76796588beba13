"""Tests of the recognition of test files by the names that test runners look for."""

from __future__ import annotations

import pytest

from codebatch.query.answers.test_names import is_test_file


@pytest.mark.parametrize(
    "path",
    ["test_a.py", "a/tests.py", "a_test.go", "x/a.spec.ts", "a.test-d.tsx", "AIT.java", "a/BTest.kt", "x_spec.rb",
     "crate/tests/it.rs", "__tests__/a.js", "a.bats", "a_unittest.cc"],
)  # fmt: skip
def test_file_names_are_recognized(path: str) -> None:
    assert is_test_file(path.encode())


@pytest.mark.parametrize(
    "path",
    ["contest.py", "tests/helper.py", "test/utils.js", "latest.go", "src/testing.rs", "a.test.md", "Testament.java",
     "test_data.json", "attest.rb", "tests/deep/it.rs", "\n", ""],
)  # fmt: skip
def test_similar_file_names_are_not_tests(path: str) -> None:
    assert not is_test_file(path.encode())
