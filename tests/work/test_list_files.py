"""Tests of task lists in YAML, JSON, lines and Markdown. Any content is a list or an error."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from codebatch.errors import CodebatchError, InvalidConfiguration, InvalidWork, NothingToDo
from codebatch.model.text.markdown import level_2_sections, make_slug, split_front_matter
from codebatch.model.text.yaml import YamlError, parse_yaml
from codebatch.model.work.command import encode_command
from codebatch.model.work.work_batch import ListOrigin, TaskPolicy, encode_work
from codebatch.work.definition.settings import WorkOptions
from codebatch.work.definition.table_checks import ID_HINT
from codebatch.work.definition.work_list import WorkList, read_work_files
from tests.support.resources import cpu_time_below

RUN = WorkOptions(command="true")


def listed(directory: Path, name: str, data: str | bytes, options: WorkOptions = RUN) -> WorkList:
    """Write a file and read it as a task list."""
    path = directory / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_work_files([Path(name)], overrides=options, here=directory, environ={"PATH": os.defpath})


def error_text(directory: Path, name: str, data: str | bytes, options: WorkOptions = RUN) -> str:
    with pytest.raises(InvalidConfiguration) as raised:
        listed(directory, name, data, options)
    return "\n".join(raised.value.lines)


def tasks_in(directory: Path, files: dict[str, str], options: WorkOptions = RUN) -> WorkList:
    """Write a directory `tasks` of Markdown files and read it."""
    for name, text in files.items():
        (directory / "tasks" / name).parent.mkdir(exist_ok=True, parents=True)
        (directory / "tasks" / name).write_text(text, encoding="utf-8")
    return read_work_files([Path("tasks")], overrides=options, here=directory, environ={"PATH": os.defpath})


def errors_of_directory(directory: Path, files: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(InvalidWork) as raised:
        tasks_in(directory, files)
    return raised.value.lines


NAMES = st.text("abcxyz019.-_", min_size=1, max_size=5).map(lambda name: f"t{name}")
TEXTS = st.text(st.characters(categories=("L", "N", "P", "Zs"), max_codepoint=0xFFFF), max_size=12)
TASKS = st.fixed_dictionaries(
    {"run": st.just("true") | st.lists(st.just("x"), min_size=1, max_size=3)},
    optional={
        "title": TEXTS,
        "text": TEXTS,
        "priority": st.integers(-9, 9),
        "exclusive": st.booleans(),
        "timeout_seconds": st.floats(0.5, 99.0),
        "exit_ok": st.lists(st.integers(0, 255), min_size=1, max_size=3),
        "tags": st.lists(TEXTS, max_size=2),
        "env": st.dictionaries(
            st.sampled_from(["A", "B"]), TEXTS.filter(lambda text: "{" not in text and "$" not in text)
        ),
        "each": st.fixed_dictionaries({"values": st.lists(TEXTS, min_size=1, max_size=3)}),
    },
)
DOCUMENTS = st.fixed_dictionaries(
    {"tasks": st.dictionaries(NAMES, TASKS, min_size=1, max_size=3)},
    optional={"max_parallel": st.integers(1, 5), "on_failure": st.sampled_from(["continue", "stop"])},
)


def as_toml(value: object) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{as_toml(key)} = {as_toml(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(as_toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)


WRITERS: dict[str, Callable[[dict[str, object]], str]] = {
    "toml": lambda document: "".join(f"{key} = {as_toml(value)}\n" for key, value in document.items()),
    "json": json.dumps,
    "yaml": lambda document: yaml.safe_dump(document, allow_unicode=True, sort_keys=False),
    "yml": lambda document: json.dumps(document, ensure_ascii=False),
}


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(DOCUMENTS)
def test_task_list_is_the_same_in_each_format(tmp_path: Path, document: dict[str, object]) -> None:
    results: set[object] = set()
    for suffix, write in WRITERS.items():
        try:
            work_list = listed(tmp_path, f"list.{suffix}", write(document), WorkOptions())
        except InvalidWork as error:
            results.add("\n".join(error.lines).replace(f"list.{suffix}", "FILE").split("FILE")[-1].partition(": ")[2])
            continue
        work = encode_work(
            msgspec.structs.replace(work_list.work, source="", origin=ListOrigin(directory=b"", files=()))
        )
        results.add((work, b"".join(map(encode_command, work_list.commands))))
    assert len(results) == 1


A = "tasks:\n  a:\n    run: x\n"
YAML_MISTAKES = [
    (f"{A}    title: 3.10\n", "w.yaml:4: [tasks.a] sets `title` to 3.1, expected a string", "quote"),
    (f"{A}    needs: [003]\n", "w.yaml:4: [tasks.a] sets `needs` to [3], expected", "quote"),
    (f"{A}    env: {{A: yes}}\n", 'w.yaml:4: [tasks.a] sets `env` to {"A":true}, expected', "quote"),
    (f"{A}    each: {{values: [3.10, 3.9]}}\n", "w.yaml:4: [tasks.a.each] sets `values` to [3.1,3.9]", "quote"),
    (f"{A}    title: 2020-01-01\n", 'w.yaml:4: [tasks.a] sets `title` to "2020-01-01", expected', "quote"),
    (f"{A}    wibble: 3\n", "w.yaml:4: [tasks.a]: unknown setting 'wibble'", "one of"),
    (f"{A}  a:\n    run: y\n", "w.yaml:4 is not valid YAML: duplicate key 'a'", None),
    ("tasks:\n  1:\n    run: x\n", "w.yaml:2 is not valid YAML: the key 1 is not text: quote it", None),
    ("tasks:\n  on:\n    run: x\n", "w.yaml:2 is not valid YAML: the key on is not text: quote it", None),
    ("a: &a [x]\nb: [*a, *a]\n", "w.yaml:2 is not valid YAML: it uses the alias *a; aliases", None),
    ("a: &a {b: c}\nd:\n  <<: *a\n", "w.yaml:3 is not valid YAML: ", None),
    ("a: !!python/object/apply:os.system [x]\n", "w.yaml:1 is not valid YAML: unsupported tag", None),
    ("a: !mine x\n", "w.yaml:1 is not valid YAML: unsupported tag !mine", None),
    ("a: 2020-13-45\n", "w.yaml:1 is not valid YAML: 2020-13-45 is not a valid timestamp", None),
    ("a: !!int x\n", "w.yaml:1 is not valid YAML: x is not a valid int", None),
    ("---\na: 1\n---\nb: 2\n", "w.yaml:3 is not valid YAML: it has more than one document", None),
    ("a: [1\n", "w.yaml:2 is not valid YAML: ", None),
    ("a:\n\tb: 1\n", "w.yaml:2 is not valid YAML: ", None),
    ("? [a]\n: b\n", "w.yaml:1 is not valid YAML: a key is a list or a table", None),
    ("a: \x01\n", "w.yaml:1 is not valid YAML: ", None),
    ("[" * 100_000, "w.yaml:1 is not valid YAML: it is nested too deeply", None),
    ("- a\n- b\n", "w.yaml is not a table of settings and tasks", "into the table `tasks`"),
    ("tasks:\n  a: make\n", "w.yaml:2: the task 'a' is not a table", "run ="),
    (f"{A}  A:\n    run: y\n", "ids in w.yaml:3: [tasks.a] and w.yaml:5: [tasks.A] differ", None),
    (f"{A}    needs: [b]\n", "w.yaml:3: 'a' needs 'b', which does not exist", None),
    ("a: 1" + "0" * 5000, "w.yaml:1 is not valid YAML: ", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message", "hint"), YAML_MISTAKES, ids=[each[1][:50] for each in YAML_MISTAKES])
def test_yaml_error_is_reported_with_its_line(tmp_path: Path, text: str, message: str, hint: str | None) -> None:
    with pytest.raises(InvalidConfiguration) as raised:
        listed(tmp_path, "w.yaml", text, WorkOptions())
    assert raised.value.lines[0].startswith(message)
    assert hint is None or hint in str(raised.value.hint)


def test_yaml_alias_bomb_is_rejected_quickly() -> None:
    bomb = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40))
    with cpu_time_below(2):
        with pytest.raises(YamlError, match="aliases are not supported"):
            parse_yaml(bomb, length_max=1 << 20)
        with pytest.raises(YamlError, match="nested too deep"):
            parse_yaml("{a: " * 100_000, length_max=1 << 20)


def test_yaml_is_parsed_without_libyaml(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "tasks:\n  a: {run: [x, 'y'], priority: 3, env: {}}\n  b: ~\n  c: !!str 3\n"
    fast = parse_yaml(text, length_max=999)
    monkeypatch.delattr(yaml, "CSafeLoader")
    assert parse_yaml(text, length_max=999) == fast == {
        "tasks": {"a": {"run": ["x", "y"], "priority": 3, "env": {}}, "b": None, "c": "3"}
    }  # fmt: skip
    for bad in ("[" * 5000, "a: *a", '"\\ud800"', "a: \x01"):
        with pytest.raises(YamlError):
            parse_yaml(bad, length_max=9999)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"tasks": {"a": {"run": "x"}, "a": {}}}', "w.json is not valid JSON: duplicate key 'a'"),
        ('{"tasks":\n {"a": }}', "w.json:2 is not valid JSON: Expecting value"),
        ("[" * 100_000, "w.json is not valid JSON: it is nested too deeply"),
        ("[" * 200 + "]" * 200, "w.json is not valid JSON: it is nested too deeply"),
        ("[]", "w.json is not a table of settings and tasks"),
        ('{"tasks": {"a": {"run": "x", "title": "\\udc00"}}}', "it has an incomplete surrogate pair"),
    ],
)
def test_json_error_is_reported(tmp_path: Path, text: str, message: str) -> None:
    assert message in error_text(tmp_path, "w.json", text)


def test_jsonl_has_a_task_per_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = '{"id": "a", "run": "x"}\r\n\n{"id": "b", "needs": ["a"], "priority": 3}\n'
    work_list = listed(tmp_path, "w.jsonl", "\ufeff" + rows)
    assert work_list.work.order == ("a", "b")
    assert work_list.work.root == os.fsencode(tmp_path.resolve())
    assert [command.run for command in work_list.commands] == ["x", "true"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(rows.encode())))
    assert read_work_files([Path("-")], overrides=RUN, here=tmp_path).work.order == ("a", "b")
    bad = '{"id": 3}\n[]\n{"id": "a", "run": \n{"id": "c", "colour": 1}\n{"id": "c"}\n'
    message = error_text(tmp_path, "w.jsonl", bad)
    for problem in ("w.jsonl:1 is not a task", "w.jsonl:2 is not a task", "w.jsonl:3 is not valid JSON",
                 "w.jsonl:4: unknown setting 'colour'",
                 "'c' is defined twice: in w.jsonl:4 and in w.jsonl:5"):  # fmt: skip
        assert problem in message


def test_text_file_has_a_task_per_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = WorkOptions(command="get {line}")
    work_list = listed(tmp_path, "My urls.txt", "http://a\n\nb c\n", options)
    assert [(command.run, command.values["line"]) for command in work_list.commands] == [
        ("get {line}", "http://a"), ("get {line}", "b c"),
    ]  # fmt: skip
    assert all(command.id.startswith("my-urls/") for command in work_list.commands)
    each_line = WorkOptions(command="get {line}", each_line=True)
    assert listed(tmp_path, "Makefile", "a\n", each_line).work.order == ("makefile/a",)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x\ny")))
    assert read_work_files([Path("-")], overrides=each_line, here=tmp_path).work.order == ("line/x", "line/y")
    assert "has no command to run" in error_text(tmp_path, "urls.txt", "a\n", WorkOptions())


def test_markdown_directory_has_a_task_per_file(tmp_path: Path) -> None:
    work_list = tasks_in(
        tmp_path,
        {
            "002-login.md": "---\nneeds: ['001']\npriority: high\nassignee: me\n---\n# Login form {#x}\n\nAdd it.\n",
            "001-schema.md": "---\ntitle: The schema\nstatus: todo\nassignee: you\n---\n# Other\n",
            "003-done.md": "---\nstatus: Done\n---\n",
            "004 Übung.md": "+++\ndepends_on = ['003-done', '002-login']\ntags = ['x']\n+++\r\nText\r\n",
            "005.md": "---\nblocked_by: 004-ubung\ndependencies:\n---\n---\nno front matter\n---\n",
            "README.md": "no",
            "_draft.md": "no",
            ".hidden.md": "no",
            "notes.txt": "no",
            "sub/006.md": "no",
        },
    )
    assert work_list.work.order == ("001-schema", "002-login", "004-ubung", "005")
    assert [(edge.task, edge.on) for edge in work_list.work.edges] == [
        ("002-login", "001-schema"), ("004-ubung", "002-login"), ("005", "004-ubung"),
    ]  # fmt: skip
    assert work_list.work.titles == {"001-schema": "The schema", "002-login": "Login form"}
    assert work_list.work.policies == {"002-login": TaskPolicy(priority=10)}
    assert [command.text for command in work_list.commands] == [
        "# Other", "# Login form {#x}\n\nAdd it.", "Text", "---\nno front matter\n---",
    ]  # fmt: skip
    assert work_list.notes == (
        "tasks/001-schema.md and 1 more: unknown key 'assignee' ignored",
        "marked as done and not run: 003-done",
    )
    deeper = read_work_files([Path("tasks")], overrides=WorkOptions(command="x", is_recursive=True), here=tmp_path)
    assert deeper.work.order[-1] == "006"


def test_all_errors_of_a_directory_are_reported_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text("secret", encoding="utf-8")
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "link.md").symlink_to("../outside.md")
    (tmp_path / "tasks" / "loop.md").symlink_to("loop.md")
    (tmp_path / "tasks" / "utf.md").write_bytes(b"a\nb\ncaf\xe9")
    (tmp_path / "tasks" / "big.md").write_bytes(b"x" * ((4 << 20) + 1))
    os.mkfifo(tmp_path / "tasks" / "fifo.md")
    lines = errors_of_directory(
        tmp_path,
        {
            "a.md": "---\nneeds: {x: 3}\n---\n",
            "b.md": "---\ntitle: x\n",
            "c.md": "---\ntitle: [\n---\n",
            "d.md": "---\n- a\n---\n",
            "e.md": "---\nword\n---\n",
            "f.md": "+++\nx = \n+++\n",
            "g.md": "---\n\nid: [07]\n---\n",
            "h.md": "---\nneeds: [c, nobody]\npriority: urgent\n---\n",
            "i.md": "---\na: &a [*a]\n---\n",
            "j.md": "+++\nrun = true\n+++\n",
        },
    )
    assert lines[0] == "16 problems found"
    for begin, line in zip(
        [
            "tasks/b.md: front matter starts with --- on line 1 but does not end",
            "tasks/big.md has 4,194,305 bytes, more than 4,194,304",
            "tasks/c.md:3: front matter is not valid YAML: ",
            "tasks/d.md:2: front matter must have a key and a value on each line, but is a list",
            "tasks/e.md:2: front matter must have a key and a value on each line, but is a single value",
            "tasks/f.md: front matter is not valid TOML: Invalid value (at line 2, column 5)",
            "cannot read tasks/fifo.md: it is not a regular file",
            "tasks/g.md:3 sets `id` to [\"07\"], expected a string; quote the value",
            "tasks/i.md:2: front matter is not valid YAML: it uses the alias *a",
            "tasks/link.md is a symbolic link out of tasks",
            "cannot read tasks/loop.md: Too many levels",
            "tasks/utf.md is not valid UTF-8 (line 3)",
            "tasks/a.md:2 sets `needs` to [{\"x\":3}], expected a list of task IDs",
            "tasks/h.md:3 sets `priority` to 'urgent', expected an integer",
            "tasks/j.md sets `run` to true, expected",
            "tasks/h.md: 'h' needs 'nobody', which does not exist",
        ],
        lines[1:], strict=True,
    ):  # fmt: skip
        assert line.startswith(begin), (begin, line)


def test_front_matter_ids_are_literal_text(tmp_path: Path) -> None:
    """Many users number their tasks: YAML reads 010 as another number."""
    work_list = tasks_in(
        tmp_path,
        {
            "a.md": "---\nid: 010\n---\n",
            "b.md": "---\nid: 3.10\nneeds: 010\n---\n",
            "c.md": "---\nid: 2026-01-01\ndepends_on: [010, 3.10]\nafter: [2026-01-01x]\n---\n",
            "d.md": "---\nid: 2026-01-01x\nneeds:\n---\n",
        },
    )
    assert work_list.work.order == ("010", "3.10", "2026-01-01", "2026-01-01x")
    assert [(edge.task, edge.on) for edge in work_list.work.edges] == [
        ("3.10", "010"), ("2026-01-01", "2026-01-01x"), ("2026-01-01", "010"), ("2026-01-01", "3.10"),
    ]  # fmt: skip


def test_task_marked_as_done_has_a_unique_id_and_a_valid_status(tmp_path: Path) -> None:
    lines = errors_of_directory(
        tmp_path,
        {
            "a.md": "---\nstatus: Completed\n---\n",
            "b.md": "---\ntitle: x\nstatus: [done]\n---\n",
            "c.md": "---\nstatus: yes\n---\n",
            "d.md": "---\nstatus: done\nid: e\n---\n",
            "e.md": "---\nneeds: [a, d]\n---\n",
            "f.md": "---\nstatus: ' DONE '\nid: My task\n---\n",
            "g.md": "---\nstatus:\n---\n",
        },
    )
    hint = "; to mark the task as done, write `status: done`; otherwise, remove the line"
    assert lines[1:] == (
        f"tasks/a.md:2 sets `status` to 'Completed'{hint}",
        f'tasks/b.md:3 sets `status` to ["done"]{hint}',
        f"tasks/c.md:2 sets `status` to true{hint}",
        "'e' is defined twice: in tasks/e.md, and marked as done in tasks/d.md; change one of the ids",
        f"tasks/f.md: 'My task' is not a valid task id; {ID_HINT}; for example 'my-task'",
        "tasks/e.md: 'e' needs 'd', which does not exist",
    )
    with pytest.raises(NothingToDo, match=r"all tasks of list\.md are marked as done: one, two"):
        listed(tmp_path, "list.md", "---\nstatus: done\n---\n## One\n## Two\n")
    assert "list.md:4: '' is not a valid task id" in error_text(
        tmp_path, "list.md", "# P\n## One\n## Two\n## \u4f60\n- [x] by hand\n"
    )


def test_markdown_sections_are_tasks(tmp_path: Path) -> None:
    text = """# Plan

