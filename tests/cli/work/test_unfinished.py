"""`work run --unfinished`: the unfinished tasks of a list, over all its batches, with real processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.work.test_work import WAITS, count, kill_workers, line, make_list, start, status
from tests.support.command_line import CommandLine, write

__all__ = ["line"]

TASKS = {
    "a": 'run = "echo a >>ran"',
    "b": 'run = "test -e fix && echo b >>ran"\ntags = ["x"]',
    "c": 'run = "test ! -e broken && echo c >>ran"\nneeds = ["b"]',
}
RUN = ("work", "run", "-q")
LEFT = (*RUN, "--unfinished")


def fix(line: CommandLine) -> None:
    """Let `b` succeed."""
    write(line.directory / "fix", "")


def ran(line: CommandLine) -> str:
    """Return the tasks that ran since the last call, in order."""
    path = line.directory / "ran"
    names = path.read_text().replace("\n", "") if path.exists() else ""
    path.unlink(missing_ok=True)
    return names


def fail_then_fix(line: CommandLine) -> None:
    line(*RUN, status=3)
    fix(line)


def complete_all(line: CommandLine) -> None:
    fix(line)
    line(*RUN)


def fail_twice(line: CommandLine) -> None:
    line(*RUN, status=3)
    line(*LEFT, status=3)
    line(*LEFT, status=3)
    fix(line)


def rerun_one(line: CommandLine) -> None:
    complete_all(line)
    line(*RUN, "b")


def rerun_tag(line: CommandLine) -> None:
    complete_all(line)
    line(*RUN, "--tag", "x")


def rerun_only_one(line: CommandLine) -> None:
    complete_all(line)
    line(*RUN, "--only", "c")


def rerun_one_that_fails(line: CommandLine) -> None:
    complete_all(line)
    write(line.directory / "broken", "")
    line(*RUN, "c", status=3)
    (line.directory / "broken").unlink()


def run_only_one(line: CommandLine) -> None:
    fix(line)
    line(*RUN, "--only", "b")


def resume_the_rest(line: CommandLine) -> None:
    fail_then_fix(line)
    line("resume", "-q")


def rerun_all_and_fail(line: CommandLine) -> None:
    complete_all(line)
    (line.directory / "fix").unlink()
    line(*RUN, status=3)
    fix(line)


@pytest.mark.parametrize(
    ("happened", "left"),
    [
        (fail_then_fix, "bc"),
        (complete_all, ""),
        (fail_twice, "bc"),
        (rerun_one, ""),
        (rerun_tag, ""),
        (rerun_only_one, ""),
        (rerun_one_that_fails, "c"),
        (run_only_one, "ac"),
        (resume_the_rest, ""),
        (rerun_all_and_fail, "bc"),
    ],
)
def test_unfinished_runs_each_unfinished_task_once(
    line: CommandLine, happened: Callable[[CommandLine], None], left: str
) -> None:
    make_list(line, TASKS)
    happened(line)
    ran(line)
    if left:
        line(*LEFT)
    assert ran(line) == left
    done = line(*LEFT, "--json")
    assert (done.notes, done.json["batch_id"]) == (
        "all selected tasks of work.toml are done\n",
        status(line)["batch_id"],
    )
    assert ran(line) == ""


def test_unfinished_without_a_batch_runs_all_tasks(line: CommandLine) -> None:
    make_list(line, TASKS)
    fix(line)
    assert "no batch of work.toml yet: no task is done" in line("work", "run", "--unfinished").notes
    assert ran(line) == "abc"
    line(*LEFT)


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        ({"a": 'run = "echo a >>ran; true"'}, "a"),
        ({"a": 'run = "echo a >>ran"\nenv = { X = "1" }'}, "a"),
        ({"a": 'run = "echo a >>../ran"\ncwd = "sub"'}, "a"),
        ({"a": 'run = "echo a >>ran"\ncheck = "true"'}, "a"),
        ({"a": 'run = "echo a >>ran"\ntext = "else"'}, "a"),
        ({"a": 'run = "echo a >>ran"\nneeds = ["c"]'}, "a"),
        ({"c": 'run = "test ! -e broken && echo c >>ran"\nneeds = ["b", "a"]'}, "c"),
        ({"c": 'run = "test ! -e broken && echo c >>ran"'}, "c"),
        ({"d": 'run = "echo d >>ran"\nneeds = ["c"]'}, "d"),
        ({"a": 'run = "echo a >>ran"\ntimeout_seconds = 9\ngrace_seconds = 1\nmemory_mb_max = 99'}, ""),
        ({"a": 'run = "echo a >>ran"\ntitle = "A"\npriority = 3\nretries = 2\ntags = ["y"]\nafter = ["b"]'}, ""),
    ],
)
def test_task_with_a_changed_definition_is_unfinished(line: CommandLine, changed: dict[str, str], left: str) -> None:
    (line.directory / "sub").mkdir()
    make_list(line, TASKS)
    complete_all(line)
    line(*RUN, "--only", "b")  # The last batch does not have the unfinished tasks.
    ran(line)
    make_list(line, {**TASKS, **changed})
    if left:
        notes = line("work", "run", "--unfinished").notes
        assert ("rerun, because the definitions have changed since the last run: " + left in notes) == (left != "d")
    assert ran(line) == left
    line(*LEFT)


def test_title_used_by_a_command_is_part_of_the_definition(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "echo {title} >>ran"\ntitle = "One"'})
    line(*RUN)
    line(*LEFT)
    make_list(line, {"a": 'run = "echo {title} >>ran"\ntitle = "Two"'})
    line(*LEFT)
    assert ran(line) == "OneTwo"


def test_reverted_definition_is_unfinished_again(line: CommandLine) -> None:
    make_list(line, TASKS)
    complete_all(line)
    make_list(line, {**TASKS, "a": 'run = "echo A >>ran"'})
    line(*LEFT)
    make_list(line, TASKS)
    ran(line)
    line(*LEFT)
    assert ran(line) == "a"


def test_done_tasks_remain_known_after_their_batch_was_collected(line: CommandLine) -> None:
    make_list(line, TASKS)
    complete_all(line)
    line(*RUN, "--only", "b")
    line("gc", "--keep", "1")
    assert len(line("batch", "list", "--json").json) == 1
    ran(line)
    line(*LEFT)
    make_list(line, {**TASKS, "a": 'run = "echo A >>ran"'})
    line(*LEFT)
    assert ran(line) == "A"


def test_task_list_is_identified_by_its_real_path(line: CommandLine) -> None:
    (line.directory / "sub").mkdir()
    line("init", "-q")
    make_list(line, TASKS)
    complete_all(line)
    line(*LEFT, "-f", "../work.toml", cwd=line.directory / "sub")
    (line.directory / "link.toml").symlink_to("work.toml")
    line(*LEFT, "-f", "link.toml")
    write(line.directory / "other.toml", (line.directory / "work.toml").read_text())
    ran(line)
    line(*LEFT, "-f", "other.toml")
    assert ran(line) == "abc"


def test_unfinished_of_a_batch_selects_only_tasks_in_this_batch(line: CommandLine) -> None:
    make_list(line, TASKS)
    complete_all(line)
    first = status(line)["batch_id"]
    make_list(line, {**TASKS, "new": 'run = "echo new >>ran"'})
    write(line.directory / "broken", "")
    line(*RUN, "--only", "c", status=3)
    (line.directory / "broken").unlink()
    second = status(line)["batch_id"]
    ran(line)
    assert "all selected tasks of work.toml are done" in line(*LEFT, "--of", first).notes
    notes = line("work", "run", "--unfinished", "--of", second).notes
    assert ran(line) == "c"
    assert "dependencies not run, because they are done: b" in notes


def test_blocked_selects_waiting_tasks_of_all_batches(line: CommandLine) -> None:
    asks = "run = 'test -e told || { codebatch ask Which; exit 75; }; echo asks >>ran'"
    make_list(line, {"asks": asks, "a": TASKS["a"]})
    line(*RUN, status=3)
    line(*RUN, "a")
    write(line.directory / "told", "")
    ran(line)
    line(*RUN, "--blocked")
    assert ran(line) == "asks"
    assert "no task of work.toml waits for an answer" in line(*RUN, "--blocked", status=5).notes


def test_task_list_with_another_root_is_a_different_list(line: CommandLine) -> None:
    (line.directory / "sub").mkdir()
    make_list(line, {"a": TASKS["a"]})
    line(*RUN)
    make_list(line, {"a": TASKS["a"]}, 'root = "sub"')
    line(*LEFT)
    assert (line.directory / "sub" / "ran").exists()


def test_answer_to_an_exhausted_retry_question_is_not_noted_as_unused(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "test -e fix"\non_exhausted = "ask"'})
    line(*RUN, status=3)
    line("work", "answer", "a", "again", "--batch", "latest", "-q")
    assert "answers" not in line("work", "run", "--unfinished", status=3).notes


def test_answer_that_is_not_used_is_noted(line: CommandLine) -> None:
    make_list(line, {"asks": "run = 'codebatch ask Which || exit 75'"})
    line(*RUN, status=3)
    batch = status(line)["batch_id"]
    line("work", "answer", "asks", "this", "--batch", batch, "-q")
    notes = line("work", "run", "--unfinished", status=3).notes
    note = f"answers in batch {batch} are not used here: asks; to use them: codebatch resume --batch {batch}"
    assert note in notes
    line("resume", "--batch", batch)
    assert Path(status(line)["tasks"][0]["log"]).parent.parent.name != batch


def test_answer_to_an_earlier_question_is_not_an_unused_answer(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "codebatch ask first && codebatch ask second || exit 75"'})
    line("work", "run", status=3)
    line("work", "answer", "a", "yes")
    line("resume", status=3)
    line("work", "skip", "a", "--batch", "latest")
    assert "are not used here" not in line("work", "run", "--unfinished", status=3).notes


def test_task_that_may_not_start_twice_stays_failed_until_a_person_names_it(line: CommandLine) -> None:
    """All processes are killed. Then resume, as from cron, and --unfinished never run the task again."""
    tasks = {"once": f'if_interrupted = "fail"\nrun = "{WAITS.format(id="once")}"', "other": 'run = "true"'}
    make_list(line, tasks)
    process = start(line, began=("once",))
    kill_workers(line)
    process.kill()
    process.communicate()
    write(line.directory / "go", "")
    batch = status(line)["batch_id"]
    notes = line(*LEFT).notes
    assert "left out, because they were interrupted and may not start again: once; to run such a task, name it" in notes
    for _ in range(3):
        line("resume", "--batch", batch, status=3)
    notes = line("resume", "--batch", batch, status=3).notes
    assert f"interrupted, so not rerun: once; to rerun such a task: codebatch work retry --batch {batch} TASK" in notes
    assert count(line, "once.began") == 1
    line("work", "retry", "--batch", batch, "once")
    assert count(line, "once.began") == 2


def test_unfinished_leaves_out_what_another_batch_is_running_or_will_run(line: CommandLine) -> None:
    wait = WAITS.format(id="a")
    tasks = {"a": f'run = "{wait}"', "b": 'run = "echo b >>ran"\nneeds = ["a"]'}
    make_list(line, tasks)
    process = start(line, began=("a",))
    running = status(line)["batch_id"]
    more = {**tasks, "c": 'run = "echo c >>ran"', "d": 'run = "echo d >>ran"\nneeds = ["b"]'}
    make_list(line, more)
    refused = line("work", "run", status=3).notes
    assert "--parallel-batches, which runs its tasks a second time unless you add --unfinished" in refused
    notes = line("work", "run", "--parallel-batches", "--unfinished").notes
    assert f"left out, because batch {running} is running them or will: a, b" in notes
    assert status(line)["left_out"] == [
        {"task": "a", "reason": "active", "batch": running},
        {"task": "b", "reason": "active", "batch": running},
        {"task": "d", "reason": "needs"},
    ]
    assert "has changed since" not in line("resume", "-q").notes
    assert "left out, because they depend on these: d" in notes
    assert ran(line) == "c"
    ended = line("work", "run", "--parallel-batches", "--unfinished", "--json", status=3)
    assert ended.error["code"] == "batch_running"
    write(line.directory / "go", "")
    line.finish(process)
    assert count(line, "a.began") == 1
    line(*LEFT)
    assert ran(line) == "bd"


def test_every_kind_of_run_ends_with_0_if_nothing_is_left(line: CommandLine) -> None:
    make_list(line, TASKS)
    complete_all(line)
    for option in ([], ["--detach"], ["--dry-run"]):
        ended = line("work", "run", "--unfinished", *option)
        assert "all selected tasks of work.toml are done" in ended.notes
        assert line("work", "run", "--unfinished", *option, "--json").json["status"] == "COMPLETED"
