"""Modules of custom tasks with harmful side effects at import: commands answer, or reject the module."""

from __future__ import annotations

import signal
import stat

import pytest

from tests.changes.repositories import commit_all, make_work_tree
from tests.changes.trees import TreeFile
from tests.support.command_line import CommandLine, wait_until, write, write_own_task

TASK = """
from codebatch.model.record import Metric
def task(file):
    path, path_b64 = file.path_fields
    yield Metric(path=path, path_b64=path_b64, metric="words", value=1)
"""


@pytest.mark.parametrize(
    "code",
    [
        "os.chdir(os.path.dirname(os.path.abspath(__file__)))",
        "os.chdir('/')",
        "os.umask(0o777)",
        "sys.path.append('/')",
        "[signal.signal(each, signal.SIG_IGN) for each in (1, 2, 15, 17)]",
        "signal.signal(signal.SIGCHLD, lambda *_: os.wait())",
        "signal.signal(signal.SIGALRM, lambda *_: 1 / 0); signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)",
        "signal.alarm(1)",
        "os.environ.update(CODEBATCH_STORE='/nowhere', GIT_DIR='/nowhere')",
        "os.fork()",
    ],
)
def test_side_effects_of_a_module_do_not_affect_the_analysis_or_the_store(codebatch: CommandLine, code: str) -> None:
    write(codebatch.directory / "codebatch.toml", "[tasks.words]\npython = 'tools/words.py:task'\n")
    write(codebatch.directory / "tools" / "words.py", f"import os, signal, sys\n{code}\n{TASK}")
    write(codebatch.directory / "bad.py", "x = (\n")
    codebatch("init", ".codebatch")
    answer = codebatch("run", ".", "--json").json
    assert (answer["status"], answer["paths"]) == ("COMPLETED", [])
    files = codebatch("query", "files", "--json").records
    assert {"bad.py", "tools/words.py"} <= {row["path"] for row in files}
    codebatch("check", "--allow-no-base")
    modes = {path: path.stat().st_mode for path in (codebatch.directory / ".codebatch").rglob("*")}
    assert all(mode & stat.S_IRUSR for mode in modes.values()), "all files of the store must be readable"


def test_umask_set_by_a_function_does_not_affect_store_files(codebatch: CommandLine) -> None:
    write_own_task(codebatch.directory, "words", f"import os\n{TASK}    os.umask(0o777)\n")
    write(codebatch.directory / "src" / "a.py", "x = 1\n")
    write(codebatch.directory / "src" / "b.py", "y = 1\n")
    codebatch("run", "src")
    written = list((codebatch.directory / ".codebatch").rglob("*"))
    assert all(path.stat().st_mode & stat.S_IRUSR for path in written)


def test_forked_child_of_a_function_does_not_become_a_worker(codebatch: CommandLine) -> None:
    write_own_task(codebatch.directory, "words", f"import os\n{TASK}    os.fork()\n")
    for name in ("a", "b", "c"):
        write(codebatch.directory / "src" / f"{name}.py", "x = 1\n")
    codebatch("run", "src", "-j", "1")
    assert len(codebatch("query", "outputs", "--task", "words", "--json").records) == 3


@pytest.mark.parametrize("code", ["os._exit(0)", "os.fork() and os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_module_that_exits_is_rejected_by_every_command_that_loads_it(codebatch: CommandLine, code: str) -> None:
    write_own_task(codebatch.directory, "words", f"import os\n{code}\n{TASK}")
    write(codebatch.directory / "src" / "a.py", "x = 1\n")
    codebatch("snapshot", "src", "--store", ".codebatch", "-q")
    needing = (
        ("run", "src"), ("task", "try", "words", "src/a.py"), ("task", "test", "words", "src"), ("pipeline", "full"),
        ("batch", "init"),
    )  # fmt: skip
    for command in needing:
        refused = codebatch(*command, "--json", status=2).error
        assert refused["code"] == "invalid_configuration"
        assert "the task 'words' cannot be loaded" in refused["message"]
        assert "its process ended" in refused["message"]
    for words in ("config show", "pipelines", "rules test", "rules list", "snapshot list"):
        codebatch(*words.split(), "--json", status=3 if words == "rules test" else 0)  # There are no rules to test.


def test_run_can_be_stopped_if_a_module_ignores_signals(codebatch: CommandLine) -> None:
    code = (
        "import signal, time\nfor each in (1, 2, 15): signal.signal(each, signal.SIG_IGN)\n"
        "from pathlib import Path\ndef task(file):\n"
        f"    Path({str(codebatch.directory)!r}, 'begun').touch()\n    time.sleep(1000)\n    return []\n"
    )
    write_own_task(codebatch.directory, "words", code)
    write(codebatch.directory / "src" / "a.py", "x = 1\n")
    process = codebatch.start("run", "src")
    wait_until((codebatch.directory / "begun").exists, "the task begins")

    def is_ended_by_another_one() -> bool:
        process.send_signal(signal.SIGINT)
        return process.poll() is not None

    wait_until(is_ended_by_another_one, "the run ends")
    codebatch.finish(process, status=130)


def test_no_commands_runs_no_code_of_the_project(codebatch: CommandLine) -> None:
    """This includes the commands of a CI job that follow."""
    root = codebatch.directory
    make_work_tree(root, {b"a.py": TreeFile(b"x = 1\n")})
    write(
        root / "codebatch.toml",
        "[tasks.words]\npython = 'tools/words.py:task'\n[pipelines.ci]\ntasks = ['words', 'lint']\n",
    )
    canary = root.parent / "canary"
    write(root / "tools" / "words.py", f"open({str(canary)!r}, 'w').close()\n{TASK}")
    commit_all(root)
    codebatch("run", ".", "--no-commands", "--pipeline", "ci")
    codebatch("check", "HEAD~1")
    for words in ("findings", "export sarif", "gc", "status"):
        codebatch(*words.split())
    assert not canary.exists()
    write(root / "codebatch.toml", f"exclude = ['b']\n{(root / 'codebatch.toml').read_text()}")
    commit_all(root)
    codebatch("run", ".", "--no-commands")
    hidden = codebatch("check", "HEAD~1", "--json").json["hidden"]
    assert "without a task that runs code of the project, such as words" in hidden["unknown_reason"]
    assert not canary.exists(), "the settings of the base are applied without its tasks"
    codebatch("run", ".", "--pipeline", "ci")
    assert canary.exists()
