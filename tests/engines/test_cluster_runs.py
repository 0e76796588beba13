"""Runs on real clusters on the loopback interface, whose processes are killed meanwhile: the outputs never differ."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from codebatch.engines.opening import open_engine
from tests.engines.certificates import CertificateFiles
from tests.engines.dask_cluster import DaskCluster
from tests.engines.process_killer import ProcessKiller, check_no_process_left, descendants_by_role, parts_by_role
from tests.engines.waiting import process_is_running, wait_for_slots
from tests.support.command_line import CommandLine, Ended, wait_until, write
from tests.support.parts import NAMES_OF_A_TREE, make_tree, read_outputs

pytestmark = pytest.mark.slow

needs_dask = pytest.mark.skipif(
    not (find_spec("distributed") and shutil.which("openssl")),
    reason="DASK IS NOT TESTED WITH TLS: pip install 'codebatch[dask]', and install the program openssl",
)

MARK = "CODEBATCH_TEST_CLUSTER"
SETTINGS = """
[shard]
files_average = 8
files_min = 8
files_max = 8
[tasks.slow]
python = "slow.py:task"
[pipelines.slow]
tasks = ["slow"]
"""
# Estimates depend on names and sizes alone. So each shard of 8 MiB of C++ headers is a part, and comments are cheap.
SLOTS = 2
SHARDS = 15
FILES_PER_SHARD = 8
FILE_BYTES = 1 << 20
FILE_SECONDS = 0.1
KILLS_MIN = 25
SLOW = """
import hashlib
import time
from pathlib import Path

from codebatch_workers.api import Metric

def task(file):
    if Path({slow!r}).exists():
        time.sleep({seconds})
    digest = hashlib.sha256(file.content).hexdigest()
    return [Metric(path=file.path.decode(), metric="first_byte", value=int(digest[:2], 16))]
"""


class Work:
    """A tree whose task sleeps for each file while a file exists, and the outputs of a plain run."""

    def __init__(self, root: Path, temporary: Path) -> None:
        self.mark = str(root)
        self.slow = write(root / "slow", "")
        tree = root / "tree"
        write(tree / "codebatch.toml", SETTINGS)
        write(tree / "slow.py", SLOW.format(slow=str(self.slow), seconds=FILE_SECONDS))
        for number in range(SHARDS * FILES_PER_SHARD):
            write(tree / f"{number:03}.hpp", b"// %d" % number + b"." * FILE_BYTES)
        self.line = CommandLine(tree, {"TMPDIR": str(temporary), MARK: self.mark})
        self.store = root / "store"
        self.slow.unlink()
        self.run_plain(root / "here")
        self.expected = read_outputs(root / "here")
        self.slow.touch()

    def run_plain(self, store: Path, *words: str) -> Ended:
        """Run without engine."""
        return self.line("run", ".", "--pipeline", "slow", "--store", store, *words)

    def start_run(self, url: str, *words: str | Path) -> subprocess.Popen[bytes]:
        """Start a run on an engine."""
        return self.line.start("run", ".", "--pipeline", "slow", "--store", self.store, "--on", url, "--json", *words)

    def read_registers(self) -> dict[str, bytes]:
        """Return the committed outcomes: the contents of their registers by name."""
        return {path.name: path.read_bytes() for path in self.store.glob("batches/*/outcomes/*")}

    def count_results(self) -> int:
        """Return the number of committed outcomes."""
        return sum(1 for _ in self.store.glob("batches/*/outcomes/*"))

    def wait_for_results(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the first results of a part are committed."""
        wait_until(lambda: self.count_results() > 0 or process.poll() is not None, "results arrive")
        assert process.poll() is None, process.communicate()[1].decode()

    def check(self) -> None:
        """Check the outputs, and that no process is left."""
        assert read_outputs(self.store) == self.expected
        check_no_process_left(MARK, self.mark)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    """The certificates of the clusters of this module."""
    return CertificateFiles(tmp_path_factory.mktemp("tls") / "ours")


def _tls_words(files: CertificateFiles) -> list[str | Path]:
    return ["--tls-ca", files.authority, "--tls-cert", files.certificate, "--tls-key", files.key]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    """Work of some seconds. Processes that the test starts have its mark.

    The workers of Parsl create sockets in the temporary directory. So its path must be short (unix(7)).
    """
    with tempfile.TemporaryDirectory(prefix="cb", dir="/tmp", ignore_cleanup_errors=True) as temporary:
        work = Work(tmp_path, Path(temporary))
        for name in (MARK, "TMPDIR"):
            monkeypatch.setenv(name, work.line.environment[name])
        yield work


@pytest.fixture
def cluster(certificates: CertificateFiles, work: Work, tmp_path: Path) -> Iterator[DaskCluster]:
    """A Dask cluster with TLS, and two workers with nannies."""
    with DaskCluster(tmp_path, *certificates.arguments, allowed_failures=2) as cluster:
        for _ in range(SLOTS):
            cluster.start_nanny()
        engine = open_engine(cluster.url, certificates.options)
        wait_for_slots(engine, SLOTS)
        engine.close()
        yield cluster


