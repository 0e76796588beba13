"""`impact` lists the files that depend on a file; `graph` lists imports."""

from __future__ import annotations

from tests.support.command_line import CommandLine, write

TREE = {
    "app/__init__.py": "",
    "app/base.py": "x = 1\n",
    "app/middle.py": "import os\nfrom .base import x\n",
    "app/top.py": "from app import middle\n",
    "web/util.ts": "export const u = 1;\n",
    "web/main.ts": "import { u } from './util.js';\n",
    "web/tsconfig.json": '{"compilerOptions": {"paths": {"~/*": ["./*"]}}} // as written\n',
    "web/deep/page.ts": "import { u } from '~/main';\n",
    "go.mod": "module acme.org/x\n",
    "cmd/main.go": 'package main\n\nimport "acme.org/x/store"\n',
    "store/store.go": "package store\n",
}


def test_impact_lists_dependents_with_distance_and_import(codebatch: CommandLine) -> None:
    for path, content in TREE.items():
        write(codebatch.directory / path, content)
    codebatch("run", ".", "--quiet")
    records = codebatch("impact", "app/base.py", "--json").records
    assert records == [
        {"path": "app/middle.py", "distance": 1, "imports": "app/base.py", "line": 2, "resolution": "exact"},
        {"path": "app/top.py", "distance": 2, "imports": "app/middle.py", "line": 1, "resolution": "exact"},
    ]
    assert [record["path"] for record in codebatch("impact", "app/base.py", "--depth", "1", "--json").records] == [
        "app/middle.py"
    ]
    ended = codebatch("impact", "web/util.ts")
    assert ended.lines[1].split() == ["1", "web/main.ts:1", "web/util.ts", "exact"]
    assert ended.lines[2].split() == ["2", "web/deep/page.ts:1", "web/main.ts", "exact"]
    assert [record["path"] for record in codebatch("impact", "store/store.go", "--json").records] == ["cmd/main.go"]
    none = codebatch("impact", "app/top.py").notes
    assert (
        none == "none: no dependents of app/top.py in 11 files (10 parsed; 1 without a grammar does not contain top)\n"
    )


def test_graph_lists_edges_and_cycles(codebatch: CommandLine) -> None:
    for path, content in {**TREE, "app/base.py": "from . import top\n"}.items():
        write(codebatch.directory / path, content)
    codebatch("run", ".", "--quiet")
    rows = codebatch("graph", "--json").records
    row = {"source": "app/top.py", "target": "app/middle.py", "line": 1, "resolution": "exact"}
    row |= {"type_only": False, "deferred": False, "implicit": False}
    assert row in rows
    files = ["app/base.py", "app/middle.py", "app/top.py"]
    shortest = ["app/base.py", "app/top.py", "app/middle.py", "app/base.py"]
    cut = {"source": "app/base.py", "target": "app/top.py", "line": 1, "resolution": "exact"}
    cut |= {"type_only": False, "deferred": False, "implicit": False}
    assert codebatch("graph", "--cycles", "--json").records == [{"files": files, "shortest": shortest, "cut": cut}]
    assert codebatch("graph", "--cycles").lines == ["3 files: " + " -> ".join(shortest) + "; cut at app/base.py:1"]
    dot = codebatch("graph", "--dot").lines
    assert (dot[0], dot[-1]) == ("digraph imports {", "}")
    assert '  "web/main.ts" -> "web/util.ts";' in dot
    metrics = {
        (record["path"], record["metric"]): record["value"]
        for record in codebatch("query", "outputs", "--task", "dependencies", "--kind", "metric", "--json").records
    }
    assert metrics["app/top.py", "cycle"] == 3
    assert (metrics["web/main.ts", "dependencies"], metrics["web/util.ts", "dependents"]) == (1, 1)
    assert ("web/main.ts", "cycle") not in metrics
    codebatch("run", "app", "--quiet")
    answer = codebatch("graph", "--cycles", "--json", "--batch", "latest", status=3)
    assert [cycle["files"] for cycle in answer.json["records"]] == [files], (
        "a cycle must not be taken from the metrics of a restricted batch"
    )


