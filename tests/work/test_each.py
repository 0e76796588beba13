"""Tests of `each`: the members of a task, their ids, and that ids stay stable (SPEC.md "Work files")."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codebatch.errors import InvalidWork, NothingToDo
from codebatch.model.work.command import Command
from codebatch.work.definition.expansion import GroupExpander
from codebatch.work.definition.problems import DefinitionProblems
from codebatch.work.definition.settings import WorkOptions
from codebatch.work.definition.tables import EachTable
from tests.work.reading import read

STRICT = WorkOptions(is_strict=True)


def members(directory: Path, each: str, run: str = "true", more: str = "") -> tuple[Command, ...]:
    return read(directory, f"[tasks.t]\nrun = {run!r}\neach = {each}\n{more}").commands


def make(directory: Path, *paths: str) -> None:
    for path in paths:
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text("x", encoding="utf-8")


def test_files_pattern_makes_a_member_for_every_file_of_a_snapshot(tmp_path: Path) -> None:
    make(tmp_path, "src/a.py", "src/b/c.py", "src/d.txt", "gen/e.py", "-f.py")
    (tmp_path / ".gitignore").write_text("gen/\n", encoding="utf-8")
    (tmp_path / "src" / "link.py").symlink_to("a.py")
    os.mkfifo(tmp_path / "src" / "fifo.py")
    commands = members(tmp_path, '{ files = ["*.py"] }', "wc {file}")
    assert [command.values for command in commands] == [
        {"file": "./-f.py"},
        {"file": "src/a.py"},
        {"file": "src/b/c.py"},
    ]
    assert [command.title for command in commands] == ["-f.py", "src/a.py", "src/b/c.py"]
    assert all(command.id.startswith("t/") and len(command.id) == 10 for command in commands)
    below = members(tmp_path, '{ files = ["/src/*.py"] }', "wc {file}", 'cwd = "src/b"')
    assert [command.values["file"] for command in below] == ["../a.py"]
    assert below[0].id == commands[1].id


def test_chunked_files_are_separate_arguments(tmp_path: Path) -> None:
    make(tmp_path, *(f"f{n:02}.c" for n in range(20)))
    whole = members(tmp_path, '{ files = ["*.c"], chunk = "all" }', "wc {files}")
    assert [len(command.files) for command in whole] == [20]
    parts = members(tmp_path, '{ files = ["*.c"], chunk = 6 }', "wc {files}")
    assert [file for command in parts for file in command.files] == [f"f{n:02}.c" for n in range(20)]
    assert max(len(command.files) for command in parts) <= 6
    assert {len(command.values) for command in parts} == {0}
    with pytest.raises(InvalidWork, match=r"uses \{file\}, which has no value for 'f00.c and"):
        members(tmp_path, '{ files = ["*.c"], chunk = "all" }', "wc {file}")


def test_absolute_pattern_is_an_error_unless_it_matches(tmp_path: Path) -> None:
    with pytest.raises(InvalidWork, match="which can match no path: it is an absolute path"):
        members(tmp_path, f'{{ files = ["{tmp_path}/a.c"] }}', "wc {file}")
    make(tmp_path, f".{tmp_path}/a.c")
    assert len(members(tmp_path, f'{{ files = ["{tmp_path}/a.c"] }}', "wc {file}")) == 1


GEN = "[tasks.gen]\nrun = 'true'\noutputs = ['src/']\n[tasks.mid]\nrun = 'true'\nneeds = ['gen']\n"


def test_members_expanded_before_their_files_exist_are_noted(tmp_path: Path) -> None:
    make(tmp_path, "src/a.py")
    use = "[tasks.use]\nrun = 'wc {file}'\nneeds = ['mid']\neach.files = ['/src/%s.py']\n"
    work_list = read(tmp_path, GEN + use % "a")
    message = (
        "'use' does not include files that 'gen' will write ('/src/a.py'): members are determined before 'gen' runs"
    )
    assert work_list.warnings == (f"work.toml: {message}",)
    none = read(tmp_path, GEN + use % "b")
    message = (
        "`each` of 'use' matches nothing, so the task is treated as done; "
        "its members are determined before these dependencies run"
    )
    assert none.warnings == (f"work.toml: {message}: mid",)
    elsewhere = GEN.replace("src/", "out/")
    assert read(tmp_path, elsewhere + use % "a").warnings == ()


def test_values_become_member_ids(tmp_path: Path) -> None:
    commands = members(tmp_path, '{ values = ["3.11", "a b", "x", "X", "3.11"] }')
    assert commands[0].id == "t/3.11"
    assert [command.values["value"] for command in commands] == ["3.11", "a b", "x", "X"]
    assert {len(command.id) for command in commands[1:]} == {10}, (
        "a value that is not a valid id, or differs only in case, has no digest as key"
    )


def test_matrix_has_a_member_for_every_combination(tmp_path: Path) -> None:
    commands = members(tmp_path, '{ matrix = { python = ["3.11", "3.12"], os = ["a", "b c"] } }', "x {value.python}")
    assert [command.id.partition("/")[2] for command in commands if "b c" not in command.values.values()] == [
        "3.11-a", "3.12-a",
    ]  # fmt: skip
    assert commands[1].values == {"value.python": "3.11", "value.os": "b c"}
    assert [command.title for command in commands] == ["3.11 a", "3.11 b c", "3.12 a", "3.12 b c"]


def test_lines_and_json_make_members(tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_bytes(b"\xef\xbb\xbfhttp://a\r\n\r\nb\nb\n  \n")
    work_list = read(tmp_path, "[tasks.t]\nrun = ['get', '{line}']\neach.lines = 'urls.txt'\n", PATH="")
    assert [command.values["line"] for command in work_list.commands] == ["http://a", "b"]
    assert work_list.warnings[0] == "work.toml: [tasks.t.each]: 'b' is listed twice and used once"
    rows = '{"id": "one", "n": 1, "deep": {"b": [null]}}\n{"n": "two", "x y": 3}\n"word"\n'
    (tmp_path / "items.jsonl").write_text(rows, encoding="utf-8")
    work_list = read(tmp_path, "[tasks.t]\nrun = 'true'\neach.json = 'items.jsonl'\n")
    assert [command.values for command in work_list.commands] == [
        {"value.id": "one", "value.n": "1", "value.deep": '{"b":[null]}'},
        {"value.n": "two"},
        {"value": "word"},
    ]
    assert [work_list.work.order[0], work_list.work.order[2]] == ["t/one", "t/word"]
    (tmp_path / "list.json").write_text('[{"id": "a"}, {"id": "b"}]', encoding="utf-8")
    assert [command.id for command in members(tmp_path, '{ json = "list.json" }')] == ["t/a", "t/b"]
    (tmp_path / "nulls.jsonl").write_text('{"id": "a", "n": 0}\n{"id": "b", "n": null}', encoding="utf-8")
    assert [command.values for command in members(tmp_path, '{ json = "nulls.jsonl" }')][1] == {"value.id": "b"}
    with pytest.raises(InvalidWork, match=r"uses \{value.n\}, which has no value for 'b'"):
        members(tmp_path, '{ json = "nulls.jsonl" }', "rm -rf x/{value.n}")
    with pytest.raises(InvalidWork, match=r"uses \{value.n\}, which has no value for 'word'"):
        members(tmp_path, '{ json = "items.jsonl" }', "x {value.n}")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1}\n{"a": \n', "x.jsonl:2 is not valid JSON"),
        (b'{"a": 1, "a": 2}', "x.jsonl:1 is not valid JSON: duplicate key 'a'"),
        (b'"\\ud800"', "it has an incomplete surrogate pair"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b"[1, ", "x.jsonl:1 is not valid JSON"),
        (b"caf\xe9", r"x.jsonl is not valid UTF-8 \(line 1\)"),
        (b'"a\\u0000b"', r"'a\\x00b' contains a NUL"),
        (b'{"a": 1, "A": 2}', "x.jsonl:1 has keys that differ only in case"),
        (b"1" * 5000, "x.jsonl:1 is not valid JSON"),
        (b'{"a": 1}\n{"a": -1e400}', "x.jsonl:2 is not valid JSON: -1e400 is too large"),
        (b"[1, 1e400]", "x.jsonl is not valid JSON: 1e400 is too large"),
        (b"1\nnull", "x.jsonl:2 is null"),
        (b"[1, null]", "x.jsonl: value 2 is null"),
        (b'[\n\n{"a": 1, "A": 2}]', "x.jsonl: value 1 has keys that differ only in case"),
        (b'[{"a": 1, "a": 2}]', "x.jsonl is not valid JSON: duplicate key 'a'"),
    ],
)
def test_hostile_json_items_are_reported(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "x.jsonl").write_bytes(data)
    with pytest.raises(InvalidWork, match=message):
        members(tmp_path, '{ json = "x.jsonl" }')


def test_fifo_of_lines_is_rejected(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InvalidWork, match="cannot read fifo: it is not a regular file"):
        members(tmp_path, '{ lines = "fifo" }')


def test_group_is_needed_as_a_whole_or_by_pairs(tmp_path: Path) -> None:
    more = "[tasks.join]\nrun = 'x'\nneeds = ['t']\n[tasks.u]\nrun = 'x'\neach.values = ['a', 'b']\nneeds = ['t/*']\n"
    more += "[tasks.one]\nrun = 'x'\nafter = ['t/b']\n"
    text = f"[tasks.t]\nrun = 'x'\neach.values = ['a', 'b']\n{more}"
    edges = [(edge.task, edge.on, edge.kind) for edge in read(tmp_path, text).work.edges]
    assert edges == [
        ("join", "t/a", "needs"), ("join", "t/b", "needs"), ("u/a", "t/a", "needs"), ("u/b", "t/b", "needs"),
        ("one", "t/b", "after"),
    ]  # fmt: skip
    assert read(tmp_path, text, WorkOptions(tasks=("u/a",))).work.order == ("t/a", "u/a")
    assert read(tmp_path, text, WorkOptions(tasks=("u",), only=True)).work.order == ("u/a", "u/b")


def test_a_group_without_members_counts_as_done(tmp_path: Path) -> None:
    text = "[tasks.t]\nrun = 'x'\neach.files = ['*.none']\n[tasks.u]\nrun = 'x'\nneeds = ['t']\n"
    work_list = read(tmp_path, text)
    assert (work_list.work.order, work_list.work.edges) == (("u",), ())
    assert work_list.warnings == ("work.toml: `each` of 't' matches nothing, so the task is treated as done",)
    with pytest.raises(InvalidWork, match="`each` of 't' matches nothing"):
        read(tmp_path, text, STRICT)
    with pytest.raises(NothingToDo, match="`each` matches nothing"):
        read(tmp_path, text.partition("[tasks.u]")[0])


def test_file_with_a_non_unicode_name_is_skipped_and_reported(tmp_path: Path) -> None:
    make(tmp_path, "a.py", os.fsdecode(b"caf\xe9.py"))
    work_list = read(tmp_path, "[tasks.t]\nrun = 'x'\neach.files = ['*.py']\n")
    assert [command.title for command in work_list.commands] == ["a.py"]
    assert work_list.warnings == ("skipped, because the name is not valid UTF-8: caf\\xe9.py",)


def test_too_many_files_for_a_command_are_reported(tmp_path: Path) -> None:
    make(tmp_path, *(f"{'d' * 200}/{'e' * 200}/{'f' * 200}/{n:0100}.c" for n in range(1500)))
    with pytest.raises(InvalidWork, match=r"names have 1,0.* characters, more than 1,000,000"):
        members(tmp_path, '{ files = ["*.c"], chunk = "all" }')


WORDS = st.text(max_size=8).filter(lambda word: "\0" not in word and word.isprintable())


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(WORDS, unique_by=str.lower, min_size=1, max_size=30), st.data())
def test_members_retain_their_keys_when_others_change(tmp_path: Path, words: list[str], data: st.DataObject) -> None:
    fewer = data.draw(st.lists(st.sampled_from(words), unique=True))

    def keys(values: list[str]) -> dict[str, str]:
        expander = GroupExpander(tmp_path, DefinitionProblems(), [])
        expanded = expander.expand_members(None, EachTable(values=tuple(values)), ".")  # type: ignore[arg-type]
        assert len({member.key.lower() for member in expanded}) == len(values)
        return {member.values["value"]: member.key for member in expanded}

    assert keys(fewer).items() <= keys(words).items()


def test_additional_file_changes_few_chunks(tmp_path: Path) -> None:
    paths = [f"src/m{n:03}.py" for n in range(400)]
    make(tmp_path, *paths)
    before = {command.id for command in members(tmp_path, '{ files = ["*.py"], chunk = 10 }')}
    make(tmp_path, "src/m001a.py")
    after = {command.id for command in members(tmp_path, '{ files = ["*.py"], chunk = 10 }')}
    assert len(before) > 40
    assert len(after - before) < len(after) / 4
