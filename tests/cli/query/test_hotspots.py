"""`hotspots`: functions that are complex, often changed and used by many files, and notes about hidden functions."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pytest

from codebatch.operations.api.store import open as open_store
from codebatch.operations.hotspots.hotspots import find_hotspots
from codebatch.query.answers import dependent_counts
from tests.support.command_line import CommandLine, Ended, write
from tests.support.git_repositories import NOW, git, make_repository


def function_with_ifs(name: str, ifs: int) -> str:
    """Return a function with this number of separate ifs, which is also its cognitive complexity."""
    return f"def {name}(x):\n" + "".join(f"    if x == {number}:\n        x = g({number})\n" for number in range(ifs))


TREE = {
    "often.py": function_with_ifs("often", 14),
    "rarely.py": function_with_ifs("rarely", 16),
    "used.py": function_with_ifs("used", 15) + function_with_ifs("small", 1),
    "user.py": "import used\n",
    "other.py": "import used\n",
    "tests/test_a.py": function_with_ifs("in_test", 30),
    "vendor/v.py": function_with_ifs("vendored", 20),
    "part.c": "int f(int x) {\n" + "  if (x) { x++; }\n" * 19 + "  if (x) {\n}\nint g(int x) { return x; }\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A work tree with a history, and a store beside it. Tests only read it."""
    codebatch = CommandLine(tmp_path_factory.mktemp("hot"))
    tree = codebatch.directory / "tree"
    for path, content in TREE.items():
        write(tree / path, content)
    first = {path.encode(): content.encode() for path, content in TREE.items()}
    changed = [{b"often.py": first[b"often.py"].replace(b"== 7", b"== %d" % number)} for number in (77, 78, 79)]
    others = [{b"rarely.py": b"X = %d\n" % number + first[b"rarely.py"]} for number in range(7)]
    last = {path: first[path] for path in (b"often.py", b"rarely.py")}
    make_repository(tree, [(NOW, files) for files in (first, *changed, *others, last)])
    codebatch("run", "tree", "--store", "store", "-q")
    return codebatch


def hotspots(codebatch: CommandLine, *arguments: str, status: int = 0) -> Ended:
    return codebatch("hotspots", "--store", "store", *arguments, status=status)


def test_hotspots_ranks_by_complexity_changes_and_dependents(analysed: CommandLine) -> None:
    answer = hotspots(analysed, "--json").json
    rows = [(row["symbol"], row["cognitive"], row["commits_per_year"], row["dependents"]) for row in answer["rows"]]
    assert rows == [("often", 14, 5, 0), ("used", 15, 1, 2), ("rarely", 16, 1, 0)]
    assert [row["score"] for row in answer["rows"]] == [14 * 6, 15 * 2 * 2, 16 * 2]
    assert answer["excluded"] == {"test": 1, "foreign": 1, "doubtful": 1}
    assert (answer["complete"], answer["by"], answer["churn_note"]) == (True, "hotspot", "")


def test_hotspots_prints_a_table_and_notes_hidden_functions(analysed: CommandLine) -> None:
    table = hotspots(analysed, "--limit", "1")
    assert [line.split() for line in table.lines] == [
        ["complexity", "commits/yr", "dependents", "function", "location"],
        ["14", "5", "0", "often", "often.py:1"],
    ]
    assert (
        "hidden: 1 in partially parsed files, 1 in vendored or generated files, 1 in test files; show them with --all"
        in hotspots(analysed).notes
    )


def test_last_function_of_a_file_with_loop_macros_is_listed(codebatch: CommandLine) -> None:
    loop = "    EACH(i, x) {\n" + "".join(f"        if (i == {each}) x++;\n" for each in range(12)) + "    }\n"
    for path, end in (("own.c", "}\n\n"), ("open.c", ""), ("more.c", "}\nint g(int x) {\n  return x;\n}\n")):
        start = "int f(int x) {\n" if path != "more.c" else "int f(int x) {\n  if (x) {\n"
        write(codebatch.directory / path, "struct s { int a };;\n" + start + loop + "    return x;\n" + end)
    codebatch("run", ".", "-q")
    answer = codebatch("hotspots", "--json").json
    assert [(each["symbol"], each["path"]) for each in answer["rows"]] == [("f", "own.c")]


