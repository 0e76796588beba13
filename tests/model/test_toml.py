"""Parsing of untrusted TOML: it is parsed or rejected quickly."""

from __future__ import annotations

import pytest

from codebatch.model.text.toml import TomlError, parse_toml


@pytest.mark.parametrize(
    "text",
    [
        "x = ",
        "x = " + "[" * 100_000,
        "x = " + "[" * 200 + "]" * 200,
        "x = " + "{a = " * 200 + "1" + "}" * 200,
        "a." * 300 + "b = 1",
        "\n".join(f"b{n}." + "a." * 4900 + "c = 1" for n in range(20)),
        "x = " + "9" * 5000,
        "x = 1979-99-99",
        "#" * (2 << 20),
    ],
)
def test_invalid_toml_is_a_single_error(text: str) -> None:
    with pytest.raises(TomlError):
        parse_toml(text)


def test_valid_toml_is_parsed() -> None:
    versions = [f"package-{n}==1.2.{n}" for n in range(500)]
    text = f"[tool.x]\nnames = {versions!r}\na.b.c = 1\n"
    assert parse_toml(text) == {"tool": {"x": {"names": versions, "a": {"b": {"c": 1}}}}}