@needs_dask
def test_killed_processes_of_dask_do_not_change_the_outputs(
    work: Work, cluster: DaskCluster, certificates: CertificateFiles
) -> None:
    nannies = [psutil.Process(process.pid) for process in cluster.nannies]

    def find_victims() -> dict[str, list[psutil.Process]]:
        found: dict[str, list[psutil.Process]] = {"nanny": []}
        for number, nanny in enumerate(nannies):
            if not process_is_running(nanny.pid):
                nannies[number] = psutil.Process(cluster.start_nanny().pid)
            found["nanny"].append(nannies[number])
            for role, processes in descendants_by_role(nannies[number]).items():
                found.setdefault(role, []).extend(processes)
        return found

    process = work.start_run(cluster.url, *_tls_words(certificates))
    planned = {"analysis": 22, "part": 4, "engine": 2, "nanny": 2}
    with ProcessKiller(find_victims, planned, work.count_results, seed=1) as killer:
        work.line.finish(process)
    assert killer.kills.total() >= KILLS_MIN, killer.kills
    assert killer.kills.keys() == planned.keys()
    cluster.end()
    work.check()


@needs_dask
def test_a_run_ends_after_the_death_of_the_scheduler(
    work: Work, cluster: DaskCluster, certificates: CertificateFiles
) -> None:
    process = work.start_run(cluster.url, *_tls_words(certificates))
    work.wait_for_results(process)
    cluster.scheduler.kill()
    ended = work.line.finish(process, status=3)
    assert ended.error["code"] == "environment_broken"
    assert ended.error["hint"] == "results that arrived are kept; to continue, run the same command without --on"
    cluster.end()
    check_no_process_left(MARK, work.mark)
    work.slow.unlink()
    arrived = work.read_registers()
    assert work.run_plain(work.store, "--json").json["action"] == "resumed"
    assert arrived.items() < work.read_registers().items()
    work.check()


@needs_dask
def test_tasks_of_files_run_on_a_cluster_and_others_here(
    cluster: DaskCluster, certificates: CertificateFiles, tmp_path: Path
) -> None:
    line = CommandLine(make_tree(tmp_path / "project", [*NAMES_OF_A_TREE, "fail.py"]), {"TMPDIR": str(tmp_path)})
    there, here = tmp_path / "there", tmp_path / "here"
    line("run", ".", "--store", there, "--on", cluster.url, *_tls_words(certificates), status=3)
    events = line("events", "--store", there).text
    line("run", ".", "--store", here, status=3)
    assert read_outputs(there) == read_outputs(here)
    assert events


@needs_dask
def test_clients_without_a_valid_certificate_write_nothing(
    cluster: DaskCluster, certificates: CertificateFiles, work: Work, tmp_path: Path
) -> None:
    foreign = CertificateFiles(tmp_path / "foreign")
    authority: list[str | Path] = ["--tls-ca", certificates.authority]
    for words, message in [
        ([], "requires a client certificate: --tls-ca and --tls-cert not given"),
        (authority, "requires a client certificate: --tls-cert not given"),
        (_tls_words(foreign), "the certificate of the scheduler"),
        (authority + _tls_words(foreign)[2:], "refused the client certificate"),
    ]:
        process = work.start_run(cluster.url, *words)
        assert message in work.line.finish(process, status=2).error["message"]
        assert not work.store.exists()


@needs_dask
def test_workers_without_codebatch_end_the_run_and_not_themselves(
    work: Work, certificates: CertificateFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "elsewhere" / "codebatch.py", "raise ModuleNotFoundError('codebatch is not here')")
    monkeypatch.chdir(tmp_path / "elsewhere")  # Python imports modules from the current directory first.
    with DaskCluster(tmp_path, *certificates.arguments) as cluster:
        worker = cluster.start_worker()
        ended = work.line.finish(work.start_run(cluster.url, *_tls_words(certificates)), status=2)
        assert worker.poll() is None
    assert ended.error["code"] == "tool_mismatch"
    assert "cannot import codebatch" in ended.error["message"]
    assert "install the same versions there" in ended.error["hint"]


@needs_dask
def test_other_machines_need_tls(work: Work) -> None:
    ended = work.line.finish(work.start_run("dask:tcp://192.0.2.1:8786"), status=2)
    assert "is on another machine and has no TLS" in ended.error["message"]
    assert not work.store.exists()


PARSL = """
import parsl
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider

executor = HighThroughputExecutor(
    label="workers",
    address="127.0.0.1",
    cores_per_worker=0.5,
    max_workers_per_node=2,
    encrypted=False,
    heartbeat_period=1,
    heartbeat_threshold=20,
    provider=LocalProvider(init_blocks=1, min_blocks=1, max_blocks=1),
)
config = parsl.Config(executors=[executor], strategy="none")
"""


@pytest.fixture(params=["parsl", "local"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an engine whose processes the run starts."""
    if request.param == "local":
        return "local:2"
    pytest.importorskip("parsl", reason="PARSL IS NOT TESTED: pip install 'codebatch[parsl]'")
    return f"parsl:{write(tmp_path / 'cluster.py', PARSL)}"


def test_modules_of_the_tree_are_not_imported(url: str, tmp_path: Path) -> None:
    tree, imported = tmp_path / "tree", tmp_path / "imported"
    for name in ("codebatch", "logging", "multiprocessing", "parsl", "signal"):
        write(tree / f"{name}.py", f"import pathlib\npathlib.Path({str(imported)!r}).touch()\n")
    line = CommandLine(tree, {"TMPDIR": "/tmp"})  # The workers of Parsl need a short path, for their sockets.
    line("run", ".", "--on", url, "--store", tmp_path / "store")
    assert not imported.exists()


def test_killed_processes_of_an_engine_do_not_change_the_outputs(work: Work, url: str) -> None:
    process = work.start_run(url)
    work.wait_for_results(process)
    planned = {"analysis": 3, "part": 2, "engine": 1}
    with ProcessKiller(lambda: parts_by_role(MARK, work.mark), planned, work.count_results, seed=2) as killer:
        work.line.finish(process)
    assert killer.kills == planned
    work.check()