def test_run_and_graph_count_the_same_cycles_and_note_exclusions(codebatch: CommandLine) -> None:
    tree = {
        "app/__init__.py": "",
        "app/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from app import b\n",
        "app/b.py": "from app import a\n",
        "app/c.py": "from app import d\n",
        "app/d.py": "def f():\n    from app import c\n",
        "app/e.py": "from app import f\n",
        "app/f.py": "from app import e\n\ndef g():\n    from app import c\n",
        "tests/one.py": "import two\n",
        "tests/two.py": "import one\n",
    }
    for path, content in tree.items():
        write(codebatch.directory / path, content)
    ran = codebatch("run", ".")
    assert [line for line in ran.lines if line.startswith("Import cycles")] == [
        "Import cycles (1): codebatch graph --cycles"
    ]
    shown = codebatch("graph", "--cycles")
    assert shown.lines == ["2 files: app/e.py -> app/f.py -> app/e.py; cut at app/e.py:1"]
    assert "3 import cycles hidden; to list all, use --all" in shown.notes
    assert len(codebatch("graph", "--cycles", "--all").lines) == 4
    assert codebatch("graph", "--all", status=2).notes.startswith("error: --all cannot be used without --cycles")
    edges = codebatch("query", "edges", "--path", "app/d.py", "--json").records
    assert [each["deferred"] for each in edges if each["edge_type"] == "imports"] == [True]
    metrics = codebatch("query", "metrics", "--json").records
    in_cycles = {each["path"] for each in metrics if each["metric"] == "cycle"}
    assert in_cycles == {"app/e.py", "app/f.py", "tests/one.py", "tests/two.py"}


def test_import_from_outside_the_tree_is_external(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "import os.path\n")
    codebatch("run", ".", "--quiet")
    ended = codebatch("query", "outputs", "--task", "dependencies")
    assert ended.lines == ["a.py:1: (file) depends os.path (external)"]
    assert codebatch("graph").notes == "no imports\n"


def test_impact_rejects_a_batch_without_the_task_dependencies(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", "x = 1\n")
    codebatch("run", ".", "--pipeline", "parse", "--quiet")
    ended = codebatch("impact", "a.py", status=2)
    assert ended.notes.splitlines() == [
        "error: the batch did not run the task dependencies",
        "hint: run with: codebatch run --pipeline full",
    ]


def test_file_does_not_depend_on_itself_and_two_files_form_a_cycle(codebatch: CommandLine) -> None:
    for path, content in {"a.py": "import a\n", "b.py": "import c\n", "c.py": "import b\nimport a\n"}.items():
        write(codebatch.directory / "src" / path, content)
    codebatch("run", "src", "--task", "dependencies", "--quiet")
    metrics = codebatch("query", "outputs", "--task", "dependencies", "--kind", "metric", "--json").records
    assert {(metric["path"], metric["metric"]): metric["value"] for metric in metrics} == {
        ("a.py", "dependents"): 1, ("b.py", "dependencies"): 1, ("b.py", "dependents"): 1, ("b.py", "cycle"): 2,
        ("c.py", "dependencies"): 2, ("c.py", "dependents"): 1, ("c.py", "cycle"): 2,
    }  # fmt: skip


def test_impact_ends_with_totals_and_lists_tests_to_run(codebatch: CommandLine) -> None:
    for path in ("a.py", "b.py", "app/test_b.py", "tests/helper.py", "test_$(x).py", "-x_test.py", "tests/b c_test.py"):
        write(codebatch.directory / "tree" / path, "import a\n" if path == "b.py" else "import b\n")
    write(codebatch.directory / "tree/a.py", "x = 1\n")
    codebatch("run", "tree", "-q")
    ended = codebatch("impact", "a.py")
    assert ended.lines[-1] == "6 dependents, 1 direct, 4 test files", "the total must also be printed in a pipe"
    assert "list the test files with: codebatch impact a.py --tests\n" in ended.notes
    tests = codebatch("impact", "a.py", "--tests", cwd=codebatch.directory / "tree")
    assert tests.lines == ["./-x_test.py", "app/test_b.py"]
    assert "2 test files omitted because the shell would split" in tests.notes
    assert codebatch("impact", "a.py", "--tests").lines[1] == "tree/app/test_b.py"
    assert sorted(codebatch("impact", "a.py", "--tests", "--json").records) == [
        "-x_test.py",
        "app/test_b.py",
        "test_$(x).py",
        "tests/b c_test.py",
    ]
    itself = codebatch("impact", "app/test_b.py", "--tests")
    assert itself.lines == ["tree/app/test_b.py"], "a changed test must be among the tests to run"
    none = codebatch("impact", "tests/helper.py", "--tests")
    assert (none.lines, none.notes) == ([], "none: no tests of tests/helper.py in 7 files (all parsed)\n")
