"""`hotspots`: what is complex, often changed and used by many, and what is said of what is left out."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine, Ended, write
from tests.support.git_repositories import NOW, git, make_repository


def deep(name: str, ifs: int) -> str:
    """A function of so many ifs, none in another: its cognitive complexity is that."""
    return f"def {name}(x):\n" + "".join(f"    if x == {each}:\n        x = g({each})\n" for each in range(ifs))


TREE = {
    "often.py": deep("often", 14),
    "rarely.py": deep("rarely", 16),
    "used.py": deep("used", 15) + deep("small", 1),
    "user.py": "import used\n",
    "other.py": "import used\n",
    "tests/test_a.py": deep("in_test", 30),
    "vendor/v.py": deep("vendored", 20),
    "part.c": "int f(int x) {\n" + "  if (x) { x++; }\n" * 19 + "  if (x) {\n}\nint g(int x) { return x; }\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def hot(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A work tree with a history, and a store beside it. Only read."""
    codebatch = CommandLine(tmp_path_factory.mktemp("hot"))
    tree = codebatch.directory / "tree"
    for path, content in TREE.items():
        write(tree / path, content)
    first = {path.encode(): content.encode() for path, content in TREE.items()}
    changed = [{b"often.py": first[b"often.py"].replace(b"== 7", b"== %d" % each)} for each in (77, 78, 79)]
    others = [{b"rarely.py": b"X = %d\n" % each + first[b"rarely.py"]} for each in range(7)]
    last = {each: first[each] for each in (b"often.py", b"rarely.py")}
    make_repository(tree, [(NOW, files) for files in (first, *changed, *others, last)])
    codebatch("run", "tree", "--store", "store", "-q")
    return codebatch


def hotspots(codebatch: CommandLine, *arguments: str, status: int = 0) -> Ended:
    return codebatch("hotspots", "--store", "store", *arguments, status=status)


def test_hotspots_ranks_by_complexity_changes_and_dependents(hot: CommandLine) -> None:
    answer = hotspots(hot, "--json").json
    rows = [
        (each["symbol"], each["cognitive"], each["commits_per_year"], each["dependents"]) for each in answer["rows"]
    ]
    assert rows == [("often", 14, 5, 0), ("used", 15, 1, 2), ("rarely", 16, 1, 0)]
    assert [each["score"] for each in answer["rows"]] == [14 * 6, 15 * 2 * 2, 16 * 2]
    assert answer["excluded"] == {"test": 1, "foreign": 1, "doubtful": 1}
    assert (answer["complete"], answer["by"], answer["churn_note"]) == (True, "hotspot", "")


def test_hotspots_prints_a_table_and_notes_hidden_functions(hot: CommandLine) -> None:
    told = hotspots(hot, "--limit", "1")
    assert [line.split() for line in told.lines] == [
        ["complexity", "commits/yr", "dependents", "function", "location"],
        ["14", "5", "0", "often", "often.py:1"],
    ]
    assert (
        "hidden: 1 in partially parsed files, 1 in vendored or generated files, 1 in test files; show them with --all"
        in hotspots(hot).notes
    )


def test_last_function_of_a_file_with_loop_macros_is_listed(codebatch: CommandLine) -> None:
    loop = "    EACH(i, x) {\n" + "".join(f"        if (i == {each}) x++;\n" for each in range(12)) + "    }\n"
    for path, end in (("own.c", "}\n\n"), ("open.c", ""), ("more.c", "}\nint g(int x) {\n  return x;\n}\n")):
        start = "int f(int x) {\n" if path != "more.c" else "int f(int x) {\n  if (x) {\n"
        write(codebatch.directory / path, "struct s { int a };;\n" + start + loop + "    return x;\n" + end)
    codebatch("run", ".", "-q")
    answer = codebatch("hotspots", "--json").json
    assert [(each["symbol"], each["path"]) for each in answer["rows"]] == [("f", "own.c")]


def test_hotspots_with_all_hides_nothing(hot: CommandLine) -> None:
    answer = hotspots(hot, "--all", "--by", "cognitive", "--json").json
    assert [each["symbol"] for each in answer["rows"]][:3] == ["in_test", "f", "vendored"]
    assert answer["excluded"] == {}


def test_hotspots_counts_hidden_functions_up_to_the_last_row(hot: CommandLine) -> None:
    assert hotspots(hot, "--by", "cognitive", "--limit", "1", "--path", "*.py", "--json").json["excluded"] == {
        "test": 1,
        "foreign": 1,
    }
    assert hotspots(hot, "--path", "often", "--json").json["excluded"] == {}


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
def test_hotspots_options_select_functions(hot: CommandLine, arguments: tuple[str, ...], expected: list[str]) -> None:
    assert [each["symbol"] for each in hotspots(hot, *arguments, "--json").json["rows"]] == expected


