"""An older batch of a list with unfinished tasks is named by the commands that mean a later, smaller batch."""

from __future__ import annotations

from tests.cli.work.test_unfinished import RUN, TASKS, fix
from tests.cli.work.test_work import line, make_list, status
from tests.support.command_line import CommandLine, check_schema, write

__all__ = ["line"]


def hide(line: CommandLine) -> str:
    """Run all tasks, of which two are not done, then one that succeeds. Return the ID of the first batch."""
    make_list(line, TASKS)
    line(*RUN, status=3)
    older = status(line)["batch_id"]
    line(*RUN, "a")
    assert isinstance(older, str)
    return older


def test_older_batch_is_named_until_its_tasks_are_done(line: CommandLine) -> None:
    older = hide(line)
    text = (
        f"an older batch of this list is partial: {older} (2 of 3 tasks not done), "
        "continue: codebatch work run --unfinished\n"
    )
    row = {"batch_id": older, "status": "PARTIAL", "tasks": 3, "undone": 2}
    for words in (("status",), ("resume", "-q")):
        assert text in line(*words).notes
        answer = line(*words, "--json")
        assert (answer.json["older_batch"], text in answer.notes) == (row, True)
        check_schema(answer.json)
    fix(line)
    line(*RUN, "b")
    assert "(1 of 3 tasks not done)" in line("status").notes
    line(*RUN, "--unfinished")
    line(*RUN, "a")
    assert "older batch" not in line("status").notes
    assert status(line)["older_batch"] is None


def test_resumed_older_batch_is_not_named(line: CommandLine) -> None:
    older = hide(line)
    fix(line)
    line("resume", "-q", "--batch", older)
    assert status(line)["older_batch"] is None


def test_tasks_that_the_list_lost_are_not_missed(line: CommandLine) -> None:
    older = hide(line)
    make_list(line, {"a": TASKS["a"], "b": TASKS["b"]})
    assert status(line)["older_batch"]["undone"] == 1
    make_list(line, {"a": TASKS["a"]})
    assert status(line)["older_batch"] is None
    # A list that cannot be read hides nothing.
    write(line.directory / "work.toml", "[")
    assert status(line)["older_batch"]["batch_id"] == older


def test_older_batch_of_another_list_is_not_named(line: CommandLine) -> None:
    make_list(line, TASKS)
    line(*RUN, status=3)
    write(line.directory / "other.toml", '[tasks.x]\nrun = "true"\n')
    line(*RUN, "--file", "other.toml")
    assert status(line)["older_batch"] is None
    line(*RUN, "a")
    assert status(line)["older_batch"]["undone"] == 2
