"""Rules about suppression comments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.source_files import lint_all, source

_ALL = {"on": ["suppression-*"]}


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.py", "x = 1  # noqa: E501, W291 legacy URL\n", ["`noqa: E501, W291`: legacy URL"]),
        ("a.py", "x = 1  # noqa: E501  # legacy\n", ["`noqa: E501`: legacy"]),
        ("a.py", "x = 1  # NOQA because\n", ["`NOQA`: because"]),
        ("a.py", "# ruff: noqa: F401 -- plugins\n", ["`noqa: F401`: plugins"]),
        ("a.py", "x = 1  # noqa: E501  # type: ignore[arg-type]  # wrong stub\n",
         ["`noqa: E501` without a reason", "`noqa: E501`: without a reason", "`type: ignore[arg-type]`: wrong stub"]),
        ("a.py", "x = 1  # pylint: disable=a-b, c  # why\n", ["`pylint: disable=a-b, c`: why"]),
        ("a.py", "x = 1  # nosec B101\n", ["`nosec B101` without a reason", "`nosec B101`: without a reason"]),
        ("a.py", "# codebatch: ignore-file\n", ["`codebatch: ignore-file` without a reason",
         "`codebatch: ignore-file`: without a reason"]),
        ("a.py", "# codebatch: ignore-next-line[E501] reason: a URL\nx = 1\n",
         ["`codebatch: ignore-next-line[E501]`: reason: a URL"]),
        ("a.py", "s = 'noqa: E501'\n", []),
        ("a.ts", "// eslint-disable-next-line no-console, @x/y -- a tool\nf();\n",
         ["`eslint-disable-next-line no-console, @x/y`: a tool"]),
        ("a.ts", "/* eslint-disable */ f();\n",
         ["`eslint-disable` without a reason", "`eslint-disable`: without a reason"]),
        ("a.ts", "// @ts-ignore wrong types\nf();\n", ["`@ts-ignore`: wrong types"]),
        ("a.go", "package a //nolint:errcheck // closed elsewhere\n", ["`nolint:errcheck`: closed elsewhere"]),
        ("a.cpp", "int x; // NOLINT(misc-a)\n",
         ["`NOLINT(misc-a)` without a reason", "`NOLINT(misc-a)`: without a reason"]),
        ("a.sh", "# shellcheck disable=SC2086,SC1 words are meant\nls $a\n",
         ["`shellcheck disable=SC2086,SC1`: words are meant"]),
        ("a.py", "x = 1  # codebatch: ignore[F401] until 2027-01-31 moved then\n",
         ["`codebatch: ignore[F401]` until 2027-01-31: moved then", "`codebatch: ignore[F401]`: moved then"]),
        ("a.py", "x = 1  # codebatch: ignore until 2027-02-30\n",
         ["`codebatch: ignore` without a reason", "`codebatch: ignore`: without a reason",
          "`until` must be followed by a date, such as until 2027-01-31"]),
        ("a.py", "x = 1  # codebatch: ignore until 2027-01-311\n",
         ["`codebatch: ignore`: 2027-01-311", "`until` must be followed by a date, such as until 2027-01-31"]),
        ("a.py", "x = 1  # codebatch: ignore untilled\n", ["`codebatch: ignore`: untilled"]),
    ],
)  # fmt: skip
def test_suppressions_and_their_reasons_are_found(path: str, text: str, expected: list[str], tmp_path: Path) -> None:
    """A suppression without codes does not suppress the findings about itself."""
    (findings,) = lint_all([source(path, text)], tmp_path, _ALL)
    assert sorted(finding.message for finding in findings) == sorted(expected)


def test_only_rules_about_dates_are_on(tmp_path: Path) -> None:
    text = "x = 1  # noqa\ny = 2  # codebatch: ignore until 2027-01-31\nz = 3  # codebatch: ignore until May\n"
    (findings,) = lint_all([source("a.py", text)], tmp_path)
    assert [(finding.line, finding.code, finding.severity) for finding in findings] == [
        (2, "suppression-until", "hint"),
        (3, "suppression-date", "warning"),
    ]
