"""Tests of whether a rule is off at a path, as comparisons need to know."""

from __future__ import annotations

import subprocess
import sys

import pytest

from codebatch.model.task import JsonValue
from codebatch_workers.runtime.absence_reasons import rule_switch

_OWN: dict[str, JsonValue] = {
    "id": "no-print",
    "language": "python",
    "query": "(call function: (identifier) @name)",
    "message": "calls {name}",
}
_WITHOUT_A_PARSER = """
import sys
from codebatch_workers.runtime.absence_reasons import rule_switch
is_off = rule_switch({"rules": [%r], "off": ["no-print"]})
assert is_off(b"a.py", "codebatch", "no-print") and not is_off(b"a.py", "ruff", "F401")
assert "tree_sitter" not in sys.modules
"""


@pytest.mark.parametrize(
    ("settings", "tool", "code", "is_off"),
    [
        ({}, "codebatch", "merge-conflict", False),
        ({"off": ["merge-*"]}, "codebatch", "merge-conflict", True),
        ({}, "codebatch", "trailing-whitespace", True),
        ({"on": ["trailing-whitespace"]}, "codebatch", "trailing-whitespace", False),
        ({"off": ["merge-*"], "paths": [{"match": ["a.py"], "on": ["merge-*"]}]}, "", "merge-conflict", False),
        ({"rules": [_OWN]}, "codebatch", "no-print", False),
        ({}, "codebatch", "no-print", None),
        ({}, "ruff", "F401", False),
        ({"off": ["F4*"]}, "ruff", "F401", True),
        ({}, "ruff", "D100", None),
        ({"ruff": {"config": "project"}}, "ruff", "D100", False),
        ({"ruff": {"config": "project"}, "off": ["D100"]}, "ruff", "D100", True),
    ],
)  # fmt: skip
def test_rule_is_off_according_to_settings(
    settings: dict[str, JsonValue], tool: str, code: str, is_off: bool | None
) -> None:
    switch = rule_switch(settings)
    assert switch is not None
    assert switch(b"a.py", tool, code) is is_off


def test_invalid_settings_yield_no_rule_switch() -> None:
    assert rule_switch({"levels": 3}) is None


def test_rule_switch_loads_no_parser() -> None:
    subprocess.run([sys.executable, "-c", _WITHOUT_A_PARSER % _OWN], check=True, timeout=60)