def test_hotspots_with_all_hides_nothing(analysed: CommandLine) -> None:
    answer = hotspots(analysed, "--all", "--by", "cognitive", "--json").json
    assert [row["symbol"] for row in answer["rows"]][:3] == ["in_test", "f", "vendored"]
    assert answer["excluded"] == {}


def test_hotspots_counts_hidden_functions_up_to_the_last_row(analysed: CommandLine) -> None:
    assert hotspots(analysed, "--by", "cognitive", "--limit", "1", "--path", "*.py", "--json").json["excluded"] == {
        "test": 1,
        "foreign": 1,
    }
    assert hotspots(analysed, "--path", "often", "--json").json["excluded"] == {}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--by", "complexity"), ["rarely", "used", "often"]),
        (("--by", "complexity", "--min", "2"), ["rarely", "used", "often", "small"]),
        (("--min", "15"), ["used", "rarely"]),
        (("--lang", "c"), []),
        (("--path", "us", "--min", "1"), ["used", "small"]),
    ],
)
def test_hotspots_options_select_functions(
    analysed: CommandLine, arguments: tuple[str, ...], expected: list[str]
) -> None:
    assert [row["symbol"] for row in hotspots(analysed, *arguments, "--json").json["rows"]] == expected


@pytest.mark.parametrize(
    ("by", "first"), [("churn", "rarely.py"), ("dependents", "used.py"), ("code", "used.py"), ("cognitive", "part.c")]
)
def test_hotspots_of_files_have_all_metrics(analysed: CommandLine, by: str, first: str) -> None:
    (row, *_) = hotspots(analysed, "--files", "--by", by, "--json").json["rows"]
    assert row["path"] == first
    assert {"cognitive", "complexity", "code", "duplicated_lines", "commits_per_year", "dependents"} <= row.keys()


def test_hotspots_writes_csv_and_json(analysed: CommandLine) -> None:
    rows = list(csv.DictReader(io.StringIO(hotspots(analysed, "-o", "csv", "--limit", "2").text)))
    assert [(row["path"], row["symbol"], row["commits_per_year"]) for row in rows] == [
        ("often.py", "often", "5"),
        ("used.py", "used", "1"),
    ]
    assert hotspots(analysed, "-o", "json").json == hotspots(analysed, "--json").json


def test_history_is_read_again_after_a_new_commit(analysed: CommandLine, tmp_path: Path) -> None:
    shutil.copytree(analysed.directory / "tree", tmp_path / "it/tree")
    codebatch = CommandLine(tmp_path / "it")
    tree = codebatch.directory / "tree"
    codebatch("run", "tree", "--store", "store", "-q")

    def changes() -> int | None:
        count: int | None = hotspots(codebatch, "--path", "often", "--json").json["rows"][0]["commits_per_year"]
        return count

    assert changes() == 5
    by_value = ("--by", "cognitive", "--json")
    without = hotspots(codebatch, *by_value).json
    codebatch("index-build", "--store", "store")
    assert hotspots(codebatch, *by_value).json == without
    assert "in part" in hotspots(codebatch, *by_value, "--min", "15", "--explain").notes
    (cached,) = (codebatch.directory / "store/cache").glob("churn-*.bin")
    cached.write_bytes(cached.read_bytes()[:-1] + b"x")
    assert changes() == 5
    git(tree, "reset", "-q")
    git(tree, "-c", "user.name=n", "-c", "user.email=n", "commit", "-q", "--allow-empty", "-m", "e")
    assert changes() == 0  # The new commit is of today, years after the others.
    shutil.rmtree(tree / ".git")
    answer = hotspots(codebatch, "--path", "often", "--json").json
    assert answer["rows"][0]["commits_per_year"] is None
    assert answer["churn_note"] == "change frequency unknown: the directory is not in a git repository"
    assert hotspots(codebatch, "--path", "often").lines[1].split()[1] == "?"
    assert "the directory is not in a git repository" in hotspots(codebatch, "--by", "churn", status=2).notes


