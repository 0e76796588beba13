"""Tests of mistakes in task lists: each has a message and a hint; all are reported at once (SPEC.md "Work files")."""

from __future__ import annotations

import os
from pathlib import Path

import click
import pytest

from codebatch.cli.framework.exit import run_to_exit_status
from codebatch.errors import InvalidConfiguration, InvalidInput, InvalidWork
from codebatch.model.work.command import CommandId
from codebatch.model.work.work_batch import DEFAULT_POLICY
from codebatch.work.definition.commands import DefinedTask
from codebatch.work.definition.problems import DefinitionProblems
from codebatch.work.definition.settings import WorkOptions
from codebatch.work.definition.table_checks import TableLocation
from codebatch.work.definition.tables import TaskTable
from codebatch.work.definition.validation import check_task_ids
from codebatch.work.definition.work_list import read_work_files
from tests.support.resources import cpu_time_below
from tests.work.reading import read, wrong

KEYS = TaskTable.__struct_fields__
A = '[tasks.a]\nrun = "x"\n'
LONG = "work.toml: [tasks.a] makes an argument or variable of"

MISTAKES = [
    ("strategi = 'serial'\n" + A, "work.toml: unknown setting 'strategi'", "did you mean 'strategy'?"),
    ("build.run = 'x'\n" + A, "work.toml: unknown setting 'build'", "tasks belong below `tasks`: [tasks.build]"),
    ("[build]\nneeds = ['a']\n" + A, "work.toml: unknown setting 'build'", "tasks belong below `tasks`: [tasks.build]"),
    ("[jobs.a]\nrun = 'x'\n" + A, "work.toml: unknown setting 'jobs'", "did you mean 'tasks'?"),
    ("retries = 2\n" + A, "work.toml: unknown setting 'retries'",
     "set 'retries' in a task, [tasks.NAME], or for all tasks in [defaults]"),
    ("needs = []\n" + A, "work.toml: unknown setting 'needs'", "set 'needs' in a task: [tasks.NAME]"),
    ("x.y = 2\n" + A, "work.toml: unknown setting 'x'", "one of: strategy"),
    (A + "retry = 2", "work.toml: [tasks.a]: unknown setting 'retry'", "did you mean 'retries'?"),
    (A + "depends_on = ['b']", "work.toml: [tasks.a]: unknown setting 'depends_on'", "did you mean 'needs'?"),
    (A + "cmd = 'x'", "work.toml: [tasks.a]: unknown setting 'cmd'", "did you mean 'run'?"),
    (A + "time = 2", "work.toml: [tasks.a]: unknown setting 'time'", "did you mean 'timeout_seconds'?"),
    (A + "each.file = ['x']", "work.toml: [tasks.a.each]: unknown setting 'file'", "did you mean 'files'?"),
    (A + "each = 3", "work.toml: [tasks.a] sets `each` to 3, expected a table with `files`", None),
    (A + "each = {}", "work.toml: [tasks.a.each] has no source of members", "one of files, values"),
    (A + "each = { values = ['1'], lines = 'x' }", "work.toml: [tasks.a.each] sets values and lines", "one of files"),
    (A + "each = { values = ['1'], chunk = 2 }", "work.toml: [tasks.a.each] sets `chunk`, which needs `files`", None),
    (A + "each = { files = ['x'], chunk = 0 }", "work.toml: [tasks.a.each] sets `chunk` to 0, expected a", None),
    (A + "each.values = [3.10]", "work.toml: [tasks.a.each] sets `values` to [3.1], expected a list of", None),
    (A + "each.files = ['src/*', './a/*.ts']",
     "work.toml: [tasks.a.each] has the pattern './a/*.ts' in `files`, which can match no",
     "write 'a/*.ts'"),
    (A + "inputs = ['gen/{a,b}']",
     "work.toml: [tasks.a] has the pattern 'gen/{a,b}' in `inputs`, which can match no",
     "'gen/a'"),
    ("[defaults]\noutputs = ['a//b']\n" + A, "work.toml: [defaults] has the pattern 'a//b' in `outputs`, which can",
     "write 'a/b'"),
    (A + "each.lines = 'no'", "work.toml: [tasks.a.each]: cannot read no: No such file or directory", None),
    (A + "each.matrix = { a = ['1'], A = ['1'] }", "work.toml: [tasks.a.each] has names in its matrix that", None),
    (A + "each.matrix = { a-b = ['1'] }", "work.toml: [tasks.a.each] has an invalid name 'a-b' in its matrix",
     "letters"),
    (A + "each.matrix = { a = [%s], b = [%s] }" % ((", ".join(f"'{n}'" for n in range(300)),) * 2),
     "work.toml: [tasks.a.each] has a matrix of 90,000 members, more than 50,000", None),
    (A + "needs = ['b/*']\n[tasks.b]\nrun = 'x'\neach.values = ['1']",
     "work.toml: 'a' needs 'b/*', but has no `each`", "to depend on all members: needs = [\"b\"]"),
    (A + "needs = ['b/*']\neach.values = ['2']\n[tasks.b]\nrun = 'x'\neach.values = ['1']",
     "work.toml: 'a/2' needs 'b/*', but 'b' has no member '2'", "give 'a' and 'b' the same `each`"),
    (A + "needs = ['b']\n[tasks.b-c]\nrun = 'x'\n[tasks.b-d]\nrun = 'x'",
     "work.toml: 'a' needs 'b', which is ambiguous: b-c, b-d", None),
    ("infer = { timeout_seconds = 1 }\n" + A, "work.toml: [infer] needs command", None),
    ("infer = { command = [] }\n" + A, "work.toml: [infer] sets `command` to [], expected a list", None),
    ("include = ['no.toml']\n" + A, "cannot read no.toml: No such file or directory", "give an existing file"),
    ("[tasks.a]\nrun = 'x {file}'",
     "work.toml: [tasks.a] uses {file}, which has no value", "other placeholders need `each`"),
    ("[tasks.a]\nrun = 'x {files}.c'\neach.files = ['*']", "work.toml: [tasks.a] has {files} inside a word",
     "separate argument"),
    ("[tasks.a]\nrun = 'x'\nenv.A = '{files}'", "work.toml: [tasks.a] uses {files} in the variable A", None),
    ("[tasks.a]\nrun = 'x {value.b}'\neach.matrix = { a = ['1'] }",
     "work.toml: [tasks.a] uses {value.b}, which has no value for '1'", "{value.a}"),
    ("[defaults]\nneeds = ['a']\n" + A, "work.toml: [defaults] sets 'needs', which is allowed only in a task",
     "set it in"),
    ("[tasks.a.b]\nrun = 'x'", "work.toml: [tasks.a]: unknown table 'b'", '[tasks."….b"]'),
    ("[tasks.a]\ntitle = 'x'", "work.toml: the task 'a' has no command to run",
     "set `run` in the task or in [defaults]"),
    ("[tasks]\na = 'make'", "work.toml: the task 'a' is not a table", "[tasks.a]"),
    ("tasks = ['make']", "work.toml sets 'tasks' to something that is not a table", None),
    ("defaults = 1\n" + A, "work.toml sets 'defaults' to something that is not a table", None),
    ("[tasks.a]\nrun = ' '", "work.toml: [tasks.a] has an empty `run`", 'for example: run = "make test"'),
    ("[tasks.a]\nrun = ['', 'x']", "work.toml: [tasks.a] has an empty `run`", 'for example: run = "make test"'),
    ("[tasks.a]\nrun = []", "work.toml: [tasks.a] sets `run` to [], expected a string, or a list of strings", None),
    ("[tasks.a]\nrun = ['x', 3]", "work.toml: [tasks.a] sets `run` to [\"x\",3], expected a string, or a list", None),
    ("[tasks.a]\nrun = 'x\\u0000'".replace("'", '"'), "work.toml: [tasks.a] sets `run` to a value with a NUL character",
     None),
    (A + "[tasks.b]\nrun = 'x'\nneeds = ['c', 'a']", "work.toml: 'b' needs 'c', which does not exist", None),
    (A + "[tasks.build]\nrun = 'x'\nneeds = ['biuld']", "work.toml: 'build' needs 'biuld', which does not exist",
     "did you mean 'build'?"),
    (A + "[tasks.build]\nrun = 'x'\nafter = ['b']", "work.toml: 'build' runs after 'b', which does not exist", None),
    (A + "needs = ['a']", "the task 'a' depends on itself", None),
    (A + "needs = ['b']\n[tasks.b]\nrun = 'x'\nafter = ['c']\n[tasks.c]\nrun = 'x'\nneeds = ['a']",
     "tasks depend on one another in a cycle: a → b → c → a", None),
    (A + "[tasks.A]\nrun = 'x'", "ids in work.toml: [tasks.a] and work.toml: [tasks.A] differ only in case",
     "some file systems ignore case"),
    ("[tasks.'My Task']\nrun = 'x'", "work.toml: 'My Task' is not a valid task id",
     "at most 100 characters; for example 'my-task'"),
    ("[tasks.'é']\nrun = 'x'", "work.toml: 'é' is not a valid task id", "a letter or digit and have at most 100"),
    ("[tasks.'../a']\nrun = 'x'", "work.toml: '../a' is not a valid task id", "for example 'a'"),
    (f"[tasks.{'a' * 101}]\nrun = 'x'", f"work.toml: {'a' * 101!r} is not a valid task id", "at most 100"),
    (A + "pools.browser = 2\n[pools]\nbrowser = 1", "work.toml: 'a' takes 2 tokens of pool 'browser', which has 1",
     None),
    (A + "pools.gpu = 1", "work.toml: 'a' takes tokens of pool 'gpu', which is not defined",
     "set its size: [pools] gpu = …"),
    (A + "pools.brwser = 1\n[pools]\nbrowser = 1", "work.toml: 'a' takes tokens of pool 'brwser', which is not defined",
     "did you mean 'browser'?"),
    (A + "cwd = '../x'", "work.toml: [tasks.a] sets `cwd` to '../x', which is outside the root", "root"),
    (A + "cwd = 'a/../../x'", "work.toml: [tasks.a] sets `cwd` to 'a/../../x', which is outside the root", "root"),
    (A + "cwd = '/x'", "work.toml: [tasks.a] sets `cwd` to '/x', which is outside the root", "root"),
    (A + "env.a = '$NO'", "work.toml: [tasks.a] sets the variable a to '$NO': ${NO} is not set", "${NAME:-default}"),
    (A + "env.a = 'x${NO}'", "work.toml: [tasks.a] sets the variable a to 'x${NO}': ${NO} is not set",
     "for a literal ${ write $${"),
    (A + "env.a = '${b%c}'", "work.toml: [tasks.a] sets the variable a to '${b%c}': ${ without a name and }",
     "for a literal ${ write $${"),
    (A + "tries = [{ env = { a = '${NO}' } }]", "work.toml: [tasks.a.tries 1] sets the variable a to '${NO}': ", "$"),
    ("include = ['a\\u0000']\n".replace("'", '"') + A, "'a\\x00' is not a path: it contains a NUL character", None),
    (A + "env_file = 3", "work.toml: [tasks.a] sets `env_file` to 3, expected a file path, a table", None),
    (A + "env_file = '.env'", "work.toml: [tasks.a]: cannot read .env: No such file or directory", "required = false"),
    (A + "env_file = '.'", "work.toml: [tasks.a]: cannot read .: it is not a regular file", None),
    (A + "env.a = '{titel}'", "work.toml: [tasks.a] has {titel}, which is not a placeholder, in", "{title}?"),
    ("[tasks.a]\nrun = ['x', '{fiel}']", "work.toml: [tasks.a] has {fiel}, which is not a placeholder", "mean {file}?"),
    ("[tasks.a]\nrun = ['x', '{report}']", "work.toml: [tasks.a] has {report}, which this version does not", "{id}"),
    ("[tasks.a]\nrun = 'echo \"{id}\"'", "work.toml: [tasks.a] has {id} inside double quotes", '"$CODEBATCH_V_ID"'),
    ("[tasks.a]\nrun = \"jq '{id}' x\"", "work.toml: [tasks.a] has {id} inside single quotes",
     "write {{id}}"),
    (f"[tasks.a]\nrun = '{'x' * 131072}'", f"{LONG} 131,072 bytes, more than 131,071", "{text_file}"),
    (f"[tasks.a]\nrun = 'x {{text}}'\ntext = '{'x' * 131072}'", f"{LONG} 131,089 bytes, more than", "{text_file}"),
    (A + f"text = '{'x' * (4 << 20)}'", "work.toml: [tasks.a] has 4,194,", None),
    (A + "retries = 1\ntries = [{}, {}]", "work.toml: [tasks.a] sets `retries` to 1, but has 2 entries", "remove"),
    (A + "retry_reasons = ['interrupted']\nif_interrupted = 'fail'",
     "work.toml: [tasks.a] retries interrupted attempts",
     "may run twice"),
    (A + "check = ' '", "work.toml: [tasks.a] has an empty `check`", 'check = "make test"'),
    (A + "check = ['x', '{tri}']", "work.toml: [tasks.a] has {tri}, which is not a placeholder", "did you mean {try}?"),
    (A + "tries = [{ text_suffix = '{previous}' }]", "work.toml: [tasks.a.tries 1] has {previous}, which is not a plac",
     "previous_log"),
    (A + "tries = [{ run = 'echo \"{try}\"' }]".replace("'echo \"{try}\"'", "\"echo '{try}'\""),
     "work.toml: [tasks.a.tries 1] has {try} inside single quotes", "CODEBATCH_V_TRY"),
    (A + "tries = [{ retries = 2 }]", "work.toml: [tasks.a] sets `tries` to [{\"retries\":2}], expected", None),
    (A + "question = {}", "work.toml: [tasks.a] has a `question` without a condition", "`pattern` or `exits`"),
    (A + "question.pattern = '('", "work.toml: [tasks.a] question has an invalid regular expression: ", None),
    (A + "retry_if = {}\nretries = 1", "work.toml: [tasks.a] has a `retry_if` without a condition",
     "`pattern` or `exits`"),
    (A + "retry_if.exits = [75]", "work.toml: [tasks.a] sets `retry_if` without `retries`", "set `retries`"),
    (A + "retry_if.pattern = '('\nretries = 1", "work.toml: [tasks.a] retry_if has an invalid regular expression",
     None),
    (A + "wait_if = '('", "work.toml: [tasks.a] wait_if has an invalid regular expression: ", None),
    (A + "wait_if = '(?P<until>x)'", "work.toml: [tasks.a] wait_if has an unknown group 'until'", "at and seconds"),
    ("halt = 'now'\non_failure = 'continue'\n" + A,
     "work.toml: `halt` is 'now', but `on_failure` is 'continue': nothing",
     'set `on_failure` to "stop"'),
    (A + "result.text = 'x'", "work.toml: [tasks.a] sets `result` to {\"text\":\"x\"}, expected", None),
    ("[answering]\n" + A, "work.toml: [answering] has neither `rules` nor `command`", "set `rules` or `command`"),
    ("answering.rules = [{ match = '(', answer = 'x' }]\n" + A, "work.toml: [answering], rule 1 has an invalid reg",
     None),
    ("answering.rules = [{ match = 'x' }]\n" + A, "work.toml: [answering], rule 1 needs an answer, or", None),
    ("timeout_seconds = 0\n" + A, "work.toml sets `timeout_seconds` to 0, expected a number above 0", None),
    ("halt = 'later'\n" + A, "work.toml sets `halt` to 'later', expected \"soon\" or \"now\"", None),
    ("max_parallel = 0\n" + A, "work.toml sets `max_parallel` to 0, expected an integer from 1 to", None),
    ("on_failure = 'x'\n" + A,
     "work.toml sets `on_failure` to 'x', expected \"skip-dependents\", \"continue\" or", None),
    ("failures_max = 50001\n" + A, "work.toml sets `failures_max` to 50001, expected an integer from 1", None),
    ("root = 'nowhere'\n" + A, "work.toml sets `root` to 'nowhere', which is not a directory", None),
    ("clean_env = 'yes'\n" + A, "work.toml sets `clean_env` to 'yes', expected true or false", None),
    ("x = \n" + A, "work.toml is not valid TOML: Invalid value (at line 1, column 5)", None),
    (A + A, "work.toml is not valid TOML: Cannot declare ('tasks', 'a') twice (at line 3, column 9)", None),
    ("x = " + "[" * 5000, "work.toml is not valid TOML: it is nested too deeply", None),
]  # fmt: skip

