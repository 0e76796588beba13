"""Recipes of linters on real source trees: the findings are those of the linter when it is run by hand.

Equal findings of a linter are counted once. A linter or tree that cannot be obtained skips its test.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from codebatch.model.text.toml import parse_toml
from codebatch.operations.project.scaffolding import scaffold_command_task
from tests.support import corpora
from tests.support.command_line import CommandLine, write

pytestmark = pytest.mark.corpus

PIPELINE = '[pipelines.linters]\ntasks = ["{name}"]\n'
ESLINT_CONFIGURATION = """\
module.exports = [
  { ignores: ["lib/view.js"] },
  { rules: { "no-var": "error", "no-undef": "error", "no-unused-vars": "warn", "prefer-const": "warn" } },
];
"""

_MYPY_LINE = re.compile(r"(.+?):(\d+):(\d+): \w+: (.*?)(?:  \[([\w-]+)\])?")
_YAMLLINT_LINE = re.compile(r"(.+?):(\d+):(\d+): \[\w+\] (.*?)(?: \(([\w-]+)\))?")
_CARGO_DEPENDENCIES = re.compile(r"\[+(dev-|build-)?dependencies|\[features|\[\[(bench|test|example)")


class Finding(NamedTuple):
    """A finding of a linter that was run by hand."""

    path: str
    line: int
    column: int
    code: str
    message: str


def test_shellcheck(tmp_path: Path) -> None:
    tree = _tree(tmp_path, lambda: corpora.npm("bats", "1.11.0"))
    codebatch = _with_recipe(tree, "shellcheck")

    def by_hand() -> Iterator[Finding]:
        scripts = [path for path in tree.rglob("*") if path.is_file() and _is_shell_script(path)]
        for script in scripts:
            path = str(script.relative_to(tree))
            report = json.loads(_output(codebatch, ["shellcheck", "-f", "json1", path]))
            for comment in report["comments"]:
                yield Finding(path, comment["line"], comment["column"], f"SC{comment['code']}", comment["message"])

    _check_equal(codebatch, by_hand(), findings_min=30)
    assert codebatch("task", "test", "shellcheck").lines[-1].endswith("identical")


def test_shellcheck_does_not_follow_sourced_files_of_the_same_unit(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    write(tree / "a.sh", '#!/bin/bash\n. ./lib.sh\necho "$answer"\n')
    write(tree / "lib.sh", "#!/bin/bash\nexport answer=1\n")
    codebatch = _with_recipe(tree, "shellcheck")
    assert set(_findings(codebatch)) == {("a.sh", 2, 3, "SC1091"), ("a.sh", 3, 7, "SC2154")}


def test_mypy(tmp_path: Path) -> None:
    tree = _tree(tmp_path, lambda: corpora.sdist("Flask", "3.0.3") / "src")
    codebatch = _with_recipe(tree, "mypy")
    output = _output(codebatch, ["mypy", "--show-column-numbers", "--cache-dir", os.devnull, "."])
    _check_equal(codebatch, _parse_lines(_MYPY_LINE, output, "mypy"), findings_min=20)


def test_yamllint(tmp_path: Path) -> None:
    tree = _tree(tmp_path, lambda: corpora.sdist("JPype1", "1.5.0"))
    codebatch = _with_recipe(tree, "yamllint")
    write(tree / ".yamllint", "extends: default\nrules:\n  line-length: {max: 100}\nignore: [lgtm.yml]\n")
    write(tree / "broken.yml", "---\na: [1, 2\nb: }\n")
    output = _output(codebatch, ["yamllint", "-f", "parsable", "."])
    _check_equal(codebatch, _parse_lines(_YAMLLINT_LINE, output, "yamllint"), findings_min=50)
    assert codebatch("task", "test", "yamllint").lines[-1].endswith("identical")


def test_eslint(tmp_path: Path) -> None:
    tree = _tree(tmp_path, lambda: corpora.npm("express", "4.19.2"))
    modules = _corpus(lambda: corpora.npm_installed("linter-eslint-9.14.0", "eslint@9.14.0")) / "node_modules"
    (tree / "node_modules").symlink_to(modules)
    write(tree / "eslint.config.js", ESLINT_CONFIGURATION)
    write(tree / "package-lock.json", "{}\n")
    codebatch = _with_recipe(tree, "eslint")
    settings = (tree / "codebatch.toml").read_text(encoding="utf-8")
    assert 'command = ["node_modules/.bin/eslint", ' in settings
    assert 'link = ["node_modules"]\nlock = ["package-lock.json"]\n' in settings
    report = json.loads(_output(codebatch, ["node_modules/.bin/eslint", "-f", "json", "."]))
    messages = ((str(Path(file["filePath"]).relative_to(tree)), row) for file in report for row in file["messages"])
    found = (Finding(path, row["line"], row["column"], row["ruleId"], row["message"]) for path, row in messages)
    _check_equal(codebatch, found, findings_min=200)


def test_clippy(tmp_path: Path) -> None:
    home = {name: os.environ[name] for name in ("HOME", "CARGO_HOME", "RUSTUP_HOME") if name in os.environ}
    cargo = shutil.which("cargo")
    package = _corpus(lambda: corpora.debian("librust-semver-dev"))
    tree = _tree(tmp_path, lambda: next((package / "usr/share/cargo/registry").iterdir()))
    _remove_dependencies(tree / "Cargo.toml")
    write(tree / "Cargo.lock", 'version = 3\n\n[[package]]\nname = "semver"\nversion = "1.0.14"\n')
    path = f"{Path(cargo).parent}:/usr/bin:/bin" if cargo else ""
    codebatch = _with_recipe(tree, "clippy", program="cargo-clippy", environment={**home, "PATH": path})
    target = str(tmp_path / "target")
    output = _output(codebatch, ["cargo", "clippy", "--message-format=json", "--target-dir", target])

    def by_hand() -> Iterator[Finding]:
        for line in output.splitlines():
            message = json.loads(line).get("message")
            for span in (message or {}).get("spans", ()):
                if span["is_primary"]:
                    code = (message["code"] or {"code": "clippy"})["code"]
                    yield Finding(span["file_name"], span["line_start"], span["column_start"], code, message["message"])

    _check_equal(codebatch, by_hand(), findings_min=20)


def _corpus(fetch: Callable[[], Path]) -> Path:
    try:
        return fetch()
    except (corpora.CorpusNotHad, FileNotFoundError) as error:
        pytest.skip(f"WARNING: this linter is not compared, because a source tree cannot be obtained: {error}")


def _tree(tmp_path: Path, fetch: Callable[[], Path]) -> Path:
    """Return a copy of a corpus."""
    tree = tmp_path / "tree"
    shutil.copytree(_corpus(fetch), tree, symlinks=True)
    return tree


def _with_recipe(tree: Path, tool: str, *, program: str = "", environment: dict[str, str] | None = None) -> CommandLine:
    """Add the recipe of a linter to a tree, for files of all classes. Skip the test if the linter is missing."""
    codebatch = CommandLine(tree, {"TMPDIR": str(tree.parent), **(environment or {})})
    made = scaffold_command_task(tree, tool, tool)
    with open(made.configuration, "a", encoding="utf-8") as file:
        file.write("class = []\n" + PIPELINE.format(name=tool))
    table: Any = parse_toml(made.text)
    needed = program or table["tasks"][tool]["command"][0]
    if shutil.which(needed, path=codebatch.environment["PATH"]) is None and not (tree / needed).exists():
        pytest.skip(f"WARNING: {needed} is not installed, so the recipe of {tool} is not compared")
    return codebatch


def _output(codebatch: CommandLine, command: list[str]) -> str:
    """Run a linter by hand in the tree, and return its output. Linters with findings exit with 1."""
    ended = subprocess.run(
        command, cwd=codebatch.directory, env=codebatch.environment, check=False, capture_output=True, encoding="utf-8"
    )
    assert ended.returncode in (0, 1, 101), ended.stderr
    return ended.stdout


def _parse_lines(pattern: re.Pattern[str], output: str, name: str) -> Iterator[Finding]:
    for path, line, column, message, code in map(
        re.Match.groups, filter(None, map(pattern.fullmatch, output.splitlines()))
    ):
        yield Finding(os.path.normpath(path), int(line), int(column), code or name, message)


def _findings(codebatch: CommandLine) -> Counter[tuple[str, int, int, str]]:
    """Run the linter as a task, and return all findings of the batch."""
    codebatch("run", ".", "--pipeline", "linters", "-q")
    rows = codebatch("query", "diagnostics", "--json").records
    return Counter((row["path"], row["line"], row["column"], row["code"]) for row in rows)


def _check_equal(codebatch: CommandLine, by_hand: Iterator[Finding], *, findings_min: int) -> None:
    """Check that a task has the findings of its linter, at least some number."""
    expected = Counter(finding[:4] for finding in set(by_hand))
    assert expected.total() >= findings_min
    assert _findings(codebatch) == expected


def _is_shell_script(path: Path) -> bool:
    first_line = path.read_bytes()[:200].split(b"\n")[0]
    return path.suffix in {".sh", ".bash"} or re.match(rb"#!.*\b(ba|da)?sh\b", first_line) is not None


def _remove_dependencies(manifest: Path) -> None:
    """Remove the optional dependencies of a crate, so that Cargo needs no other crates."""
    tables = re.split(r"^(?=\[)", manifest.read_text(encoding="utf-8"), flags=re.MULTILINE)
    kept = [table for table in tables if not _CARGO_DEPENDENCIES.match(table)]
    manifest.write_text("".join(kept), encoding="utf-8")
