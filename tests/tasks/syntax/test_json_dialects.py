"""Tests of JSON dialects: a file that its own program accepts has no errors."""

from __future__ import annotations

import pytest

from codebatch_workers.syntax.language.languages import path_language
from tests.support.source_files import parse, source

TRAILING = [
    '{"a": [1, 2,]}',
    '{"a": ["b",\n]}',
    '{"a": [{"b": 1},]}',
    '{"a": 1,}',
    '[{"a": 1,}, true,]',
    '{"a": false ,\n}',
]
COMMENTED = ['{"a": 1, // one\n}', '{\n"a": 1, // one\n"b": [1, /* two */ ]}', '// all\n{"a": ["b",],}']
BROKEN = [
    "[1,,2]",
    '{"a": 1,,}',
    "[,]",
    '["a" "b",]',
    '{"a": 1,\n"b": }',
    '{"a",}',
    '{"a": 1 // one\n"b": 2}',
    '{"a": 1, b}',
]
KNOWN = [
    "tsconfig.json", "d/tsconfig.build.json", "web.tsconfig.json", "jsconfig.json", ".vscode/launch.json",
    ".devcontainer/devcontainer.json", ".devcontainer.json", ".eslintrc.json", ".eslintrc", "tslint.json", ".jshintrc",
    ".swcrc", ".babelrc", ".babelrc.json", "babel.config.json", ".markdownlint.json", "api-extractor.base.json",
    "theme/a-product-icon-theme.json", "ui-color-theme.json", "language-configuration.json", "a.code-workspace",
    "a.code-snippets", "a.sublime-settings", "a.sublime_session", "wrangler.json", "wrangler.jsonc", "turbo.json",
    "biome.json", "deno.json", "nx.json", "rush.json", "typedoc.json", "renovate.json", ".github/renovate.json",
    ".renovaterc", "cspell.json", "pyrightconfig.json", ".zed/settings.json", "src/appsettings.Development.json",
    "Properties/launchSettings.json", ".oxlintrc.json", ".mocharc.json", ".luarc.json", "angular.json", "bun.lock",
]  # fmt: skip


@pytest.mark.parametrize("path", KNOWN)
def test_configuration_with_comments_is_parsed_as_jsonc(path: str) -> None:
    assert path_language(path.encode()) == "jsonc"
    for content in (*TRAILING, *COMMENTED):
        assert parsed(path, content) == ("ok", [])


@pytest.mark.parametrize("path", ["package.json", "launch.json", "mytsconfig.d/a.json", "notbiome.json", "a.geojson"])
def test_other_json_files_are_plain_json(path: str) -> None:
    assert path_language(path.encode()) == "json"


@pytest.mark.parametrize("content", COMMENTED)
@pytest.mark.parametrize("path", ["a.json", ".config/tool.json"])
def test_trailing_comma_is_valid_beside_comments(path: str, content: str) -> None:
    assert parsed(path, content) == ("ok", [])


@pytest.mark.parametrize("content", TRAILING)
def test_trailing_comma_is_info_if_the_reader_is_unknown(content: str) -> None:
    state, reported = parsed("data/a.json", content)
    assert (state, [severity for severity, _ in reported]) == ("ok", ["info"])
    assert "JSON with comments" in reported[0][1]


def test_several_trailing_commas_are_a_single_counted_note() -> None:
    ((severity, message),) = parsed("a.json", "[1,\n2,\n[1,],\n[2,],\n[3,],]")[1]
    assert (severity, message.partition(":")[0]) == ("info", "4 trailing commas, the first")


@pytest.mark.parametrize("path", ["package.json", "d/composer.json", "a.geojson", "a.webmanifest", "a.ipynb"])
def test_trailing_comma_is_an_error_for_strict_readers(path: str) -> None:
    state, reported = parsed(path, '{"a": 1,}')
    assert (state, [severity for severity, _ in reported]) == ("errors", ["error"])


@pytest.mark.parametrize("content", BROKEN)
@pytest.mark.parametrize("path", ["a.json", "tsconfig.json", "package.json"])
def test_json_invalid_for_every_reader_is_an_error(path: str, content: str) -> None:
    state, reported = parsed(path, content)
    assert state == "errors"
    assert {severity for severity, _ in reported} == {"error"}


def test_trailing_comma_beside_an_error_is_not_reported() -> None:
    assert len(parsed("a.json", '{\n"a": [1,],\n"b": 2,\n\n\n"c": ]\n}')[1]) == 1


def parsed(path: str, content: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the parse state of a file, and severity and message of its errors."""
    record, errors = parse(source(path, content))
    return record.parse, [(error.severity, error.message) for error in errors]
