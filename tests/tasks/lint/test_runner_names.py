"""Tests of names that a program provides to the Python files that it runs: they are defined only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.source_files import lint_all, source

SAVE = "import os\n\ndef save(model):\n    os.unlink(model)\n\nc.FileContentsManager.post_save_hook = save\n"


@pytest.mark.parametrize(
    ("path", "text", "undefined"),
    [
        ("docker/jupyter_notebook_config.py", SAVE, []),
        ("jupyterhub_config.py", "import os\nif os.name:\n    c.JupyterHub.ip = x\n", ["x"]),
        ("ipython_config.py", "import os\nd = get_config()\nload_subconfig('a.py')\nd.A.b = os.name\n", []),
        ("jupyter_lab_config.py", "import os\n# c.ServerApp.port = 1\nc.A = os.name\n", []),
        ("jupyter_server_config.py", "import os\nif os.name in c:\n    pass\n", []),
        ("nbgrader_config.py", "import os\nc = get_config()\nc.A.b = os\n", []),
        ("settings.py", SAVE, ["c"]),
        ("config.py", "import os\nc.go(os)\n", ["c"]),
        ("docs/conf.py", "import os\nproject = os.name\nif tags.has('a'):\n    x = tag\n", ["tag"]),
        ("app/conf.py", "import os\nprint(tags, os)\n", ["tags"]),
        ("DEPS", "import os\nx = Var('a') + Str('b') + Val(os)\n", ["Val"]),
        ("tools/python-gdb.py", "import re\nclass A(gdb.Command):\n    b = re\n", []),
        ("tools/debug.py", "import re\nclass A(gdb.Command):\n    b = re\n", ["gdb"]),
        ("scripts/plot.py", "import os\nprint(snakemake.input[0], os, wildcards)\n", ["wildcards"]),
        ("scripts/plot.py", "import os\nprint(snakemake, os)\n", ["snakemake"]),
        ("a.py", "# Databricks notebook source\nimport os\ndisplay(spark.table('a'), os, pd)\n", ["pd"]),
        ("a.py", "import os\n# Databricks notebook source\nprint(spark, os)\n", ["spark"]),
        ("a.py", "import os\n# %%\ndisplay(os, show)\n", ["show"]),
        ("a.py", "import os\n# In[12]:\ndisplay(os)\n", []),
        ("a.py", "import os\n# %%\nOut[1] = In[2], _ih, _1, os\n", ["_1"]),
        ("a.py", "import os\ndisplay(os)\n", ["display"]),
        ("SConstruct", "import os\nenv = Environment(ARGUMENTS, os)\nenv.Program(sources)\n", []),
        ("src/SConscript", "import os\nImport('env')\nenv.Program(os)\n", []),
        ("SConscript.win", "import os\nsite_tool(os)\n", []),
        ("src/build.py", "import os\nenv = Environment(os)\n", ["Environment"]),
    ],
)
def test_names_provided_by_a_runner_are_defined(path: str, text: str, undefined: list[str], tmp_path: Path) -> None:
    (findings,) = lint_all([source(path, text, {"attributes": b"language=Python"})], tmp_path)
    assert [finding.message for finding in findings if finding.code == "F821"] == [
        f"Undefined name `{name}`" for name in undefined
    ]
