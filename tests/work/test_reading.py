"""Tests of reading task lists: commands, dependencies, and settings for all of them (SPEC.md "Work files")."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from codebatch.errors import CodebatchError, InvalidConfiguration, NothingToDo
from codebatch.model.text.toml import parse_toml
from codebatch.model.work.command import encode_command
from codebatch.model.work.event import AnyEvent, event_name
from codebatch.model.work.work_batch import EventName, ListOrigin, TaskPolicy, WorkEdge, decode_work, encode_work
from codebatch.system.host import usable_cores
from codebatch.work.definition.settings import WorkOptions
from codebatch.work.definition.tables import TaskTable, WorkDocument
from codebatch.work.definition.work_files import WORK_FILE_EXAMPLE
from codebatch.work.definition.work_list import read_work_files
from tests.support.resources import cpu_time_below
from tests.work.reading import read

GOLDEN = Path(__file__).parent.parent / "golden"
A = '[tasks.a]\nrun = "x"\n'

WHOLE = """
strategy = "parallel"
max_parallel = 4
on_failure = "stop"
failures_max = 3
clean_env = true
env = { CI = "1", TOKEN = "$TOKEN" }
on_blocked = "wait"
start_every_seconds = 2
timeout_seconds = 3600
halt = "now"

[pools]
browser = 2

[notify]
command = ["cat"]
events = ["BATCH_FAILED"]
[answering]
command = ["answer"]
timeout_seconds = 5
per_task_max = 2
[[answering.rules]]
match = "(?i)which tool"
answer = "uv"
[[answering.rules]]
match = "delete"
human = true

[trees]
directory = "/trees"
link = ["node_modules", "web/node_modules/"]
keep = "none"

[defaults]
timeout_seconds = 1800
env = { LANG = "C" }
stdin = "text"

[tasks.build]
run = "make -j2"
title = "Build it"
env = { CI = "" }
grace_seconds = 0.5

[tasks.e2e]
run = ["no-such-program", "playwright", "{id}", "{{id}}"]
title = "Überall"
text = "line 1\\nline 2"
needs = ["build", "build"]
after = ["lint", "build"]
cwd = "web"
stdin = "in.txt"
priority = -1
pools = { browser = 2 }
exclusive = true
exit_ok = [0, 2]
timeout_seconds = 60
stall_seconds = 30
if_interrupted = "ask"
restarts_max = 0
expected_seconds = 90
leftovers = "leave"
memory_mb_max = 512
log_mb_max = 1
check = "test -e report"
retries = 3
backoff_seconds = 0.5
backoff_factor = 3
backoff_seconds_max = 10
retry_reasons = ["exit", "check"]
retry_if = { exits = [75], pattern = "connection reset" }
wait_if = 'resets at (?P<at>\\S+)'
waits_max = 5
wait_seconds_max = 600
cost_max = 2.5
attempts_max = 7
tries = [{ text_suffix = "See {previous_log}." }, { run = ["other"], env = { CI = "2" }, timeout_seconds = 90 }]
on_exhausted = "ask"
on_stall = "ask"
question = { pattern = "^Q: (?P<text>.+)$", last_lines = 5, exits = [75] }
result = { text = "/result", question = "/ask", cost = "/cost", session = "/id" }

[tasks.lint]
run = "true"
stdin = "none"
inputs = ["src/*.c"]
outputs = ["out/"]
env_file = { path = "no.env", required = false }
expected_seconds = 12
tags = ["nightly"]
isolation = "copy"
when = "test -e x"
when_timeout_seconds = 5
skip_status = 77

[tasks.part]
run = "echo {value}"
each = { values = ["a b", "c"] }
inputs = ["src/{value}/"]
skip_if_unchanged = true

