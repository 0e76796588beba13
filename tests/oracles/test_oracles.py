"""Answers of codebatch agree with those of independent tools on real codebases.

The known differences are in allowance.json, by class and count. `python -m tests.oracles` writes it again.
"""

from __future__ import annotations

import os
import shutil

import pytest

from tests.oracles.agreement import Fact, compare, grown
from tests.oracles.catalogue import COMPARISONS

# The slowest comparisons. Their oracles are also used on other trees. They run each week (CODEBATCH_ORACLES=all).
_WEEKLY = {
    "cc: includes of leveldb",
    "cc: includes of libuv",
    "cloc: lines of c in libuv",
    "cloc: lines of javascript in eslint",
    "ctags: c definitions of libuv",
    "eslint: complexity of eslint",
    "eslint: complexity of express",
    "eslint: complexity of rxjs",
    "eslint: complexity of zod",
    "eslint: shadowing names of pm2",
    "eslint: shadowing names of rxjs 6",
    "eslint: unused names of rxjs 6",
    "importlib: imports of airflow",
    "importlib: imports of django",
    "importlib: imports of django, its package the root",
    "importlib: imports of docutils",
    "javac: imports of cordova-android",
    "javascript typescript tsx tools: syntax errors of effect",
    "javascript typescript tsx tools: syntax errors of rxjs",
    "jscpd: duplicated lines of psutil",
    "lizard: c complexity of libuv",
    "lizard: cpp complexity of leveldb",
    "lizard: rust complexity of tokenizers",
    "pyflakes: unused names of jpype",
    "radon: complexity of flask",
    "rust tools: syntax errors of tokenizers",
    "rustc: modules and crates of cryptography",
    "sonarjs: cognitive complexity of react-table",
    "sonarjs: cognitive complexity of rxjs",
    "sonarjs: cognitive complexity of zod",
    "tsc: definitions of eslint",
    "tsc: definitions of rxjs",
    "tsc: imports of rxjs",
}
_SELECTED = COMPARISONS if os.environ.get("CODEBATCH_ORACLES") == "all" else sorted(COMPARISONS.keys() - _WEEKLY)


def test_weekly_comparisons_are_known() -> None:
    assert COMPARISONS.keys() > _WEEKLY


@pytest.mark.corpus
@pytest.mark.parametrize("name", _SELECTED)
def test_oracle_agrees(name: str) -> None:
    comparison = COMPARISONS[name]
    for tool in comparison.tools:
        if shutil.which(tool) is None:
            pytest.skip(f"this oracle needs {tool}")
    agreement = comparison.agree()
    assert agreement.matched > 0
    assert not grown(name, agreement)
    assert agreement.precision >= comparison.least
    for kind, least in comparison.least_of.items():
        assert agreement.precision_of(kind) >= least
    assert agreement.recall >= (comparison.least if comparison.least_recall is None else comparison.least_recall)


def test_differences_are_reported_by_side_and_class() -> None:
    def explain(side: str, fact: Fact) -> str | None:
        return "knows no w" if fact[1] == "w" else None

    actual_facts: list[Fact] = [("f", "a"), ("f", "a"), ("f", "b"), ("g", "w")]
    expected_facts: list[Fact] = [("f", "a"), ("g", "c"), ("f", "d")]
    agreement = compare(actual_facts, expected_facts, explain)
    assert agreement.differences == {"extra f": 2, "missing f": 1, "missing g": 1, "theirs knows no w": 1}
    assert (agreement.matched, agreement.precision, agreement.recall) == (1, 1 / 3, 1 / 3)
    assert [agreement.precision_of(kind) for kind in "fgh"] == [1 / 3, 1, 1]
    assert sorted(line.split(",")[0] for line in grown("no such comparison", agreement)) == [
        "extra f: 2 > 0",
        "missing f: 1 > 0",
        "missing g: 1 > 0",
        "theirs knows no w: 1 > 0",
    ]