@pytest.mark.parametrize(
    ("by", "first"), [("churn", "rarely.py"), ("dependents", "used.py"), ("code", "used.py"), ("cognitive", "part.c")]
)
def test_hotspots_of_files_have_all_metrics(hot: CommandLine, by: str, first: str) -> None:
    (row, *_) = hotspots(hot, "--files", "--by", by, "--json").json["rows"]
    assert row["path"] == first
    assert {"cognitive", "complexity", "code", "duplicated_lines", "commits_per_year", "dependents"} <= row.keys()


def test_hotspots_writes_csv_and_json(hot: CommandLine) -> None:
    rows = list(csv.DictReader(io.StringIO(hotspots(hot, "-o", "csv", "--limit", "2").text)))
    assert [(row["path"], row["symbol"], row["commits_per_year"]) for row in rows] == [
        ("often.py", "often", "5"),
        ("used.py", "used", "1"),
    ]
    assert hotspots(hot, "-o", "json").json == hotspots(hot, "--json").json


def test_history_is_read_again_after_a_new_commit(hot: CommandLine, tmp_path: Path) -> None:
    shutil.copytree(hot.directory / "tree", tmp_path / "it/tree")
    codebatch = CommandLine(tmp_path / "it")
    tree = codebatch.directory / "tree"
    codebatch("run", "tree", "--store", "store", "-q")

    def changes() -> int | None:
        found: int | None = hotspots(codebatch, "--path", "often", "--json").json["rows"][0]["commits_per_year"]
        return found

    assert changes() == 5
    by_value = ("--by", "cognitive", "--json")
    without = hotspots(codebatch, *by_value).json
    codebatch("index-build", "--store", "store")
    assert hotspots(codebatch, *by_value).json == without
    assert "in part" in hotspots(codebatch, *by_value, "--min", "15", "--explain").notes
    (kept,) = (codebatch.directory / "store/cache").glob("churn-*.bin")
    kept.write_bytes(kept.read_bytes()[:-1] + b"x")
    assert changes() == 5
    git(tree, "reset", "-q")
    git(tree, "-c", "user.name=n", "-c", "user.email=n", "commit", "-q", "--allow-empty", "-m", "e")
    assert changes() == 0  # It is of today, years after the others.
    shutil.rmtree(tree / ".git")
    answer = hotspots(codebatch, "--path", "often", "--json").json
    assert answer["rows"][0]["commits_per_year"] is None
    assert answer["churn_note"] == "change frequency unknown: the directory is not in a git repository"
    assert hotspots(codebatch, "--path", "often").lines[1].split()[1] == "?"
    assert "the directory is not in a git repository" in hotspots(codebatch, "--by", "churn", status=2).notes


def test_hotspots_without_metrics_names_the_pipeline_to_run(codebatch: CommandLine) -> None:
    write(codebatch.directory / "a.py", TREE["often.py"])
    codebatch("run", ".", "--pipeline", "parse", "-q")
    assert "to include this task, run: codebatch run --pipeline full PATH" in codebatch("hotspots", status=2).notes
    codebatch("run", ".", "--pipeline", "analyze", "-q")
    assert (
        "to include this task, run: codebatch run --pipeline full PATH"
        in codebatch("hotspots", "--by", "dependents", status=2).notes
    )
    assert codebatch("hotspots", "--json").json["rows"][0]["dependents"] is None


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A store of 150 files of two functions each, of which every seventh is a test; all but one import one of them."""
    codebatch = CommandLine(tmp_path_factory.mktemp("many"))
    for each in range(150):
        path = f"tests/test_{each}.py" if each % 7 == 0 else f"m{each}.py"
        text = deep("first", each * 37 % 50 + 1) + deep("second", each * 11 % 23 + 1)
        write(codebatch.directory / "tree" / path, "import m1\n" * (each != 1) + text)
    codebatch("run", "tree", "--store", "store", "-q")
    return codebatch


def test_limited_hotspots_are_a_prefix_of_all_hotspots(many: CommandLine) -> None:
    """What is kept of files says which of them are to be read; without a limit that matters all are."""
    metrics = many("query", "metrics", "--metric", "cognitive", "--store", "store", "--json").records
    functions = [each for each in metrics if "symbol" in each and not each["path"].startswith("tests/")]
    expected = sorted(functions, key=lambda each: (-each["value"], each["path"], each.get("line", 1)))
    every = hotspots(many, "--by", "cognitive", "--limit", "1000", "--min", "1", "--json").json["rows"]
    found = [(each["path"], each["line"], each["cognitive"]) for each in every]
    assert found == [(each["path"], each.get("line", 1), each["value"]) for each in expected]
    in_tests = [each["value"] for each in metrics if "symbol" in each and each["path"].startswith("tests/")]
    for limit in (1, 10, 40):
        answer = hotspots(many, "--by", "cognitive", "--limit", str(limit), "--json").json
        assert answer["rows"] == every[:limit]
        last = answer["rows"][-1]["cognitive"]
        left_out = answer["excluded"].get("test", 0)
        assert sum(value > last for value in in_tests) <= left_out <= sum(value >= last for value in in_tests)
    by_rank = hotspots(many, "--limit", "1000", "--min", "1", "--json").json["rows"]
    assert hotspots(many, "--limit", "9", "--json").json["rows"] == by_rank[:9]
