"""`resume` of a work batch with a changed task list: changes are reported, and `--reload` applies them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from codebatch import work
from tests.cli.work.test_unfinished import ran
from tests.cli.work.test_work import kill_workers, line, make_list, start, states, status
from tests.support.command_line import SCRIPT, CommandLine, wait_until, write

__all__ = ["line"]

RUN = ("work", "run", "-q")


def failing_task(word: str) -> str:
    """Return a task that writes a word and fails until a file `fix` exists."""
    return f'run = "echo {word} >>ran; test -e fix"'


def in_a_file(line: CommandLine, word: str) -> None:
    make_list(line, {"a": failing_task(word), "b": 'run = "true"'})


def in_an_included_file(line: CommandLine, word: str) -> None:
    write(line.directory / "work.toml", 'include = ["more.toml"]\n[tasks.b]\nrun = "true"\n')
    write(line.directory / "more.toml", f"[tasks.a]\n{failing_task(word)}\n")


def in_a_prompt(line: CommandLine, word: str) -> None:
    write(line.directory / "tasks" / "a.md", f"---\nrun: cat >>ran; test -e fix\nstdin: text\n---\n{word}\n")
    write(line.directory / "work.toml", 'include = ["tasks"]\n[tasks.b]\nrun = "true"\n')


def in_the_configuration(line: CommandLine, word: str) -> None:
    text = f"[work.tasks.a]\n{failing_task(word)}\n[work.tasks.b]\nrun = 'true'\n"
    write(line.directory / "codebatch.toml", text)


def in_the_defaults(line: CommandLine, word: str) -> None:
    defaults = f'[defaults]\nenv = {{ WORD = "{word}" }}\n'
    write(line.directory / "work.toml", f"{defaults}[tasks.a]\nrun = 'echo $WORD >>ran; test -e fix'\n")


Written = Callable[[CommandLine, str], None]
KINDS: tuple[Written, ...] = (in_a_file, in_an_included_file, in_a_prompt, in_the_configuration, in_the_defaults)


@pytest.mark.parametrize("written", KINDS)
def test_resume_reports_a_changed_task_and_runs_its_old_definition(line: CommandLine, written: Written) -> None:
    written(line, "old")
    line(*RUN, status=3)
    assert line("resume", "-q", status=3).notes.splitlines()[0].startswith("error: ")
    written(line, "new")
    write(line.directory / "fix", "")
    notes = line("resume", "-q").notes
    batch = status(line)["batch_id"]
    assert f" has changed since batch {batch} was made: changed a" in notes
    assert f"to use the new definitions: codebatch resume --reload --batch {batch}" in notes
    assert ran(line) == "oldoldold"


@pytest.mark.parametrize("written", KINDS)
def test_reload_runs_the_new_task_in_the_same_batch(line: CommandLine, written: Written) -> None:
    written(line, "old")
    line(*RUN, status=3)
    batch = status(line)["batch_id"]
    written(line, "new")
    write(line.directory / "fix", "")
    assert "reloaded from " in line("resume", "-q", "--reload").notes
    assert ran(line) == "oldnew"
    assert (status(line)["batch_id"], status(line)["status"]) == (batch, "COMPLETED")
    assert line("resume", "-q").notes == ""
    line(*RUN, "--unfinished")


def test_resume_reports_added_removed_and_changed_tasks_and_settings(line: CommandLine) -> None:
    make_list(line, {"a": failing_task("a"), "b": 'run = "true"', "gone": 'run = "false"', "was": 'run = "true"'})
    line(*RUN, status=3)
    make_list(
        line, {"a": failing_task("a"), "b": 'run = "true; true"', "new": 'run = "true"'}, 'on_failure = "continue"'
    )
    answer = line("resume", "-q", "--json", status=3, has_answer=True)
    assert answer.json["list_changes"] == {
        "changed": [],
        "removed": ["gone", "was"],
        "done_and_changed": ["b"],
        "added": ["new"],
        "settings": ["on_failure"],
        "problem": "",
    }
    changes = ": removed gone, was; changed after completion: b; added new; settings on_failure\n"
    assert changes in line("resume", "-q", status=3).notes


@pytest.mark.parametrize("key", ["retries = 1", "timeout_seconds = 9", 'after = ["b"]'])
def test_any_changed_key_of_an_unfinished_task_is_a_change(line: CommandLine, key: str) -> None:
    make_list(line, {"b": 'run = "true"', "a": failing_task("a")})
    line(*RUN, status=3)
    make_list(line, {"b": 'run = "true"', "a": f"{failing_task('a')}\n{key}"})
    assert " was made: changed a\n" in line("resume", "-q", status=3).notes
    line("resume", "-q", "--reload", status=3)
    assert ran(line) == ("aaaa" if "retries" in key else "aaa")
    assert "has changed" not in line("resume", "-q", status=3).notes


def test_task_done_in_an_earlier_batch_is_not_reported_as_added(line: CommandLine) -> None:
    make_list(line, {"a": failing_task("a"), "b": 'run = "true"'})
    line(*RUN, status=3)
    line(*RUN, "--unfinished", status=3)
    assert "has changed" not in line("resume", "-q", status=3).notes


def test_resume_of_a_done_batch_reports_later_changes(line: CommandLine) -> None:
    make_list(line, {"b": 'run = "true"'})
    line(*RUN)
    make_list(line, {"b": 'run = "true; true"', "new": 'run = "true"'})
    for words in ("resume", "-q"), ("resume", "-q", "--reload"):
        notes = line(*words).notes
        assert "changed after completion: b; added new" in notes
        assert "to use the new definitions: codebatch work run" in notes or "to use these changes: codebatch" in notes
    assert line(*RUN, "--unfinished").text.startswith("COMPLETED: 2 of 2")


def test_unreadable_task_list_is_reported(line: CommandLine) -> None:
    make_list(line, {"a": failing_task("a")})
    line(*RUN, status=3)
    for text in (None, "[tasks.a\n"):
        (line.directory / "work.toml").unlink()
        if text is not None:
            write(line.directory / "work.toml", text)
        notes = line("resume", "-q", status=3).notes
        assert "with task list work.toml, so the batch keeps its definitions: " in notes
        reloaded = line("resume", "-q", "--reload", status=2).notes
        assert "work.toml" in reloaded
        write(line.directory / "work.toml", "")
    assert ran(line) == "aaa"


def test_unchanged_definitions_are_not_reported(line: CommandLine) -> None:
    write(line.directory / "script", "exit 1\n")
    write(line.directory / "list.txt", "x\n")
    words = ("-f", "list.txt", "--each-line", "--command", "sh script {line}", "--retry", "0", "--env", "X=1")
    line(*RUN, *words, status=3)
    write(line.directory / "script", "exit 0\n")
    assert line("resume", "-q").notes == ""


def test_reload_follows_new_needs_and_counts_removed_tasks_as_done(line: CommandLine) -> None:
    make_list(
        line, {"a": failing_task("a"), "gone": failing_task("gone"), "c": 'run = "echo c >>ran"\nneeds = ["a", "gone"]'}
    )
    line(*RUN, status=3)
    make_list(line, {"c": 'run = "echo c >>ran"', "a": 'run = "echo a >>ran"\nneeds = ["c"]'})
    ran(line)
    notes = line("resume", "-q", "--reload").notes
    assert "reloaded from work.toml: a, c" in notes
    assert "tasks marked as done, because work.toml no longer contains them: gone" in notes
    assert ran(line) == "ca"
    assert states(line) == {"a": "DONE", "gone": "DONE", "c": "DONE"}
    line(*RUN, "--unfinished")


def test_reload_does_not_rerun_done_tasks_without_force(line: CommandLine) -> None:
    make_list(line, {"a": failing_task("a"), "b": 'run = "echo b >>ran"', "gone": 'run = "echo gone >>ran"'})
    line(*RUN, status=3)
    make_list(line, {"a": failing_task("A"), "b": 'run = "echo B >>ran"'})
    ran(line)
    notes = line("resume", "-q", "--reload", status=3).notes
    assert (
        "changes not reloaded: changed after completion: b; to use these changes: codebatch work run --unfinished"
        in notes
    )
    assert ran(line) == "A"
    write(line.directory / "fix", "")
    line("resume", "-q", "--reload", "--force")
    assert ran(line) == "AB"


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            {"a": 'run = "true"\nneeds = ["new"]', "new": 'run = "true"'},
            "the task a now needs new, which is not in batch ",
        ),
        ({"a": 'run = "true"\nneeds = ["c"]', "c": 'run = "true"\nneeds = ["a"]'}, "in a cycle: a → c → a"),
        ({"a": 'run = "true"\npools = { p = 2 }'}, "the task a now needs 2 tokens of pool p, which has 1 in batch "),
    ],
)
def test_reload_that_does_not_fit_the_batch_is_rejected(
    line: CommandLine, changed: dict[str, str], problem: str
) -> None:
    tasks = {"a": failing_task("a"), "b": 'run = "true"', "c": 'run = "echo c >>ran"\nneeds = ["a"]'}
    make_list(line, tasks, "pools = { p = 1 }")
    line(*RUN, status=3)
    make_list(line, {**tasks, **changed}, "pools = { p = 2 }")
    assert problem in line("resume", "-q", "--reload", status=2).notes
    make_list(line, tasks, "pools = { p = 1 }")
    assert "changed" not in line("resume", "-q", status=3).notes
    assert ran(line) == "aa"


def test_reloaded_task_retains_the_answer_to_its_question(line: CommandLine) -> None:
    asks = """run = 'codebatch ask Which || exit 75'\nstdin = "text"\ntext = "{}"\n"""
    make_list(line, {"asks": asks.format("old")})
    line(*RUN, status=3)
    line("work", "answer", "asks", "this", "--batch", "latest", "-q")
    new = """run = 'cat >>ran'\nstdin = "text"\ntext = "new"\n"""
    make_list(line, {"asks": new})
    line("resume", "-q", "--reload")
    assert ran(line) == "new## AnswersQuestion: WhichAnswer: this"


def test_retry_and_answer_report_a_changed_task(line: CommandLine) -> None:
    make_list(line, {"a": failing_task("old"), "asks": "run = 'codebatch ask Which || exit 75'"})
    line(*RUN, status=3)
    make_list(line, {"a": failing_task("new"), "asks": "run = 'codebatch ask Which || exit 75'"})
    change = " was made: changed a\n"
    assert change in line("work", "retry", "a", "-q", status=3).notes
    assert ran(line) == "oldold"
    assert change in line("work", "answer", "asks", "x", "--resume", "--batch", "latest", "-q", status=3).notes
    line("work", "retry", "a", "-q", "--reload", status=3)
    assert ran(line) == "new"
    assert "cannot be used with --no-run" in line("work", "retry", "a", "--reload", "--no-run", status=2).notes


def test_retry_in_a_running_batch_reports_a_changed_task(line: CommandLine) -> None:
    make_list(line, {"a": failing_task("old"), "one": ""}, 'on_failure = "continue"\nmax_parallel = 2')
    process = start(line, began=("one",))
    wait_until(lambda: states(line)["a"] == "FAILED", "a fails")
    make_list(line, {"a": failing_task("new"), "one": ""}, 'on_failure = "continue"\nmax_parallel = 2')
    assert "is already running (process" in line("work", "retry", "a", "--reload", status=3).notes
    assert states(line)["a"] == "FAILED"
    notes = line("work", "retry", "a", "-q").notes
    assert " was made: changed a\n" in notes
    assert "to use the new definitions once the batch has ended: codebatch resume --reload" in notes
    wait_until(lambda: states(line)["a"] == "FAILED", "a fails again")
    write(line.directory / "go", "")
    line.finish(process, status=3)
    assert ran(line) == "oldold"


def test_reload_does_not_affect_a_task_that_is_still_running(line: CommandLine) -> None:
    make_list(line, {"one": "", "two": failing_task("old")}, "max_parallel = 2")
    process = start(line, began=("one",))
    wait_until(lambda: states(line)["two"] == "FAILED", "two fails")
    process.kill()
    process.communicate()
    make_list(line, {"one": 'run = "echo one >>ran"', "two": failing_task("new")}, "max_parallel = 2")
    write(line.directory / "fix", "")
    resumed = line.start("resume", "-q", "--reload")
    wait_until(lambda: states(line)["two"] == "DONE" or resumed.poll() is not None, "two is done")
    write(line.directory / "go", "")
    assert "tasks not reloaded, because they are still running: one" in line.finish(resumed).notes
    assert ran(line) == "oldnew"
    line(*RUN, "--unfinished")
    assert ran(line) == "one"


def test_reload_restarts_an_interrupted_task_with_its_new_definition(line: CommandLine) -> None:
    make_list(line, {"one": ""})
    process = start(line, began=("one",))
    kill_workers(line)
    process.communicate()
    make_list(line, {"one": 'run = "echo new >>ran"'})
    line("resume", "-q", "--reload")
    assert ran(line) == "new"
    line(*RUN, "--unfinished")


def test_task_list_from_standard_input_cannot_be_reloaded(line: CommandLine) -> None:
    subprocess.run(
        [SCRIPT, *RUN, "-f", "-"],
        cwd=line.directory,
        input=b'{"id": "a", "run": "false"}',
        env=line.environment,
        check=False,
    )
    assert "changed" not in line("resume", "-q", status=3).notes
    assert "came from standard input and cannot be read again" in line("resume", "-q", "--reload", status=2).notes


def test_python_resume_returns_changes_and_can_reload(tmp_path: Path) -> None:
    path, store = tmp_path / "work.toml", tmp_path / "store"
    path.write_text('[tasks.a]\nrun = "false"\n')
    made = work.start(path, store=store)
    assert work.resume(made.batch.id, store=store).changes.is_nothing
    path.write_text('[tasks.a]\nrun = "true"\n[tasks.b]\nrun = "true"\n')
    resumed = work.resume(made.batch.id, store=store)
    assert (resumed.changes.changed, resumed.changes.added, resumed.standing.counts) == (("a",), ("b",), {"FAILED": 1})
    assert work.resume(made.batch.id, store=store, reload=True).standing.counts == {"DONE": 1}
    assert work.start(path, store=store, unfinished=True).standing.work.order == ("b",)


def test_list_that_cannot_be_compared_is_reported_only_if_the_batch_is_resumed(line: CommandLine) -> None:
    make_list(line, {"b": 'run = "true"', "a": ""})
    process = start(line, began=("a",))
    write(line.directory / "work.toml", "[")
    assert "cannot compare" not in line("work", "retry", "b").notes
    write(line.directory / "go", "")
    process.communicate()
    assert "cannot compare batch" in line("resume").notes