## Add the *schema*
- [x] by hand
## Login form {#login}
Text of it.
```
## no heading
```
### Details
more
## Done twice

- [ ] open
# Other part
"""
    work_list = listed(tmp_path, "plan.md", text)
    assert work_list.work.order == ("login", "done-twice")
    assert work_list.commands[0].text == "Text of it.\n```\n## no heading\n```\n### Details\nmore"
    assert work_list.work.titles == {"login": "Login form", "done-twice": "Done twice"}
    assert "marked as done and not run: add-the-schema" in work_list.notes
    twice = error_text(tmp_path, "plan.md", "## a\n\n## A\n## 你好\n")
    assert "'a' is defined twice: in plan.md:1 and in plan.md:3" in twice
    assert "plan.md:4: '' is not a valid task id" in twice
    one = listed(tmp_path, "one.md", "---\ntitle: x\nid: two\n---\n## not a task\n")
    assert one.work.order == ("two",)
    assert listed(tmp_path, "three.md", "---\ntitle: x\n---\n## a\n").work.order == ("a",)
    assert "four.md has no task" in error_text(tmp_path, "four.md", "# Only a heading\n")
    with pytest.raises(NothingToDo, match=r"all tasks of five\.md are marked as done: a"):
        listed(tmp_path, "five.md", "## a\n* [X] yes\n")


def test_front_matter_of_a_section_file_applies_to_each_section(tmp_path: Path) -> None:
    front = (
        "---\npriority: high\ntimeout_second: 3\ndependson: x\nmax_parallel: 4\ntitle: no\ntimeout_seconds: 2\n---\n"
    )
    work_list = listed(tmp_path, "plan.md", f"{front}## One\n## Two\n- [x] by hand\n## Three\n")
    assert work_list.work.policies == {name: TaskPolicy(priority=10) for name in ("one", "three")}
    assert {command.timeout_seconds for command in work_list.commands} == {2.0}
    assert work_list.work.titles == {"one": "One", "three": "Three"}
    assert work_list.warnings == (
        "plan.md: unknown key 'timeout_second' ignored; did you mean 'timeout_seconds'?",
        "plan.md: unknown key 'dependson' ignored; did you mean 'depends_on'?",
    )
    assert work_list.notes == ("plan.md: unknown key 'max_parallel' ignored", "marked as done and not run: two")
    assert "plan.md:7 sets `timeout_seconds` to 'x'" in error_text(
        tmp_path, "plan.md", f"{front.replace(': 2', ': x')}## One\n"
    )


def test_included_list_inherits_the_defaults(tmp_path: Path) -> None:
    tasks_in(tmp_path, {"a.md": "# A\n", "b.md": "---\nrun: own\nenv: {B: '2'}\n---\n"})
    (tmp_path / "more.yaml").write_text("include: [main.toml, tasks/]\ntasks: {c: {needs: [a]}}", encoding="utf-8")
    main = 'include = ["tasks/", "more.yaml"]\nenv = { A = "1" }\n[defaults]\nrun = "x"\nenv = { B = "1" }\n[tasks.z]\n'
    work_list = listed(tmp_path, "main.toml", main, WorkOptions())
    assert [(command.id, command.run, command.env) for command in work_list.commands] == [
        ("z", "x", {"A": "1", "B": "1"}),
        ("a", "x", {"A": "1", "B": "1"}),
        ("b", "own", {"A": "1", "B": "2"}),
        ("c", "x", {"A": "1", "B": "1"}),
    ]
    assert work_list.work.source == "main.toml, tasks, more.yaml"
    chain = {f"{n}.toml": f'include = ["{n + 1}.toml"]\n[tasks.t{n}]\nrun = "x"\n' for n in range(30)}
    for name, text in chain.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert "21.toml is included more than 20 levels deep" in error_text(tmp_path, "0.toml", chain["0.toml"])
    names = [f"f{n}.toml" for n in range(1100)]
    for name in names:
        (tmp_path / name).write_text("", encoding="utf-8")
    assert "the task list includes more than 1,000 files" in error_text(
        tmp_path, "0.toml", f"include = {names}\n[tasks.x]\nrun = 'x'"
    )


def test_tags_select_tasks(tmp_path: Path) -> None:
    text = "tasks:\n  a: {run: x}\n  b: {run: x, tags: [n], needs: [a]}\n  c: {run: x, tags: [m, n]}\n"
    assert listed(tmp_path, "w.yaml", text, WorkOptions(tags=("n",))).work.order == ("a", "b", "c")
    assert listed(tmp_path, "w.yaml", text, WorkOptions(tags=("m",))).work.order == ("c",)
    assert listed(tmp_path, "w.yaml", text, WorkOptions(tags=("n",), tasks=("b",), only=True)).work.order == ("b",)
    with pytest.raises(CodebatchError, match=r"no task of w\.yaml has the tag 'x'"):
        listed(tmp_path, "w.yaml", text, WorkOptions(tags=("x",)))
    with pytest.raises(NothingToDo, match=r"no task of w\.yaml matches the selection"):
        listed(tmp_path, "w.yaml", text, WorkOptions(tags=("m",), tasks=("b",)))


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.sampled_from(["x.md", "x.yaml", "x.json", "x.jsonl", "x.txt", "tasks/x.md"]),
    st.binary(max_size=60)
    | st.lists(
        st.sampled_from(
            ["---\n", "+++\n", "needs: ", "[a]", "\n", "id: x", "title: ", "- [x]", "## ", "# ", "```\n", "{", "}", ":",
             "&a", "*a", "!!map", "<<", "'", '"', "|\n ", "3.10", "\ufeff", "\r\n", "each: ", "values", "run: x", ", "]
        ),
        max_size=14,
    ).map(lambda words: "".join(words).encode()),
)  # fmt: skip
@example("tasks/x.md", b"---\nid: ../x\n---\n")
@example("x.yaml", b"tasks: {a: {run: x, each: {matrix: {a: [], b: [c]}}}}")
def test_arbitrary_bytes_are_a_list_or_an_error(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / "tasks").mkdir(exist_ok=True)
    for old in (tmp_path / "tasks").iterdir():
        old.unlink()
    (tmp_path / name).write_bytes(data)
    try:
        work_list = read_work_files([Path(name).parent if "/" in name else Path(name)], overrides=RUN, here=tmp_path)
    except CodebatchError:
        return
    assert encode_work(work_list.work)
    assert all(map(encode_command, work_list.commands))


@given(st.text("#-[x] \n`~{}ab\r", max_size=60))
def test_markdown_split_loses_no_text(text: str) -> None:
    for section in level_2_sections(text):
        assert section.text in text.replace("\r\n", "\r\n")
        assert text.split("\n")[section.line - 1].lstrip().startswith("##")
    try:
        front = split_front_matter(f"---\n{text}")
    except ValueError:
        return
    assert front is not None
    assert f"---\n{text}".startswith(f"---\n{front.text}")
    assert f"---\n{text}".endswith(front.body)
    assert f"---\n{text}".split("\n")[front.body_line - 1 :] == front.body.split("\n") or front.body == ""


@given(st.text(max_size=120))
def test_slug_is_an_id_or_empty(text: str) -> None:
    slug = make_slug(text)
    assert slug == "" or (len(slug) <= 100 and slug[0].isalnum() and slug.isascii() and slug == slug.lower())


def test_front_matter_titles_and_tags_are_literal_text(tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    fronts = {"a": "title: no\ntags: urgent", "b": "title: 2024-01-01\ntags: [010, yes]", "c": "title:\ntags:"}
    for name, front in fronts.items():
        (tmp_path / "tasks" / f"{name}.md").write_text(f"---\n{front}\n---\n# Heading\n", encoding="utf-8")
    run = WorkOptions(command="true")
    work_list = read_work_files([Path("tasks")], overrides=run, here=tmp_path, environ={})
    assert work_list.work.titles == {"a": "no", "b": "2024-01-01", "c": "Heading"}
    for tag, task in (("urgent", "a"), ("010", "b"), ("yes", "b")):
        options = WorkOptions(command="true", tags=(tag,))
        assert read_work_files([Path("tasks")], overrides=options, here=tmp_path, environ={}).work.order == (task,)