VALUES = [
    ("pools.gpu = 0", '`pools` to {"gpu":0}, expected a table of integers'),
    ("priority = true", "`priority` to true, expected an integer"),
    (f"priority = 0x{'f' * 9000}", "`priority` to a very large number, expected"),
    (f"exit_ok = [0x{'f' * 9000}]", "`exit_ok` to a value with a very large number"),
    ("timeout_seconds = 0", "`timeout_seconds` to 0, expected a number above 0"),
    ("stall_seconds = nan", "`stall_seconds` to nan, expected a number"),
    ("grace_seconds = inf", "`grace_seconds` to inf, expected a number"),
    ("memory_mb_max = 1.5", "`memory_mb_max` to 1.5, expected an integer"),
    ("log_mb_max = 0", "`log_mb_max` to 0, expected an integer from 1"),
    ("restarts_max = -1", "`restarts_max` to -1, expected an integer from 0"),
    ("exit_ok = [256]", "`exit_ok` to [256], expected a list of integers"),
    ("exit_ok = []", "`exit_ok` to [], expected a list"),
    ("exclusive = 1", "`exclusive` to 1, expected true or false"),
    ("if_interrupted = 'x'", "`if_interrupted` to 'x', expected \"restart\", \"fail\" or"),
    ("leftovers = 'x'", "`leftovers` to 'x', expected \"kill\" or \"leave\""),
    ("needs = 'a'", "`needs` to 'a', expected a list of task IDs"),
    ("title = 2020-01-01", '`title` to "2020-01-01", expected a string'),
    ("text = 5", "`text` to 5, expected a string"),
    ("stdin = ''", "`stdin` to '', expected \"none\", \"text\" or the path"),
    ("env.'a=b' = 'x'", "the variable 'a=b', which is not a valid name"),
    ("env.'' = 'x'", "the variable '', which is not a valid name"),
    ('env.a = "\\u0000"', "`env` to a value with a NUL"),
    ("retry_if.exits = [256]", '`retry_if` to {"exits":[256]}, expected a table with `exits` or `pattern`'),
    ("retry_if.exit = [75]", '`retry_if` to {"exit":[75]}, expected a table with `exits` or `pattern`'),
    ("wait_if = 5", "`wait_if` to 5, expected a regular expression"),
    ("retries = 101", "`retries` to 101, expected an integer from 0 to 100"),
    ("retry_reasons = ['start']", '`retry_reasons` to ["start"], expected a list with any of exit, signal'),
    ("backoff_factor = 0.5", "`backoff_factor` to 0.5, expected a number from 1 to 1000"),
    ("on_exhausted = 'x'", "`on_exhausted` to 'x', expected \"fail\" or \"ask\""),
    ("tries = 3", "`tries` to 3, expected a list of tables"),
    ("env.a = 3", '`env` to {"a":3}, expected a table of strings'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected", "hint"), MISTAKES, ids=[case[1][:60] for case in MISTAKES])
def test_list_error_is_reported_with_a_hint(tmp_path: Path, text: str, expected: str, hint: str | None) -> None:
    ((message, meant),) = wrong(tmp_path, text)
    assert message.startswith(expected)
    assert meant is None if hint is None else meant is not None and hint in meant


@pytest.mark.parametrize(("text", "expected"), VALUES, ids=[text[:40] for text, _ in VALUES])
def test_invalid_value_is_reported_with_the_expected_values(tmp_path: Path, text: str, expected: str) -> None:
    ((message, hint),) = wrong(tmp_path, A + text)
    assert message.startswith(f"work.toml: [tasks.a] sets {expected}")
    assert hint is None


@pytest.mark.parametrize("value", ['"gcc"', '{ format = "json" }'])
def test_records_of_a_command_name_the_configuration_of_linters(tmp_path: Path, value: str) -> None:
    for head, place in (A, "[tasks.a]"), (f"{A}[defaults]\n", "[defaults]"):
        assert wrong(tmp_path, f"{head}records = {value}") == [
            (
                f"work.toml: {place} sets 'records', but commands of a task list have no records",
                "to record the findings of a linter, write [tasks.X] command = […] in codebatch.toml",
            )
        ]


def test_independent_errors_are_reported_together(tmp_path: Path) -> None:
    text = """
        max_parallel = -1
        pools = { browser = 1 }
        [defaults]
        run = "make"
        grace_seconds = "x"
        [tasks.a]
        needs = ["a", "c"]
        pools = { browser = 2 }
        colour = 3
        [tasks.b]
        title = 3
        """
    assert wrong(tmp_path, text) == [
        ("work.toml sets `max_parallel` to -1, expected an integer from 1 to 1,000,000", None),
        ("work.toml: [defaults] sets `grace_seconds` to 'x', expected a number from 0 to 1,000,000,000", None),
        (f"work.toml: [tasks.a]: unknown setting 'colour'; one of: {', '.join(KEYS)}", None),
        ("work.toml: [tasks.b] sets `title` to 3, expected a string", None),
        ("work.toml: 'a' takes 2 tokens of pool 'browser', which has 1", None),
        ("work.toml: 'a' needs 'c', which does not exist", None),
        ("the task 'a' depends on itself", None),
    ]


def test_many_errors_are_truncated_to_twenty(tmp_path: Path) -> None:
    text = "".join(f'[tasks.t{n}]\nrun = "x"\nneeds = ["u{n}"]\n' for n in range(1500))
    with cpu_time_below(10):
        messages = wrong(tmp_path, text)
        assert (len(messages), messages[-1]) == (21, ("and 1,480 more", None))


def test_shortest_cycle_of_each_component_is_reported(tmp_path: Path) -> None:
    needs = {"a": "b", "b": "c", "c": "a", "d": "e", "e": "d", "f": "d"}
    text = "".join(f'[tasks.{task}]\nrun = "x"\nneeds = ["{on}"]\n' for task, on in needs.items())
    text = text.replace('needs = ["c"]', 'needs = ["c", "a"]')
    assert wrong(tmp_path, text) == [
        ("tasks depend on one another in a cycle: a → b → a", None),
        ("tasks depend on one another in a cycle: d → e → d", None),
    ]


def test_self_dependency_within_a_component_is_named(tmp_path: Path) -> None:
    text = "[tasks.a]\nrun='x'\nneeds=['c']\n[tasks.b]\nrun='x'\nneeds=['a']\n[tasks.c]\nrun='x'\nneeds=['b', 'c']\n"
    assert wrong(tmp_path, text) == [("the task 'c' depends on itself", None)]
    group = "[tasks.g]\nrun='x'\neach.values=['1', '2']\nneeds=['h']\n[tasks.h]\nrun='x'\nneeds=['g', 'h']\n"
    assert wrong(tmp_path, group) == [("the task 'h' depends on itself", None)]
    assert wrong(tmp_path, group.replace("'h']\n[", "'g']\n[").replace(", 'h'", "")) == [
        ("the task 'g' depends on itself", None)
    ]


def test_group_that_exceeds_a_pool_is_a_single_error(tmp_path: Path) -> None:
    text = "[tasks.g]\nrun='x'\neach.values=['1', '2']\npools.p=2\n[pools]\np=1\n"
    assert wrong(tmp_path, text) == [("work.toml: 'g' takes 2 tokens of pool 'p', which has 1", None)]


def test_long_cycle_is_abbreviated(tmp_path: Path) -> None:
    text = "".join(f'[tasks.t{n}]\nrun = "x"\nneeds = ["t{(n + 1) % 3000}"]\n' for n in range(3000))
    ((message, _),) = wrong(tmp_path, text)
    assert message.startswith("tasks depend on one another in a cycle: t0 → t1 → t2 → ")
    assert message.endswith(" → t19 → … (3,000 in total) → t0")


def test_too_many_tasks_are_rejected() -> None:
    problems, place = DefinitionProblems(), TableLocation("work.toml", "tasks")
    check_task_ids(
        [DefinedTask(CommandId(f"t{n}"), place, (), (), {}, None, DEFAULT_POLICY) for n in range(50_001)], problems
    )
    with pytest.raises(InvalidWork, match=r"^50,001 tasks, more than 50,000$"):
        problems.raise_any()


def test_oversized_file_is_rejected_without_reading(tmp_path: Path) -> None:
    with (tmp_path / "work.toml").open("wb") as file:
        file.truncate((64 << 20) + 1)
    with pytest.raises(InvalidConfiguration, match=r"work.toml has 67,108,865 bytes, more than 67,108,864"):
        read_work_files([], here=tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("work.cfg", r"cannot read work.cfg as a task list: unsupported file extension '.cfg'"),
        ("Makefile", r"cannot read Makefile as a task list: no file extension"),
        ("no.toml", "cannot read no.toml: No such file or directory"),
        ("fifo.toml", "cannot read fifo.toml: it is not a regular file"),
        ("device.toml", "cannot read device.toml: it is not a regular file"),
        ("latin.toml", r"latin.toml is not valid UTF-8 \(line 2\)"),
        ("codebatch.toml", r"codebatch.toml has no table \[work\]"),
        ("pyproject.toml", r"pyproject.toml has no table \[tool.codebatch.work\]"),
    ],
)
def test_unreadable_file_is_named(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "tasks" / "x.toml").mkdir(parents=True)
    os.mkfifo(tmp_path / "fifo.toml")
    (tmp_path / "work.cfg").touch()
    (tmp_path / "Makefile").touch()
    (tmp_path / "device.toml").symlink_to("/dev/zero")
    (tmp_path / "latin.toml").write_bytes(b"# a\n# caf\xe9\n")
    (tmp_path / "codebatch.toml").write_text("jobs = 2\n[tasks.lint]\nx = 1\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[tool.codebatch]\njobs = 2\n", encoding="utf-8")
    with pytest.raises(InvalidConfiguration, match=message):
        read_work_files([Path(name)], here=tmp_path)


def test_duplicate_id_is_reported_with_both_locations(tmp_path: Path) -> None:
    for name in ("a.toml", "b.toml"):
        (tmp_path / name).write_text(A, encoding="utf-8")
    with pytest.raises(InvalidWork, match=r"^'a' is defined twice: in a.toml: \[tasks.a\] and in b.toml: \[tasks.a\]$"):
        read_work_files([Path("a.toml"), Path("b.toml")], here=tmp_path)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ("A=", None),
        ("HOME", None),
        ("=x", "--env sets the variable '', which is not a valid name"),
        ("NOT_SET", "--env sets the variable NOT_SET to '$NOT_SET': ${NOT_SET} is not set"),
    ],
)
def test_command_line_variables_are_checked(tmp_path: Path, env: str, expected: str | None) -> None:
    options = WorkOptions(env=(env,))
    if expected is None:
        assert read(tmp_path, A, options, HOME="/x").commands[0].env in ({"A": ""}, {"HOME": "$HOME"})
    else:
        assert [message for message, _ in wrong(tmp_path, A, options)] == [expected]


def test_invalid_selection_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no task 'biuld' in work.toml") as raised:
        read(tmp_path, A.replace("a]", "build]"), WorkOptions(tasks=("biuld",)))
    assert raised.value.hint == "did you mean 'build'?"
    with pytest.raises(InvalidInput, match="max_parallel must be from 1 to 1,000,000, not 0"):
        WorkOptions(max_parallel=0)
    with pytest.raises(InvalidInput, match="--only needs tasks or tags"):
        WorkOptions(only=True)


def test_each_error_is_printed_on_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    @click.command()
    def command() -> None:
        raise InvalidWork([("a\nhint: b", "c"), ("d", None)], 25)

    assert run_to_exit_status(command, []) == 2
    assert capsys.readouterr().err == ("error: 25 problems found\n  a\\nhint: b; c\n  d\n  and 23 more\n")
