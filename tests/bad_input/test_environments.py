"""Unusual environments: each run ends with the documented status, and a run that completes has the same result."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codebatch.model.text.quantities import count_text
from codebatch.system.host import usable_cores
from tests.support.command_line import SCRIPT, CommandLine, Ended, write, write_own_task

RUN = "codebatch --store store run tree --json"
AFTER = f"{sys.executable} -c 'import os, signal, sys; {{}}; os.execvp(sys.argv[1], sys.argv[1:])' {RUN}"
WORKERS = count_text(min(usable_cores(), 5), "worker")
"""The number of workers of a run over the tree, which has three files and two project tasks."""
UNSHARE = shutil.which("unshare") if os.geteuid() == 0 else None

SAME = {
    "no HOME": f"unset HOME; {RUN}",
    "an empty environment": f"exec env -i {SCRIPT} {RUN.partition(' ')[2]}",
    "a home that is not a directory": f"HOME=/proc/1 {RUN}",
    "no PATH": f"PATH= {SCRIPT} {RUN.partition(' ')[2]}",
    "no directory for temporary files": f"TMPDIR=/none {RUN}",
    **({"umask 0777": f"umask 0777; {RUN}"} if os.geteuid() == 0 else {}),
    "an old locale": f"LC_ALL= LANG=C PYTHONCOERCECLOCALE=0 PYTHONUTF8=0 {RUN}",
    "a strict output of seven bits": f"PYTHONIOENCODING=ascii:strict {RUN}",
    "warnings are errors": f"PYTHONWARNINGS=error {RUN}",
    "standard input closed": f"{RUN} <&-",
    "standard error closed": f"{RUN} 2>&-",
    "standard error full": f"{RUN} 2>/dev/full",
    "SIGCHLD ignored": AFTER.format("signal.signal(signal.SIGCHLD, signal.SIG_IGN)"),
    "all signals blocked": AFTER.format("signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())"),
    "few descriptors": f"ulimit -n 64; {RUN}",
    "little memory": f"ulimit -v 1000000; {RUN}",
    "no room for the stack of a thread": f"ulimit -s 8000000 -v 4000000; {RUN}",
    "an unreadable current directory": "mkdir no; cd no; chmod 0 .; codebatch --store {0}/store run {0}/tree --json",
}

REFUSED = {
    "standard output closed": (f"{RUN} >&-", 4, "standard output: Bad file descriptor"),
    "standard output full": (f"{RUN} >/dev/full", 4, "standard output: No space left on device"),
    "all streams closed": (f"{RUN} <&- >&- 2>&-", 4, ""),
    "the version to a closed output": ("codebatch --version >&-", 4, "standard output"),
    "the help to a full output": ("codebatch --help >/dev/full", 4, "standard output"),
    "files of 1 kB at most": (f"ulimit -f 1; {RUN}", 4, "File too large"),
    "files of no byte at all": (f"ulimit -f 0; {RUN}", 4, ""),
    "12 descriptors": (f"ulimit -n 12; {RUN}", 4, "ulimit -n 1024"),
    "16 descriptors for commands": (
        "printf '[tasks.a]\nrun = \"true\"\n' >work.toml; ulimit -n 16; codebatch work run", 4,
        ("Too many open files\nhint: raise the limit of open files: ulimit -n 1024, then resume with: "
        "codebatch resume --batch"),
    ),
    "a current directory that is gone": (f"mkdir gone; cd gone; rmdir ../gone; {RUN}", 2, "the current directory"),
    "its summary": ("mkdir gone; cd gone; rmdir ../gone; codebatch summary", 4, "the current directory"),
    "a name of 5,000 characters": (f"codebatch init {'a' * 5000}", 4, "File name too long"),
    "a store that leads to itself": ("ln -s store store; codebatch --store store run tree", 4, "symbolic link"),
    "a name that is no UTF-8": (f"{RUN} -q; codebatch --store store references $'\\xff'", 2, "not valid UTF-8"),
    "a pattern that is no UTF-8": ("codebatch --store store run tree --include $'\\xff'", 5, "no files to analyse"),
}  # fmt: skip


@pytest.fixture(scope="module")
def digest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The result digest of an undisturbed run over the tree."""
    codebatch = CommandLine(_make(tmp_path_factory.mktemp("undisturbed")))
    answer = codebatch(*RUN.split()[1:]).json
    assert answer["status"] == "COMPLETED"
    return str(answer["result_digest"])


@pytest.fixture
def here(tmp_path: Path) -> CommandLine:
    """The command line in a directory with a small tree."""
    return CommandLine(_make(tmp_path))


def _make(root: Path) -> Path:
    write(root / "tree" / "a.py", "import os\n\n\ndef f(x):\n    return eval(x)\n")
    write(root / "tree" / "b.js", "export const a = 1;\n")
    write(root / "tree" / "__init__.py", "")
    return root


@pytest.mark.parametrize("name", SAME)
def test_results_are_the_same_in_odd_environments(here: CommandLine, digest: str, name: str) -> None:
    ended = here.shell(SAME[name].replace("{0}", str(here.directory)))
    assert (ended.json["status"], ended.json["result_digest"]) == ("COMPLETED", digest)
    journals = [path.read_bytes() for path in (here.directory / "store" / "batches").glob("*/journal/*")]
    assert journals
    assert not any(b'"event":"lost"' in journal for journal in journals)