def test_hotspots_without_metrics_names_the_pipeline_to_run(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", TREE["often.py"])
    codebatch("run", ".", "--pipeline", "parse", "-q")
    assert (
        "run with: codebatch run --pipeline full; also in the pipeline analyze" in codebatch("hotspots", status=2).notes
    )
    codebatch("run", ".", "--pipeline", "analyze", "-q")
    assert (
        "hint: run with: codebatch run --pipeline full\n" in codebatch("hotspots", "--by", "dependents", status=2).notes
    )
    assert codebatch("hotspots", "--json").json["rows"][0]["dependents"] is None


def test_dependents_behind_a_barrel_equal_those_of_impact(
    codebatch: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(codebatch.directory / "m" / "c.py", function_with_ifs("deep", 12))
    write(codebatch.directory / "m" / "__init__.py", "from .c import deep\n")
    for number in range(3):
        write(codebatch.directory / f"u{number}.py", "from m import deep\n")
    codebatch("run", ".", "-q")
    for arguments in ((), ("--files",), ("--by", "dependents")):
        assert codebatch("hotspots", *arguments, "--json").json["rows"][0]["dependents"] == 4
    assert codebatch("impact", "m/c.py").lines[-1] == "4 dependents, 1 direct"
    # In a large batch, only direct dependents are counted, and the number is marked as a minimum.
    monkeypatch.setattr(dependent_counts, "_COUNTED_EDGES_MAX", 3)
    (row,) = find_hotspots(
        open_store(codebatch.directory / ".codebatch", project=codebatch.directory, note=pytest.fail).batch().question
    ).result.rows
    assert (row.dependents, row.dependents_partial) == (1, True)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A store of 150 files with two functions each.

    Every seventh file is a test. All other files import m1.py.
    """
    codebatch = CommandLine(tmp_path_factory.mktemp("many"))
    for number in range(150):
        path = f"tests/test_{number}.py" if number % 7 == 0 else f"m{number}.py"
        text = function_with_ifs("first", number * 37 % 50 + 1) + function_with_ifs("second", number * 11 % 23 + 1)
        write(codebatch.directory / "tree" / path, "import m1\n" * (number != 1) + text)
    codebatch("run", "tree", "--store", "store", "-q")
    return codebatch


def test_limited_hotspots_are_a_prefix_of_all_hotspots(many: CommandLine) -> None:
    """Metrics of files decide which files are read. Without a limit, all files are read."""
    metrics = many("query", "metrics", "--metric", "cognitive", "--store", "store", "--json").records
    functions = [row for row in metrics if "symbol" in row and not row["path"].startswith("tests/")]
    expected = sorted(functions, key=lambda row: (-row["value"], row["path"], row.get("line", 1)))
    every = hotspots(many, "--by", "cognitive", "--limit", "1000", "--min", "1", "--json").json["rows"]
    rows_of_all = [(row["path"], row["line"], row["cognitive"]) for row in every]
    assert rows_of_all == [(row["path"], row.get("line", 1), row["value"]) for row in expected]
    in_tests = [row["value"] for row in metrics if "symbol" in row and row["path"].startswith("tests/")]
    for limit in (1, 10, 40):
        answer = hotspots(many, "--by", "cognitive", "--limit", str(limit), "--json").json
        assert answer["rows"] == every[:limit]
        last = answer["rows"][-1]["cognitive"]
        left_out = answer["excluded"].get("test", 0)
        assert sum(value > last for value in in_tests) <= left_out <= sum(value >= last for value in in_tests)
    by_rank = hotspots(many, "--limit", "1000", "--min", "1", "--json").json["rows"]
    assert hotspots(many, "--limit", "9", "--json").json["rows"] == by_rank[:9]
