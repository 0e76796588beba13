"""Changes of settings that decide about findings: a change must not hide its own findings silently."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_project import Project

pytestmark = pytest.mark.slow

_LINTER = b'[tasks.l]\ncommand = ["true", "{file}"]\nmatch = ["*.py"]\nrecords = "gcc"\nconfig_files = ["cfg/*.ini"]\n'
_RUFF = b'[tasks.lint.ruff]\nconfig = "project"\n'
_OWN = b"def task(file):\n    return []\n"

# The files before and after the change, and what is reported.
CHANGES: dict[str, tuple[dict[str, bytes], dict[str, bytes], tuple[str, ...]]] = {
    "rule off": ({}, {"codebatch.toml": b'[tasks.lint]\noff = ["F821"]\n'}, ("codebatch.toml: tasks.lint.off",)),
    "exclude": (
        {"codebatch.toml": b'exclude = ["docs"]\njobs = 1\n'},
        {"codebatch.toml": b'exclude = ["docs", "src", "codebatch.toml"]\njobs = 2\n'},
        ("codebatch.toml: exclude",),
    ),
    "file removed": (
        {"codebatch.toml": b'include = ["*.py"]\n', "pyproject.toml": b"[tool.x]\ny = 1\n"},
        {"codebatch.toml": b"", "pyproject.toml": b'[tool.x]\ny = 2\n[project]\nname = "n"\n'},
        ("codebatch.toml: include",),
    ),
    "pyproject": (
        {},
        {"pyproject.toml": b'[tool.codebatch]\ninclude = ["*.py"]\nfile_seconds_max = 9\n'},
        ("pyproject.toml: file_seconds_max, include",),
    ),
    "generated": ({}, {"src/.gitattributes": b"* linguist-generated\n"}, ("src/.gitattributes",)),
    "ignored": ({".codebatchignore": b"b\n"}, {".codebatchignore": b"a\n"}, (".codebatchignore",)),
    "linter": (
        {"codebatch.toml": _LINTER, "cfg/a.ini": b"x", "b.ini": b"x"},
        {"cfg/a.ini": b"y", "b.ini": b"y"},
        ("cfg/a.ini",),
    ),
    "program": (
        {"codebatch.toml": _LINTER.replace(b'"true"', b'"true", "./lint.sh"'), "lint.sh": b"true\n", "x.sh": b""},
        {"lint.sh": b"exit 0\n", "x.sh": b"true\n"},
        ("lint.sh",),
    ),
    "custom task": (
        {"codebatch.toml": b'[tasks.own]\npython = "t/own.py:task"\n', "t/own.py": _OWN, "t/a.py": b""},
        {"t/own.py": _OWN + b"# changed\n", "t/a.py": b"x = 1\n"},
        ("t/own.py",),
    ),
    "input of a custom task": (
        {
            "codebatch.toml": b'[tasks.own]\npython = "own.py:task"\nfiles = ["words.txt"]\n',
            "own.py": _OWN,
            "words.txt": b"a",
        },
        {"words.txt": b"b"},
        ("words.txt",),
    ),
    "configuration of ruff": (
        {"codebatch.toml": _RUFF, "ruff.toml": b'extend = "./base.toml"\n', "base.toml": b"", "pyproject.toml": b""},
        {
            "base.toml": b"[lint]\nignore = ['F821']\n",
            "b/.ruff.toml": b"[lint]\n",
            "c/ruff.toml": b"",
            "pyproject.toml": b"[tool.ruff.lint]\nselect = ['F']\n[project]\nname = 'n'\n",
        },
        ("b/.ruff.toml", "base.toml", "c/ruff.toml", "pyproject.toml: tool.ruff.lint.select"),
    ),
    "configuration of ruff that lint does not use": (
        {},
        {"ruff.toml": b"[lint]\n", "pyproject.toml": b"[tool.ruff.lint]\nselect = ['F']\n"},
        (),
    ),
    "unreadable": ({"codebatch.toml": b"exclude = [\n"}, {"codebatch.toml": b""}, ("codebatch.toml: cannot be read",)),
    "other settings": (
        {},
        {"codebatch.toml": b"jobs = 1\n[store]\nkeep = 9\n[work.tasks.a]\nrun = 'true'\n", "a.toml": b"exclude = 1\n"},
        (),
    ),
}


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("name", CHANGES)
def test_settings_that_a_change_changes_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_committed: bool
) -> None:
    before, after, reported = CHANGES[name]
    project = Project(tmp_path, [{b"a.py": b"x = 1\n", **{path.encode(): data for path, data in before.items()}}])
    monkeypatch.chdir(project.tree)
    (project.commit if is_committed else project.write)({"b.py": b"x = nope\n", **after})
    project.run()
    checked = project.check("gate-changed", base="main~1" if is_committed else "main")
    assert checked.changed_settings == reported
    (judged,) = checked.judged
    assert (judged.value, judged.violations, judged.verdict) == (
        (len(reported), len(reported), "failed") if reported else (0, 0, "passed")
    )
    assert project.check("new-error", base="main~1" if is_committed else "main").changed_settings == reported


def test_settings_behind_a_link_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path, [{b"a.py": b"x = 1\n", b"cfg/real.toml": b"exclude = []\n"}])
    monkeypatch.chdir(project.tree)
    (project.tree / "codebatch.toml").symlink_to("cfg/real.toml")
    project.commit({})
    project.commit({"cfg/real.toml": b'exclude = ["b.py"]\n', "b.py": b"x = nope\n"})
    project.run()
    assert project.check("gate-changed", base="main~1").changed_settings == ("cfg/real.toml",)
    (project.tree / "codebatch.toml").unlink()
    project.commit({"codebatch.toml": b""})
    project.run()
    assert project.check(base="main~1").changed_settings == ("codebatch.toml: cannot be read",)
