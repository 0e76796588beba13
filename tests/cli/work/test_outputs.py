"""Outputs of tasks and unchanged tasks on the command line, with real processes."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.work.test_work import count, kill_workers, line, make_list, states, status
from tests.support.command_line import CommandLine, wait_until, write
from tests.support.git_repositories import git

__all__ = ["line"]

PARALLEL = 'strategy = "parallel"'


def task_of(line: CommandLine, name: str) -> dict[str, object]:
    """Return the row of a task in the status of the newest batch."""
    tasks: dict[str, dict[str, object]] = {task["id"]: task for task in status(line)["tasks"]}
    return tasks[name]


def is_skipped(line: CommandLine, name: str) -> bool:
    return task_of(line, name)["reason"] == "unchanged"


def test_outputs_reach_direct_and_indirect_users_as_copies(line: CommandLine) -> None:
    make_list(
        line,
        {
            "build": (
                'run = "mkdir -p dist/bin; printf 1 >dist/bin/app; chmod +x dist/bin/app; ln -s bin/app dist/a; '
                'echo no >dist/x.log"\noutputs = ["dist/", "!*.log"]'
            ),
            "spoil": (
                'needs = ["build"]\nrun = "cd {tasks.build.outputs}; find . | sort; chmod 0 dist/bin; rm -rf dist"'
            ),
            "check": (
                'needs = ["spoil"]\nrun = ["sh", "-c", "test -x $1 && cat $1", "-", "{tasks.build.outputs}/dist/a"]'
            ),
            "env": (
                'needs = ["spoil"]\nrun = "cat $D/dist/a"\nenv = { D = "{tasks.build.outputs}" }\n'
                'check = "test -d {tasks.build.outputs}"'
            ),
            "when": 'needs = ["check"]\nrun = "false"\nwhen = "test ! -e {tasks.build.outputs}/dist/a"',
        },
        PARALLEL,
    )
    line("work", "run")
    assert line("work", "log", "spoil").lines == [".", "./dist", "./dist/a", "./dist/bin", "./dist/bin/app"]
    assert (line("work", "log", "check").text, line("work", "log", "env").text) == ("1", "1")
    assert task_of(line, "when")["reason"] == "when"
    assert (line.directory / "dist/bin/app").read_text() == "1"


def test_outputs_of_groups_and_pairs(line: CommandLine) -> None:
    write(
        line.directory / "work.toml",
        PARALLEL
        + """
        [tasks.build]
        each = { values = ["a", "b", "x y"] }
        run = "mkdir -p out/{value}; echo {value} >out/{value}/same"
        outputs = ["out/{value}/"]
        [tasks.test]
        each = { values = ["a", "b", "x y"] }
        needs = ["build/*"]
        run = "cat {tasks.build/{each}.outputs}/out/{value}/same {tasks.build/*.outputs}/out/{value}/same"
        [tasks.one]
        needs = ["build"]
        run = "ls {tasks.build/a.outputs}/out"
        [tasks.all]
        needs = ["test"]
        run = "cd {tasks.build.outputs}; cat */out/*/same; ls | wc -l"
        """,
    )
    line("work", "run")
    assert line("work", "log", "test/a").lines == ["a", "a"]
    assert "a" in line("work", "log", "one").lines
    assert sorted(line("work", "log", "all").lines) == ["3", "a", "b", "x y"]


def test_outputs_of_isolated_tasks_reach_others(line: CommandLine) -> None:
    write(line.directory / ".gitignore", "/built\n")
    write(line.directory / "base", "base\n")
    git(line.directory, "init", "-q")
    git(line.directory, "add", ".")
    git(line.directory, "-c", "user.name=n", "-c", "user.email=n@n", "commit", "-qm", "base")
    tasks = {
        "tree": 'run = "cat base >built"\nisolation = "worktree"\noutputs = ["/built"]',
        "copy": (
            'run = "test ! -e built; cat {tasks.tree.outputs}/built >second"\n'
            'isolation = "copy"\nneeds = ["tree"]\noutputs = ["/second"]'
        ),
        "plain": 'run = "cat {tasks.copy.outputs}/second {tasks.tree.outputs}/built"\nneeds = ["copy"]',
    }
    make_list(line, tasks, PARALLEL + '\n[trees]\ndirectory = "../trees"')
    line("work", "run")
    assert line("work", "log", "plain").lines == ["base", "base"]
    assert not (line.directory / "built").exists()


@pytest.mark.parametrize(
    ("run", "outputs", "text"),
    [
        ("true", '["a.txt"]', "no file matches 'a.txt'"),
        ("mkdir empty", '["empty"]', "no file matches 'empty'"),
        ("echo >a.txt", '["a.txt", "b/*"]', "no file matches 'b/*'"),
        ("ln -s /etc/passwd l", '["l"]', "l is a link that does not lead to other outputs"),
        ("ln -s ../../x l", '["l"]', "l is a link"),
        ("mkdir d; ln -s . d/e; ln -s e/../../x d/l; echo >x; mkdir y", '["d", "x"]', "d/l is a link"),
        ("echo >x; ln -s x l", '["l"]', "l is a link"),
        ("mkfifo pipe", '["pipe"]', "pipe is a FIFO"),
        ("truncate -s 3G big", '["big"]', "more than 1.00 GB; the largest file is big"),
        ("mkdir d; echo >d/f; chmod 0 d/f", '["d"]', "d/f: Permission denied"),
    ],
)
def test_outputs_that_cannot_be_collected_fail_the_task(line: CommandLine, run: str, outputs: str, text: str) -> None:
    if "chmod" in run and os.geteuid() == 0:
        pytest.skip("permissions do not apply to root")
    tasks = {
        "build": f"run = {json.dumps(run)}\noutputs = {outputs}",
        "use": 'run = "echo {tasks.build.outputs}"\nneeds = ["build"]',
    }
    make_list(line, tasks)
    line("work", "run", status=3)
    assert (task_of(line, "build")["state"], task_of(line, "build")["reason"]) == ("FAILED", "check")
    assert text in str(task_of(line, "build")["notes"])
    explanation = str(task_of(line, "build")["explanation"])
    assert explanation.startswith("its outputs or changes could not be stored; outputs: ")
    assert "not collected" not in explanation
    assert states(line)["use"] == "SKIPPED"


def test_names_of_any_bytes_are_collected(line: CommandLine) -> None:
    root = line.directory / "o ' \" $(x)"
    tasks = {
        "build": f'run = "true"\noutputs = [{json.dumps(root.name)}]',
        "use": 'needs = ["build"]\nrun = "cat {tasks.build.outputs}/*/*"',
    }
    root.mkdir()
    with open(os.fsencode(root) + b"/\xff\n-rf *", "wb") as file:
        file.write(b"found\n")
    make_list(line, tasks)
    line("work", "run")
    assert line("work", "log", "use").lines == ["found"]


@pytest.mark.parametrize(
    ("tasks", "text"),
    [
        ({"a": 'run = "true"\noutputs = ["x"]', "b": 'run = "echo {tasks.a.outputs}"'}, "does not need 'a'"),
        ({"a": 'run = "true"\noutputs = ["x"]', "b": 'run = "echo {tasks.a.outputs}"\nafter = ["a"]'}, "not need 'a'"),
        ({"a": 'run = "true"', "b": 'run = "echo {tasks.a.outputs}"\nneeds = ["a"]'}, "'a' has no `outputs`"),
        ({"a": 'run = "true"', "b": 'run = "echo {tasks.z.outputs}"\nneeds = ["a"]'}, "'z', which does not exist"),
        ({"a": "run = \"echo '{tasks.a.outputs}'\""}, "inside single quotes"),
        ({"a": 'run = ["echo", "{tasks.a}"]'}, "{tasks.a}, which is not a placeholder"),
        ({"a": 'run = "true"\noutputs = ["/etc/x/../y"]'}, "can match no path"),
        ({"a": 'run = "true"\nskip_if_unchanged = true'}, "`skip_if_unchanged` without `inputs`"),
        ({"a": 'run = "true"\nskip_if_unchanged = true\ninputs = ["x"]\nisolation = "copy"'}, "and `isolation`"),
    ],
)
def test_invalid_uses_are_refused(line: CommandLine, tasks: dict[str, str], text: str) -> None:
    make_list(line, tasks)
    assert text in line("work", "run", status=2).notes


def test_outputs_that_only_order_tasks_are_not_collected(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "true"\noutputs = ["missing"]', "b": 'run = "true"\ninputs = ["missing"]'})
    line("work", "run")
    assert set(states(line).values()) == {"DONE"}


def test_outputs_of_earlier_batches_are_used_and_kept_by_gc(line: CommandLine) -> None:
    tasks = {
        "build": 'run = "echo built >>ran; cp ran out"\noutputs = ["out"]',
        "use": 'run = "cat {tasks.build.outputs}/out"\nneeds = ["build"]',
        "other": 'run = "true"',
    }
    make_list(line, tasks)
    assert (
        "no earlier batch has outputs of its present definition" in line("work", "run", "use", "--only", status=2).notes
    )
    line("work", "run")
    line("work", "run", "other")
    tasks["use"] = tasks["use"].replace("cat", "cat --")
    make_list(line, tasks)
    (line.directory / "out").unlink()
    line("work", "run", "--unfinished")
    assert (states(line), count(line, "ran")) == ({"use": "DONE"}, 1)
    line("work", "run", "use", "--only")
    line("gc", "--keep", "1")
    assert len(line("batch", "list", "--pipeline", "work", "--json").json) == 1
    line("work", "retry", "use")
    assert line("work", "log", "use").lines == ["built"]
    tasks["build"] = tasks["build"].replace("built", "changed")
    make_list(line, tasks)
    assert "present definition" in line("work", "run", "use", "--only", status=2).notes


def test_gc_removes_outputs_of_removed_batches(line: CommandLine) -> None:
    tasks = {"a": 'run = "head -c 4000000 /dev/urandom >out"\noutputs = ["out"]'}
    tasks["b"] = 'run = "echo {tasks.a.outputs}"\nneeds = ["a"]'
    make_list(line, tasks)
    sizes = []
    for _ in range(3):
        line("work", "run")
        line("gc", "--keep", "1")
        objects = line.directory / ".codebatch" / "objects"
        sizes.append(sum(path.stat().st_size for path in objects.iterdir()))
    assert 4_000_000 < sizes[-1] < 6_000_000


def test_interruption_before_collection_runs_the_task_again(line: CommandLine) -> None:
    """Kill the worker while it collects: the read of a huge sparse file takes long enough."""
    tasks = {
        "build": (
            'run = "echo >>ran; until test -e go; do sleep 0.02; done; truncate -s 900M big; echo >ended"\n'
            'outputs = ["big"]'
        ),
        "use": 'run = "stat -c %s {tasks.build.outputs}/big"\nneeds = ["build"]',
    }
    make_list(line, tasks)
    runner = line.start("work", "run")
    wait_until((line.directory / "ran").exists, "the command runs")
    workers = status(line)["workers"]
    write(line.directory / "go", "")
    wait_until((line.directory / "ended").exists, "the command has ended")
    for pid in (runner.pid, *(worker["pid"] for worker in workers)):
        os.kill(pid, signal.SIGKILL)
    runner.communicate()
    assert states(line)["use"] == "PENDING"
    line("resume")
    assert (count(line, "ran"), line("work", "log", "use").lines) == (2, [str(900 << 20)])


def test_retry_collects_new_outputs(line: CommandLine) -> None:
    tasks = {
        "build": (
            'run = "echo >>ran; test $(wc -l <ran) -gt 1 && cp ran out"\n'
            'outputs = ["out"]\nretries = 1\nbackoff_seconds = 0'
        ),
        "use": 'run = "wc -l <{tasks.build.outputs}/out"\nneeds = ["build"]',
    }
    make_list(line, tasks)
    line("work", "run")
    assert line("work", "log", "use").lines == ["2"]
    line("work", "retry", "build")
    line("work", "retry", "use")
    assert line("work", "log", "use").lines == ["3"]


def test_task_with_nothing_to_do_leaves_the_files_that_are_there(line: CommandLine) -> None:
    tasks = {
        "build": 'run = "false"\nwhen = "test ! -e out"\noutputs = ["out", "more"]',
        "use": 'run = "cat {tasks.build.outputs}/out"\nneeds = ["build"]',
    }
    write(line.directory / "out", "old\n")
    make_list(line, tasks)
    line("work", "run")
    assert line("work", "log", "use").lines == ["old"]
    assert "no file matches 'more'" in str(task_of(line, "build")["notes"])


def test_failed_need_leaves_no_outputs(line: CommandLine) -> None:
    tasks = {
        "build": 'run = "echo >out; false"\noutputs = ["out"]',
        "use": 'run = "cat {tasks.build.outputs}/out"\nneeds = ["build"]',
    }
    make_list(line, tasks, 'on_failure = "continue"')
    line("work", "run", status=3)
    assert task_of(line, "use")["reason"] == "start"
    assert "the task build has left no outputs" in line("work", "log", "use").text


SKIPPED = 'run = "echo >>ran; cat src/* >out"\ninputs = ["src/"]\noutputs = ["out"]\nskip_if_unchanged = true\n'


def test_unchanged_task_is_done_without_running(line: CommandLine) -> None:
    write(line.directory / "src/a", "1")
    make_list(line, {"a": SKIPPED, "b": 'run = "cat {tasks.a.outputs}/out"\nneeds = ["a"]'})
    line("work", "run")
    (line.directory / "out").unlink()
    ended = line("work", "run")
    assert ended.text.startswith("COMPLETED: 2 of 2 done (100%), 1 of them with nothing to do")
    assert "unchanged since its last success" in ended.notes
    assert (count(line, "ran"), (line.directory / "out").read_text()) == (1, "1")
    assert (task_of(line, "a")["reason"], task_of(line, "a")["explanation"]) == (
        "unchanged",
        "unchanged since its last success",
    )
    assert line("work", "log", "b").text == "1"
    assert "done a 0.0s; unchanged since its last success" in line("events").text
    completed = [
        event for event in map(json.loads, line("events", "--json").lines) if event["event"] == "BATCH_TASK_COMPLETED"
    ]
    assert [event.get("reason") for event in completed] == ["unchanged", None]
    line("gc", "--keep", "1")
    line("work", "run")
    assert (count(line, "ran"), is_skipped(line, "a")) == (1, True)
    line("work", "retry", "a")
    assert count(line, "ran") == 2, "a person asked for it"


def _same_size_and_times(path: Path) -> None:
    before = path.stat()
    path.write_text(path.read_text().swapcase())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda root: _same_size_and_times(root / "src/a"),
    "added": lambda root: write(root / "src/b", ""),
    "removed": lambda root: (root / "src/c").unlink(),
    "renamed": lambda root: (root / "src/c").rename(root / "src/d"),
    "mode": lambda root: (root / "src/a").chmod(0o755),
    "ignored": lambda root: write(root / "src/ignored", "1"),
    "command": lambda root: write(root / "work.toml", (root / "work.toml").read_text().replace("echo >>", "echo  >>")),
    "env": lambda root: write(root / "work.toml", (root / "work.toml").read_text().replace('X = "1"', 'X = "2"')),
    "env_file": lambda root: write(root / ".env", "Y=2\n"),
    "stdin": lambda root: write(root / "stdin", "2"),
    "outputs of a need": lambda root: write(root / "first", "2"),
    "target of a link": lambda root: write(root / "target", "2"),
    "patterns": lambda root: write(root / "work.toml", (root / "work.toml").read_text().replace('"src/"', '"src/*"')),
}


@pytest.mark.parametrize("name", CHANGES)
def test_task_runs_if_anything_that_the_list_names_has_changed(line: CommandLine, name: str) -> None:
    for path, text in {"src/a": "x", "src/c": "y", "stdin": "1", ".env": "Y=1\n", "first": "1", "target": "1"}.items():
        write(line.directory / path, text)
    write(line.directory / ".gitignore", "ignored\n")
    (line.directory / "src/link").symlink_to("../target")
    keys = 'needs = ["mid"]\nstdin = "stdin"\nenv = { X = "1" }\nenv_file = ".env"\n'
    first = 'run = "cp first one"\noutputs = ["one"]'
    make_list(line, {"first": first, "mid": 'run = "true"\nneeds = ["first"]', "a": SKIPPED + keys})
    line("work", "run")
    line("work", "run")
    assert is_skipped(line, "a")
    CHANGES[name](line.directory)
    line("work", "run")
    assert (count(line, "ran"), is_skipped(line, "a")) == (2, False)
    line("work", "run")
    assert is_skipped(line, "a")


def test_value_of_a_variable_of_the_caller_counts_if_the_list_names_it(line: CommandLine) -> None:
    write(line.directory / "src/a", "1")
    make_list(line, {"a": SKIPPED + 'env = { X = "${V}" }'})
    for value, runs in (("1", 1), ("1", 1), ("2", 2), ("1", 3)):
        line.shell(f"V={value} codebatch work run")
        assert count(line, "ran") == runs


@pytest.mark.parametrize(
    ("prepare", "text"),
    [
        (lambda root: (root / "src/a").unlink(), "no file matches its inputs"),
        (
            lambda root: (root / "src/l").symlink_to("/etc/hostname"),
            "src/l is a link to a place outside of the project",
        ),
        (lambda root: (root / "src/l").symlink_to("nowhere"), "src/l"),
        (lambda root: (root / "src/l").symlink_to("../dir"), "its input src/l is not a file"),
        (lambda root: os.mkfifo(root / "src/f"), "its input src/f is not a file"),
    ],
)
def test_task_with_uncertain_inputs_runs_and_says_why(
    line: CommandLine, prepare: Callable[[Path], object], text: str
) -> None:
    write(line.directory / "src/a", "1")
    write(line.directory / "dir/a", "1")
    prepare(line.directory)
    keys = SKIPPED.replace("cat src/* >out", "echo >out")
    make_list(line, {"a": keys})
    for _ in range(2):
        line("work", "run")
    assert count(line, "ran") == 2
    assert text in str(task_of(line, "a")["notes"])
    assert "not skipped: " in line("events").text


def test_task_that_changes_its_inputs_is_not_skipped_next_time(line: CommandLine) -> None:
    write(line.directory / "src/a", "1")
    make_list(line, {"a": SKIPPED.replace("echo >>ran", "echo >>ran; echo 2 >src/a")})
    line("work", "run")
    assert "its inputs changed while it ran: file src/a" in str(task_of(line, "a")["notes"])
    line("work", "run")
    assert count(line, "ran") == 2
    line("work", "run")
    assert is_skipped(line, "a")


def test_only_the_last_attempt_counts_as_last_success(line: CommandLine) -> None:
    """After a failure, or another success, the state of the world is not that of the earlier success."""
    write(line.directory / "src/a", "1")
    make_list(line, {"a": SKIPPED.replace("echo >>ran", "echo >>ran; ! grep -q bad src/a || exit 1")})
    for text, status_, runs in (("1", 0, 1), ("bad", 3, 2), ("1", 0, 3), ("2", 0, 4), ("1", 0, 5), ("1", 0, 5)):
        write(line.directory / "src/a", text)
        line("work", "run", status=status_)
        assert count(line, "ran") == runs


def test_success_stays_known_if_a_later_batch_never_started_the_task(line: CommandLine) -> None:
    write(line.directory / "src/a", "1")
    make_list(line, {"first": 'run = "test ! -e broken"', "a": SKIPPED + 'needs = ["first"]'})
    line("work", "run")
    write(line.directory / "broken", "")
    line("work", "run", status=3)
    (line.directory / "broken").unlink()
    line("gc", "--keep", "1")
    line("work", "run")
    assert (count(line, "ran"), is_skipped(line, "a")) == (1, True)


USES_A = 'run = "ls {tasks.a.outputs}"\nneeds = ["a"]'


def test_two_tasks_with_the_same_output(line: CommandLine) -> None:
    write(line.directory / "src/a", "1")
    tasks = {
        name: f'run = "echo >>ran; echo {name} >out"\ninputs = ["src/"]\noutputs = ["out"]\nskip_if_unchanged = true'
        for name in ("one", "two")
    }
    tasks["use"] = 'run = "cat {tasks.one.outputs}/out {tasks.two.outputs}/out out"\nneeds = ["one", "two"]'
    make_list(line, tasks)
    for _ in range(2):
        line("work", "run")
        assert line("work", "log", "use").lines == ["one", "two", "two"]
    assert count(line, "ran") == 4, "each found the output of the other"


def test_kill_while_an_unchanged_task_runs_again_does_not_skip_it(line: CommandLine) -> None:
    write(line.directory / "src/a", "1")
    make_list(line, {"a": SKIPPED.replace("echo >>ran", "echo >>ran; test ! -e wait || sleep 60")})
    line("work", "run")
    write(line.directory / "src/a", "2")
    write(line.directory / "wait", "")
    runner = line.start("work", "run")
    wait_until(lambda: count(line, "ran") == 2, "the task runs")
    kill_workers(line)
    runner.communicate()
    (line.directory / "wait").unlink()
    write(line.directory / "src/a", "1")
    line("work", "run", "--parallel-batches")
    assert count(line, "ran") == 3


def test_many_outputs_cost_little(line: CommandLine) -> None:
    write(
        line.directory / "work.toml",
        PARALLEL
        + """
        [tasks.build]
        each = { values = ["1", "2", "3", "4", "5", "6", "7", "8"] }
        run = "mkdir -p out/{value}; for i in $(seq 100); do echo {value} $i >out/{value}/$i; done"
        outputs = ["out/{each}/"]
        [tasks.use]
        needs = ["build"]
        run = "find {tasks.build.outputs} -type f | wc -l"
        """,
    )
    began = time.monotonic()
    line("work", "run")
    assert time.monotonic() - began < 60
    assert line("work", "log", "use").lines == ["800"]


@pytest.mark.parametrize("name", ["tasks.a.output", "tasks.a.outputs ", "tasks.a"])
def test_misspelt_placeholder_for_outputs_is_refused(line: CommandLine, name: str) -> None:
    for run in (f'"cat {{{name}}}/x"', f'["cat", "{{{name}}}/x"]'):
        make_list(line, {"a": 'run = "echo >x"\noutputs = ["/x"]', "b": f'run = {run}\nneeds = ["a"]'})
        assert f"{{{name}}}, which is not a placeholder" in line("work", "run", status=2).notes
    for script, printed in (("tasks=x; echo ${tasks}", "x"), ("echo {tasks.py,other.py}", "{tasks.py,other.py}")):
        make_list(line, {"b": f"run = '{script}'"})
        line("work", "run", "-q")
        assert line("work", "log", "b").lines == [printed]


def test_outputs_that_cannot_be_collected_are_not_paid_again(line: CommandLine) -> None:
    keys = "retries = 3\nbackoff_seconds = 0\noutputs = ['/x']"
    make_list(line, {"a": f'run = "echo >>ran; mkfifo x 2>&1"\n{keys}', "b": USES_A})
    line("work", "run", "-q", status=3, has_answer=True)
    assert count(line, "ran") == 1