[tasks.use]
run = "echo {tasks.lint.outputs}"
needs = ["lint"]
"""


def test_task_list_matches_the_golden_bytes(tmp_path: Path) -> None:
    """After a deliberate change of the format, write the compared bytes into tests/golden."""
    work_list = read(tmp_path, WHOLE, TOKEN="secret", PATH=os.defpath)
    origin = ListOrigin(directory=b"/project", files=(b"/project/work.toml",))
    work = msgspec.structs.replace(work_list.work, root=b"/project", origin=origin)
    assert work_list.work.root == os.fsencode(tmp_path.resolve())
    assert decode_work(encode_work(work_list.work)) == work_list.work
    assert encode_work(work) == (GOLDEN / "work.json").read_bytes()
    assert b"".join(map(encode_command, work_list.commands)) == (GOLDEN / "commands.jsonl").read_bytes()
    assert work_list.notes == ("'no-such-program', which 'e2e' runs, is not on the PATH",)


def test_golden_file_contains_every_task_key() -> None:
    tables = parse_toml(WHOLE)["tasks"]
    assert isinstance(tables, dict)
    assert set().union(*tables.values()) == set(TaskTable.__struct_fields__)


def test_event_names_cover_every_event_but_that_of_a_notification() -> None:
    assert {*get_args(EventName), "BATCH_NOTIFIED"} == {event_name(event) for event in get_args(AnyEvent)}


def test_document_type_matches_the_reader(tmp_path: Path) -> None:
    assert msgspec.convert(parse_toml(WHOLE), WorkDocument).tasks["e2e"].exclusive


@pytest.mark.parametrize(
    ("text", "options", "strategy", "at_once"),
    [
        ("", WorkOptions(), "serial", 1),
        ("max_parallel = 1", WorkOptions(), "serial", 1),
        ("max_parallel = 3", WorkOptions(), "parallel", 3),
        ("", WorkOptions(max_parallel=3), "parallel", 3),
        ("", WorkOptions(max_parallel=1), "serial", 1),
        ("max_parallel = 5", WorkOptions(max_parallel=3), "parallel", 3),
        ("max_parallel = 5", WorkOptions(max_parallel=1), "serial", 1),
        ("strategy = 'parallel'", WorkOptions(), "parallel", min(8, usable_cores())),
        ("strategy = 'parallel'", WorkOptions(max_parallel=1), "parallel", 1),
        ("strategy = 'parallel'", WorkOptions(strategy="serial"), "serial", 1),
        ("strategy = 'serial'\nmax_parallel = 4", WorkOptions(), "serial", 1),
        ("strategy = 'serial'", WorkOptions(max_parallel=3), "serial", 1),
        ("strategy = 'serial'", WorkOptions(max_parallel=3, strategy="parallel"), "parallel", 3),
    ],
)
def test_parallelism_follows_settings_and_options(
    tmp_path: Path, text: str, options: WorkOptions, strategy: str, at_once: int
) -> None:
    work_list = read(tmp_path, f"{text}\n{A}", options)
    assert (work_list.work.strategy, work_list.work.max_parallel) == (strategy, at_once)
    is_against = options.strategy is None and "'serial'" in text and options.max_parallel == 3
    assert [note[:36] for note in work_list.notes] == ['work.toml sets strategy = "serial": o'[:36]] * is_against


def test_command_line_overrides_the_file(tmp_path: Path) -> None:
    options = WorkOptions(on_failure="continue", failures_max=2, env=("CI=2", "TOKEN"), max_parallel=2)
    work_list = read(tmp_path, WHOLE, options, TOKEN="x", PATH=os.defpath)
    assert (work_list.work.on_failure, work_list.work.failures_max, work_list.work.max_parallel) == ("continue", 2, 2)
    assert [command.env["CI"] for command in work_list.commands] == ["2"] * 6
    assert work_list.commands[0].env == {"CI": "2", "TOKEN": "$TOKEN", "LANG": "C"}
    assert [note.split(",")[0].split(":")[0] for note in work_list.notes] == [
        "`failures_max` is 2",
        "values set with --env NAME=VALUE are stored in the batch; with --env NAME",
        "`on_failure` is 'continue'",
        "'no-such-program'",
    ]


def _ids(directory: Path, *tasks: str, only: bool = False) -> tuple[list[str], int, list[str]]:
    text = "".join(f'[tasks.{task}]\nrun = "x"\nneeds = {list(needs)!r}\n' for task, needs in [("a", ""), ("b", "a")])
    text += '[tasks.c]\nrun = "x"\nneeds = ["b"]\nafter = ["d"]\n[tasks.d]\nrun = "x"\n'
    work_list = read(directory, text, WorkOptions(tasks=tasks, only=only))
    return [*work_list.work.order], len(work_list.work.edges), [*work_list.notes]


def test_tasks_are_selected_with_or_without_dependencies(tmp_path: Path) -> None:
    assert _ids(tmp_path) == (["a", "b", "c", "d"], 3, [])
    assert _ids(tmp_path, "c") == (["a", "b", "c"], 2, [])
    assert _ids(tmp_path, "d", "b") == (["a", "b", "d"], 1, [])
    note = "dependencies not run, because only the given tasks run: b"
    assert _ids(tmp_path, "c", "d", only=True) == (["c", "d"], 1, [note])


def test_joined_files_use_the_settings_of_the_first_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    first = 'max_parallel = 2\nenv = { A = "1" }\n[pools]\np = 1\n[defaults]\nrun = "first"\n[tasks.a]\nneeds = ["b"]\n'
    second = 'max_parallel = 3\n[pools]\np = 5\nq = 2\n[defaults]\nrun = "second"\n[tasks.b]\npools = { q = 2 }\n'
    (tmp_path / "a.toml").write_text(first, encoding="utf-8")
    (tmp_path / "sub" / "b.toml").write_text(second, encoding="utf-8")
    work_list = read_work_files([Path("a.toml"), Path("sub/b.toml")], here=tmp_path, environ={})
    assert work_list.work.edges == (WorkEdge("a", "b"),)  # type: ignore[arg-type]
    assert (work_list.work.source, work_list.work.max_parallel, work_list.work.pools) == (
        "a.toml, sub/b.toml",
        2,
        {"p": 1, "q": 2},
    )
    assert work_list.work.policies == {"b": TaskPolicy(pools={"q": 2})}
    assert [(command.run, command.env) for command in work_list.commands] == [("first", {"A": "1"}), ("second", {})]
    assert work_list.notes == (
        f"the tasks of sub/b.toml run in {tmp_path.resolve()}, because `root` of a.toml applies to all tasks",
    )


def test_project_task_list_takes_precedence_over_work_toml(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    with pytest.raises(NothingToDo, match=r"no work.toml in this directory") as raised:
        read_work_files([], here=below)
    assert raised.value.hint is not None
    (below / "work.toml").write_text(A, encoding="utf-8")
    assert read_work_files([], here=below).work.source == "work.toml"
    (tmp_path / "pyproject.toml").write_text("[tool.codebatch.work.tasks.b]\nrun = 'x'\n", encoding="utf-8")
    work_list = read_work_files([], here=below)
    assert (work_list.work.source, work_list.work.order, work_list.work.root) == (
        "pyproject.toml", ("b",), os.fsencode(tmp_path.resolve()),
    )  # fmt: skip
    (tmp_path / "codebatch.toml").write_text("[work.tasks.c]\nrum = 'x'\n", encoding="utf-8")
    with pytest.raises(InvalidConfiguration, match=r"^../codebatch.toml: \[work.tasks.c\]: unknown setting 'rum'"):
        read_work_files([], here=below)
    assert read_work_files([Path("work.toml")], here=below).work.order == ("a",)


def test_example_in_the_hint_is_a_valid_task_list(tmp_path: Path) -> None:
    assert read(tmp_path, WORK_FILE_EXAMPLE, PATH=os.environ["PATH"]).work.order == ("build", "test")


@pytest.mark.parametrize("text", ["", "[tasks]", "max_parallel = 2"])
def test_file_without_tasks_is_nothing_to_do(tmp_path: Path, text: str) -> None:
    with pytest.raises(NothingToDo, match=r"no tasks in work\.toml") as raised:
        read(tmp_path, text)
    assert raised.value.hint is not None
    assert "printf" in raised.value.hint


@pytest.mark.parametrize("name", ["work it.toml", "new", "new.toml"])
def test_command_in_the_hint_fixes_the_problem(tmp_path: Path, name: str) -> None:
    """The hint is given for an empty file, an empty directory and a missing file."""
    (tmp_path / "work it.toml").touch()
    for begun in (name, "tasks"):
        (tmp_path / "tasks").mkdir(exist_ok=True)
        with pytest.raises(CodebatchError) as raised:
            read_work_files([Path(begun)], here=tmp_path)
        assert raised.value.hint is not None
        command = raised.value.hint[raised.value.hint.index("printf") :]
        subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, check=True)
        path = begun if begun == "tasks" or begun.endswith(".toml") else f"{begun}.toml"
        assert "build" in read_work_files([Path(path)], here=tmp_path).work.order


def test_mistyped_file_name_has_a_suggestion(tmp_path: Path) -> None:
    (tmp_path / "overnight").mkdir()
    with pytest.raises(InvalidConfiguration, match="cannot read ovrnight: No such file or directory") as raised:
        read_work_files([Path("ovrnight")], here=tmp_path)
    assert raised.value.hint == "did you mean 'overnight'?"


def test_root_is_resolved_without_links(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "link").symlink_to("project")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "work.toml").write_text(f'root = "../link"\n{A}', encoding="utf-8")
    work_list = read_work_files([Path("files/work.toml")], here=tmp_path)
    assert work_list.work.root == os.fsencode((tmp_path / "project").resolve())


def test_non_unicode_file_name_is_escaped(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.toml")
    (tmp_path / name).write_text(A, encoding="utf-8")
    assert encode_work(read_work_files([Path(name)], here=tmp_path).work)
    assert read_work_files([Path(name)], here=tmp_path).work.source == "caf\\xe9.toml"


def test_chain_of_diamonds_is_read_in_time(tmp_path: Path) -> None:
    text = '[tasks.j0]\nrun = "x"\n'
    for n in range(1, 61):
        text += f'[tasks.l{n}]\nrun = "x"\nneeds = ["j{n - 1}"]\n[tasks.r{n}]\nrun = "x"\nneeds = ["j{n - 1}"]\n'
        text += f'[tasks.j{n}]\nrun = "x"\nneeds = ["l{n}", "r{n}"]\n'
    with cpu_time_below(5):
        work_list = read(tmp_path, text, WorkOptions(tasks=("j60",)))
        assert (len(work_list.commands), len(work_list.work.edges)) == (181, 240)


@pytest.mark.slow
def test_chain_of_the_maximum_length_is_read(tmp_path: Path) -> None:
    text = "".join(f'[tasks.t{n}]\nrun = "x"\n' + f'needs = ["t{n - 1}"]\n' * (n > 0) for n in range(50_000))
    work_list = read(tmp_path, text, WorkOptions(tasks=("t49999",)))
    assert (len(work_list.commands), len(work_list.work.edges)) == (50_000, 49_999)


TEXTS = st.text(max_size=6) | st.sampled_from(["a", "b", "$A", "{id}", "{x}", "'{id}'", "..", "none", "\0", "serial"])
LEAVES = TEXTS | st.integers() | st.floats() | st.booleans() | st.dates() | st.sampled_from([0, 1, 2, 10**30])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3))
TASKS = st.dictionaries(st.sampled_from([*TaskTable.__struct_fields__, "each", "x"]), VALUES, max_size=4)
SETTINGS = st.dictionaries(st.sampled_from([*WorkDocument.__struct_fields__, "trees", "x"]), VALUES, max_size=3)
DOCUMENTS = st.builds(
    lambda settings, defaults, tasks: {**settings, "defaults": defaults, "tasks": tasks},
    SETTINGS,
    TASKS | st.just({"run": "x"}),
    st.dictionaries(st.sampled_from(["a", "b", "A", "-"]) | TEXTS, TASKS | st.just({"needs": ["a"]}), max_size=4),
)


def _toml(value: object) -> str:
    """Return a value as inline TOML."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_toml(key)} = {_toml(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return msgspec.json.encode(value.encode("utf-8", "replace").decode()).decode().replace("\x7f", "\\u007f")
    return str(value).lower()


def test_root_with_nul_is_no_directory(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match="which is not a directory"):
        read(tmp_path, 'root = "\\u0000"\ntasks.a.run = "x"\n')


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(DOCUMENTS)
@example({"tasks": {"a": {"run": "x", "needs": ["a"]}}})
def test_arbitrary_document_is_a_task_list_or_an_error(tmp_path: Path, document: dict[str, object]) -> None:
    text = "".join(f"{_toml(key)} = {_toml(value)}\n" for key, value in document.items())
    try:
        work_list = read(tmp_path, text, A="x")
    except CodebatchError:
        return
    assert decode_work(encode_work(work_list.work)) == work_list.work
    assert all(map(encode_command, work_list.commands))


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=60))
@example(b"\xef\xbb\xbf[tasks.a]\nrum='x'")
@example(b"[[tasks]]")
@example(b"tasks.a = []\n[[tasks.b]]")
def test_arbitrary_bytes_are_a_task_list_or_an_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "work.toml").write_bytes(data)
    with pytest.raises(CodebatchError):
        read_work_files([], here=tmp_path)
