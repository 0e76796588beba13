"""Tests of ruff with the project's configuration: as `ruff check` in the tree, without rules that read other files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from ruff import find_ruff_bin  # type: ignore[import-untyped]  # it has no annotations

from codebatch.model.digest import Digest
from codebatch.model.plan import decode_plan
from tests.support.command_line import CommandLine, set_apart, write

FILES = {
    "pyproject.toml": '[project]\nname = "x"\nrequires-python = ">=3.9"\n[tool.ruff]\nextend = "config/base.toml"\n'
    'exclude = ["gen"]\n[tool.ruff.lint.per-file-ignores]\n"tests/*" = ["S101"]\n',
    "config/base.toml": 'fix = true\nline-length = 40\n[lint]\nselect = ["E", "F", "S", "UP", "D103", "I", "EXE"]\n',
    "sub/ruff.toml": 'fix-only = true\nlint.select = ["N"]\n',
    "a.py": "import sys\nimport os\nassert sys\ndef f(x):\n    return x == None  # a line that is too long\n",
    "b.py": "import os  # noqa: F401\nfrom typing import List\nx: List[int] = []\n",
    "sub/c.py": "import os\ndef Bad(): pass\n",
    "tests/d.py": "assert 1\n",
    "gen/e.py": "import os\n",
    "run.py": "#!/usr/bin/env python3\n",
    "not_run.py": "#!/usr/bin/env python3\n",
    "no_script.py": "x = 1\n",
}


@pytest.fixture
def project(tmp_path: Path) -> CommandLine:
    for path, text in FILES.items():
        write(tmp_path / path, text)
    for name in ("run.py", "no_script.py"):
        (tmp_path / name).chmod(0o755)
    write(tmp_path / "codebatch.toml", '[tasks.lint.ruff]\nconfig = "project"\n')
    return CommandLine(tmp_path)


def stored_ruff_findings(codebatch: CommandLine) -> set[tuple[str, str, int, int]]:
    records = codebatch("query", "diagnostics", "--tool", "ruff", "--json").records
    return {(record["path"], record["code"], record["line"], record["column"]) for record in records}


def test_project_findings_match_ruff_in_the_tree(project: CommandLine) -> None:
    project("run", ".", "-j", "2")
    done = subprocess.run(
        [find_ruff_bin(), "check", "--no-fix", "--no-fix-only", "--no-cache", "--output-format", "json", "."],
        cwd=project.directory,
        capture_output=True,
        check=False,
    )
    expected = set()
    for record in json.loads(done.stdout):
        path = str(Path(record["filename"]).relative_to(project.directory.resolve()))
        expected.add((path, record["code"], record["location"]["row"], record["location"]["column"]))
    assert {code for _, code, *_ in expected} >= {
        "I001",
        "E501",
        "F401",
        "S101",
        "UP006",
        "D103",
        "N802",
        "EXE001",
        "EXE002",
    }
    assert stored_ruff_findings(project) == {record for record in expected if not record[1].startswith("I0")}


def planned(project: CommandLine) -> tuple[Digest, dict[bytes, bytes]]:
    """Run. Return the cache key of lint and the ruff context of each original file."""
    batch = project.directory / ".codebatch" / "batches" / project("run", ".", "--json").json["batch_id"]
    plan = decode_plan((batch / "plan.json").read_bytes())
    (key,) = (task.key for task in plan.tasks if task.name == "lint")
    paths = sorted(path.encode() for path in (*FILES, "codebatch.toml"))
    return key, {path: plan.item_contexts(item).get("ruff", b"") for item, path in enumerate(paths)}


def test_configuration_is_part_of_the_keys_of_files_below_it(project: CommandLine) -> None:
    key, contexts = planned(project)
    write(project.directory / "pyproject.toml", FILES["pyproject.toml"].replace('"x"', '"x"\nversion = "2"'))
    assert planned(project) == (key, contexts), "the version of the project changed the context of ruff"
    write(project.directory / "sub" / "ruff.toml", 'lint.select = ["F"]\n')
    assert ("sub/c.py", "F401", 1, 8) not in stored_ruff_findings(project)
    key_after, contexts_after = planned(project)
    assert key_after == key
    assert {path for path in contexts if contexts[path] != contexts_after[path]} == {b"sub/c.py", b"sub/ruff.toml"}
    assert ("sub/c.py", "F401", 1, 8) in stored_ruff_findings(project)


def test_another_tree_is_checked_with_the_pinned_rules(project: CommandLine) -> None:
    set_apart(project, "sub")
    result = project("run", "sub")
    assert "ruff: the pinned rules: the analysed directory is not in the project of" in result.notes
    records = project("query", "diagnostics", "--tool", "ruff", "--json", cwd=project.directory / "sub").records
    assert [(record["path"], record["code"], record["line"], record["column"]) for record in records] == [
        ("c.py", "F401", 1, 8)
    ]