@pytest.mark.parametrize("limit", [20, 24, 40, 63])
def test_insufficient_descriptors_are_reported_before_a_worker_starts(
    here: CommandLine, digest: str, limit: int
) -> None:
    ended = here.shell(f"ulimit -n {limit}; {RUN}", status=4)
    assert ended.error["message"] == f"cannot start {WORKERS}: 64 open files are needed, and the limit is {limit}"
    assert "ulimit -n 1024" in ended.error["hint"]
    journals = [path.read_bytes() for path in (here.directory / "store" / "batches").glob("*/journal/*")]
    assert journals
    assert not any(b'"event":"spawned' in journal for journal in journals)
    assert here(*RUN.split()[1:]).json["result_digest"] == digest


def test_soft_descriptor_limit_is_raised(here: CommandLine, digest: str) -> None:
    assert here.shell(f"ulimit -S -n 30; {RUN}").json["result_digest"] == digest


@pytest.mark.parametrize("name", REFUSED)
def test_impossible_command_is_reported(here: CommandLine, name: str) -> None:
    line, status, problem = REFUSED[name]
    process = subprocess.run(
        ["bash", "-c", line], cwd=here.directory, env=here.environment, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=60, check=False,
    )  # fmt: skip
    ended = Ended(command=line, status=process.returncode, stdout=process.stdout, stderr=process.stderr)
    assert ended.status == status, ended.notes
    assert "Traceback" not in ended.notes
    assert problem in ended.notes


def test_store_path_may_be_non_utf8(here: CommandLine, digest: str) -> None:
    store = os.fsdecode(b"st\xffore")
    assert here("--store", store, "run", "tree", "--json").json["result_digest"] == digest
    assert here("--store", store, "errors", "--json").records == []
    assert os.fsencode(here("--json", "init", store).json["store"]).endswith(b"st\xffore")


@pytest.mark.skipif(UNSHARE is None, reason="only root can hide /proc")
def test_run_works_without_proc(here: CommandLine, digest: str) -> None:
    ended = here.shell(f"{UNSHARE} --mount sh -c 'mount -t tmpfs none /proc || exit 99; exec {RUN}' || exit $?")
    assert ended.json["result_digest"] == digest


@pytest.mark.parametrize("module", ["codebatch.cli.framework.exit", "click", "msgspec"])
def test_ctrl_c_during_imports_prints_no_traceback(here: CommandLine, module: str) -> None:
    """The signal is sent when a module is about to be imported."""
    write(
        here.directory / "site" / "sitecustomize.py",
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r} and 'codebatch.__main__' in sys.modules: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n",
    )
    here.environment["PYTHONPATH"] = str(here.directory / "site")
    ended = here.finish(here.start("--store", "store", "run", "tree", "--json"), status=130)
    assert ended.error["code"] == "interrupted"


def test_ctrl_c_is_not_lost_in_a_function_whose_exceptions_python_ignores(here: CommandLine) -> None:
    write(
        here.directory / "site" / "sitecustomize.py",
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'codebatch.operations.runs.run': Interrupting()\n"
        "sys.meta_path.insert(0, Finder())\n",
    )
    here.environment["PYTHONPATH"] = str(here.directory / "site")
    ended = here.finish(here.start("--store", "store", "run", "tree", "--json"), status=130)
    assert ended.error["code"] == "interrupted"


def test_slow_modules_are_not_imported_before_signal_handling() -> None:
    """The import of `typing` alone takes as long as all other imports."""
    code = "import codebatch.__main__, sys; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-I", "-c", code], check=True, capture_output=True, encoding="utf-8"
    ).stdout
    assert {"typing", "click", "msgspec"}.isdisjoint(modules.split())


def test_tools_started_by_tasks_receive_ctrl_c(here: CommandLine) -> None:
    code = (
        "import json, subprocess, sys\n"
        "from codebatch.model.record import Metric\n"
        "SAY = 'import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler,'\n"
        "SAY += 'signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL, not signal.pthread_sigmask(0, []))'\n"
        "def task(file):\n"
        "    said = subprocess.run([sys.executable, '-c', SAY], capture_output=True, text=True).stdout\n"
        "    yield Metric(path=file.path.decode(), metric=said.strip(), value=1)\n"
    )
    write_own_task(here.directory, "own", code)
    ended = here.finish(here.start("run", "tree", "--json"))
    assert json.loads(ended.stdout)["status"] == "COMPLETED"
    metrics = {row["metric"] for row in here("query", "outputs", "--task", "own", "--json").records}
    assert metrics == {"True True True"}


def test_ignored_ctrl_c_remains_ignored(here: CommandLine, digest: str) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ended = here(*RUN.split()[1:])
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.json["result_digest"] == digest


def test_modules_of_the_current_directory_are_imported_only_by_python_m(codebatch: CommandLine) -> None:
    """Python defines this rule for `-m`. SECURITY.md documents it and the ways to avoid it."""
    write(codebatch.directory / "codebatch.py", "print('theirs')\n")
    module = f"{sys.executable} %s -m codebatch --version"
    assert codebatch.shell(module % "").text == "theirs\n"
    for line in ("codebatch --version", f"PYTHONSAFEPATH=1 {module % ''}", module % "-P"):
        if sys.version_info >= (3, 11) or line.startswith("codebatch"):
            assert codebatch.shell(line).text.startswith("codebatch 2")
