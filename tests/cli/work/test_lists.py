"""Task lists on the command line, with real processes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import SCRIPT, CommandLine, write


@pytest.fixture
def line(tmp_path: Path) -> CommandLine:
    """The command line in a separate directory `project`."""
    (tmp_path / "project").mkdir()
    return CommandLine(tmp_path / "project")


def test_commands_receive_file_names_and_values_unchanged(line: CommandLine) -> None:
    hostile = "a  '\"$(touch pwned)`;.txt"
    for name in ("-x.txt", "b c.txt", hostile):
        write(line.directory / "in" / name, name)
    write(
        line.directory / "work.yaml",
        """
        defaults: {env: {WHO: "<{value}>"}}
        tasks:
          one: {run: "printf '<%s>' {file}", each: {files: ["*.txt"]}, env: {WHO: x}}
          all: {run: "cd in; printf '<%s>' {files}", cwd: in, each: {files: ["*.txt"], chunk: all}, env: {WHO: x}}
          list: {run: [printf, "<%s>", "{files}", "{{x}}"], each: {files: ["*.txt"], chunk: all}, env: {WHO: x}}
          value: {run: 'printf %s "$WHO"{value}', each: {values: ["a b", "$(touch pwned)"]}}
        """.replace("cd in; ", ""),
    )
    assert line("work", "run", "-f", "work.yaml").text.startswith("COMPLETED: 7 of 7 done")
    printed = {task["title"]: Path(task["log"]).read_text() for task in line("status", "--json").json["tasks"]}
    assert printed[f"in/{hostile}"] == f"<in/{hostile}>"
    assert printed["a b"] == "<a b>a b"
    assert printed["$(touch pwned)"] == "<$(touch pwned)>$(touch pwned)"
    logs = [Path(task["log"]).read_text() for task in line("status", "--json").json["tasks"][3:5]]
    assert logs == [f"<./-x.txt><{hostile}><b c.txt>", f"<in/-x.txt><in/{hostile}><in/b c.txt><{{x}}>"]
    assert not list(line.directory.rglob("pwned"))


def test_unfinished_runs_only_unfinished_tasks_of_the_previous_batch(line: CommandLine) -> None:
    for name, front in {"a": "", "b": "needs: a\nif_interrupted: ask", "c": "needs: b", "d": "tags: [x]"}.items():
        write(line.directory / "tasks" / f"{name}.md", f"---\n{front}\n---\n# Title of {name}\n")
    words = ("work", "run", "-f", "tasks/", "--command", "echo {id} >>ran; test {id} != b || test -e fixed")
    assert line(*words, status=3).text.startswith("PARTIAL: 2 of 4 done")
    write(line.directory / "other.md", "## x\n")
    other = line("work", "run", "-f", "other.md", "--unfinished", "--command", "true")
    assert "no batch of other.md yet: no task is done" in other.notes
    assert "no task of tasks waits for an answer" in line(*words, "--blocked", status=5).notes
    write(line.directory / "fixed", "")
    again = line(*words, "--unfinished")
    assert "dependencies not run, because they are done: a" in again.notes
    assert again.text.startswith("COMPLETED: 2 of 2 done")
    assert (line.directory / "ran").read_text().split() == ["a", "b", "d", "b", "c"]
    first = line("batch", "list", "--json").json[0]["batch_id"]
    assert line(*words, "--unfinished", "--of", first).text.startswith("COMPLETED: 2 of 2 done")
    assert line(*words, "--tag", "x", "-q").text.startswith("COMPLETED: 1 of 1 done")
    assert "add --unfinished or --blocked" in line(*words, "--of", first, status=2).notes


def test_blocked_and_only_select_single_tasks(line: CommandLine) -> None:
    asks = "test -e told || { codebatch ask 'Which?'; exit 75; }"
    for name, front in {"a": "", "b": "needs: a", "c": "needs: b"}.items():
        write(line.directory / "tasks" / f"{name}.md", f"---\n{front}\n---\n")
    words = ("work", "run", "-f", "tasks/", "--command", f"echo {{id}} >>ran; test {{id}} != b || {asks}")
    line(*words, status=3)
    write(line.directory / "told", "")
    blocked = line(*words, "--blocked")
    assert "dependencies not run, because they are done: a" in blocked.notes
    assert blocked.text.startswith("COMPLETED: 1 of 1 done")
    assert line(*words, "c", "--only").text.startswith("COMPLETED: 1 of 1 done")
    assert (line.directory / "ran").read_text().split() == ["a", "b", "b", "c"]


def test_task_list_is_read_from_standard_input(line: CommandLine) -> None:
    done = subprocess.run(
        [SCRIPT, "work", "run", "-f", "-", "--command", "echo {line}", "--each-line"],
        input=b"x y\n\nz\n",
        cwd=line.directory,
        env=line.environment,
        check=True,
        capture_output=True,
    )
    assert done.stdout.startswith(b"COMPLETED: 2 of 2 done")
    assert line("work", "log", "line/z").stdout == b"z\n"


def test_file_given_as_a_task_gets_a_hint(line: CommandLine) -> None:
    write(line.directory / "my tasks" / "a.md", "---\nrun: 'true'\n---\n")
    for words in (("work", "run"), ("work", "analyze")):
        assert "hint: give files and directories with -f: -f 'my tasks'\n" in line(*words, "my tasks", status=5).notes
    write(line.directory / "work.toml", '[tasks.a]\nrun = "true"')
    notes = line("work", "run", "my tasks/a.md", status=2).notes
    assert notes.startswith("error: no task 'my tasks/a.md' in work.toml\nhint: give files and directories")


def test_problem_shared_by_all_sections_is_reported_once(line: CommandLine) -> None:
    write(line.directory / "plan.md", "---\nretries: many\n---\n## a\n## b\n## c\n")
    notes = line("work", "run", "-f", "plan.md", "--command", "true", status=2).notes
    assert notes == "error: plan.md:2 sets `retries` to 'many', expected an integer from 0 to 100\n"


def test_problems_of_many_files_are_reported_together(line: CommandLine) -> None:
    for n in range(30):
        write(line.directory / "tasks" / f"{n:02}.md", "---\nneeds: [nobody]\npriority: soon\n---\n")
    notes = line("work", "run", "-f", "tasks", "--command", "true", status=2).notes
    assert "error: 60 problems found\n  tasks/00.md:3 sets `priority` to 'soon'" in notes
    assert notes.count("\n") == 22
    assert "  and 40 more\n" in notes
    assert not (line.directory / ".codebatch").exists()


def test_warnings_about_a_list_are_printed_with_quiet(line: CommandLine) -> None:
    write(
        line.directory / "work.toml", 'tasks.none = { run = "true", each.files = ["*.none"] }\ntasks.a.run = "false"\n'
    )
    warning = "work.toml: `each` of 'none' matches nothing, so the task is treated as done\n"
    for command, status in (("work run --dry-run", 0), ("work analyze", 0), ("work run", 3), ("resume --reload", 3)):
        assert line(*command.split(), "-q", status=status).notes.count(warning) == 1, command
