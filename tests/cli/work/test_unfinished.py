"""`work run --unfinished`: what is left of a list, over all batches of it, with real processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.process import CommandLine, write
from tests.cli.work.test_work import line, make_list, status

__all__ = ["line"]

TASKS = {
    "a": 'run = "echo a >>ran"',
    "b": 'run = "test -e fix && echo b >>ran"\ntags = ["x"]',
    "c": 'run = "test ! -e broken && echo c >>ran"\nneeds = ["b"]',
}
RUN = ("work", "run", "-q")
LEFT = (*RUN, "--unfinished")


def fix(line: CommandLine) -> None:
    """Have `b` succeed."""
    write(line.directory / "fix", "")


def ran(line: CommandLine) -> str:
    """The tasks that ran since this was asked last, in order."""
    path = line.directory / "ran"
    found = path.read_text().replace("\n", "") if path.exists() else ""
    path.unlink(missing_ok=True)
    return found


def fails_and_is_mended(line: CommandLine) -> None:
    line(*RUN, status=3)
    fix(line)


def is_done(line: CommandLine) -> None:
    fix(line)
    line(*RUN)


def fails_twice(line: CommandLine) -> None:
    line(*RUN, status=3)
    line(*LEFT, status=3)
    line(*LEFT, status=3)
    fix(line)


def one_is_run_again(line: CommandLine) -> None:
    is_done(line)
    line(*RUN, "b")


def a_tag_is_run_again(line: CommandLine) -> None:
    is_done(line)
    line(*RUN, "--tag", "x")


def one_alone_is_run_again(line: CommandLine) -> None:
    is_done(line)
    line(*RUN, "--only", "c")


def one_fails_when_it_is_run_again(line: CommandLine) -> None:
    is_done(line)
    write(line.directory / "broken", "")
    line(*RUN, "c", status=3)
    (line.directory / "broken").unlink()


def only_one_was_ever_run(line: CommandLine) -> None:
    fix(line)
    line(*RUN, "--only", "b")


def the_rest_is_resumed(line: CommandLine) -> None:
    fails_and_is_mended(line)
    line("resume", "-q")


def all_is_run_again_and_fails(line: CommandLine) -> None:
    is_done(line)
    (line.directory / "fix").unlink()
    line(*RUN, status=3)
    fix(line)


@pytest.mark.parametrize(
    ("happened", "left"),
    [
        (fails_and_is_mended, "bc"),
        (is_done, ""),
        (fails_twice, "bc"),
        (one_is_run_again, ""),
        (a_tag_is_run_again, ""),
        (one_alone_is_run_again, ""),
        (one_fails_when_it_is_run_again, "c"),
        (only_one_was_ever_run, "ac"),
        (the_rest_is_resumed, ""),
        (all_is_run_again_and_fails, "bc"),
    ],
)
def test_what_is_left_is_run_and_then_nothing(
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


def test_without_a_batch_all_is_left(line: CommandLine) -> None:
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
def test_a_task_is_left_once_its_definition_changes(line: CommandLine, changed: dict[str, str], left: str) -> None:
    (line.directory / "sub").mkdir()
    make_list(line, TASKS)
    is_done(line)
    line(*RUN, "--only", "b")  # So what is left is remembered by a batch that does not have it.
    ran(line)
    make_list(line, {**TASKS, **changed})
    if left:
        notes = line("work", "run", "--unfinished").notes
        assert ("rerun, because the definitions have changed since the last run: " + left in notes) == (left != "d")
    assert ran(line) == left
    line(*LEFT)


def test_a_title_is_part_of_a_definition_that_uses_it(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "echo {title} >>ran"\ntitle = "One"'})
    line(*RUN)
    line(*LEFT)
    make_list(line, {"a": 'run = "echo {title} >>ran"\ntitle = "Two"'})
    line(*LEFT)
    assert ran(line) == "OneTwo"


def test_a_definition_that_is_changed_back_is_left_once_more(line: CommandLine) -> None:
    make_list(line, TASKS)
    is_done(line)
    make_list(line, {**TASKS, "a": 'run = "echo A >>ran"'})
    line(*LEFT)
    make_list(line, TASKS)
    ran(line)
    line(*LEFT)
    assert ran(line) == "a"


def test_what_is_done_is_remembered_when_its_batch_is_collected(line: CommandLine) -> None:
    make_list(line, TASKS)
    is_done(line)
    line(*RUN, "--only", "b")
    line("gc", "--keep", "1")
    assert len(line("batch", "list", "--json").json) == 1
    ran(line)
    line(*LEFT)
    make_list(line, {**TASKS, "a": 'run = "echo A >>ran"'})
    line(*LEFT)
    assert ran(line) == "A"


def test_a_list_is_the_same_from_wherever_it_is_named(line: CommandLine) -> None:
    (line.directory / "sub").mkdir()
    line("init", "-q")
    make_list(line, TASKS)
    is_done(line)
    line(*LEFT, "-f", "../work.toml", cwd=line.directory / "sub")
    (line.directory / "link.toml").symlink_to("work.toml")
    line(*LEFT, "-f", "link.toml")
    write(line.directory / "other.toml", (line.directory / "work.toml").read_text())
    ran(line)
    line(*LEFT, "-f", "other.toml")
    assert ran(line) == "abc"


def test_a_named_batch_chooses_of_what_it_has_and_the_rest_counts_as_it_stands(line: CommandLine) -> None:
    make_list(line, TASKS)
    is_done(line)
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


def test_what_waits_for_an_answer_is_found_over_all_batches(line: CommandLine) -> None:
    asks = "run = 'test -e told || { codebatch ask Which; exit 75; }; echo asks >>ran'"
    make_list(line, {"asks": asks, "a": TASKS["a"]})
    line(*RUN, status=3)
    line(*RUN, "a")
    write(line.directory / "told", "")
    ran(line)
    line(*RUN, "--blocked")
    assert ran(line) == "asks"
    assert "no task of work.toml waits for an answer" in line(*RUN, "--blocked", status=5).notes


def test_a_list_with_another_root_is_another_list(line: CommandLine) -> None:
    (line.directory / "sub").mkdir()
    make_list(line, {"a": TASKS["a"]})
    line(*RUN)
    make_list(line, {"a": TASKS["a"]}, 'root = "sub"')
    line(*LEFT)
    assert (line.directory / "sub" / "ran").exists()


def test_an_answer_to_a_question_of_ours_is_not_lost(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "test -e fix"\non_exhausted = "ask"'})
    line(*RUN, status=3)
    line("work", "answer", "a", "again", "--batch", "latest", "-q")
    assert "answers" not in line("work", "run", "--unfinished", status=3).notes


def test_an_answer_that_would_be_lost_is_noted(line: CommandLine) -> None:
    make_list(line, {"asks": "run = 'codebatch ask Which || exit 75'"})
    line(*RUN, status=3)
    batch = status(line)["batch_id"]
    line("work", "answer", "asks", "this", "--batch", batch, "-q")
    notes = line("work", "run", "--unfinished", status=3).notes
    told = f"answers in batch {batch} are not used here: asks; to use them: codebatch resume --batch {batch}"
    assert told in notes
    line("resume", "--batch", batch)
    assert Path(status(line)["tasks"][0]["log"]).parent.parent.name != batch
