"""The engine of Dask, with a real scheduler and real workers on the loopback interface, with TLS."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from pathlib import Path

import pytest

from codebatch.coordinator.engines.foreign_objects import ForeignObjectRefused, RemoteError, refuse_foreign_objects
from codebatch.coordinator.engines.interface import Engine
from codebatch.engines.opening import EngineOptions, open_engine
from tests.engines.calls import MALICIOUS, Malicious, fail, note_start_and_wait, process_id, sleep_if_named
from tests.engines.certificates import CertificateFiles
from tests.engines.dask_cluster import DaskCluster
from tests.engines.test_opening import refused
from tests.engines.waiting import call_until_a_process_replies, wait_for_slots, wait_until

dask_config = pytest.importorskip("dask.config", reason="DASK IS NOT TESTED: pip install 'codebatch[dask]'")
distributed = pytest.importorskip("distributed", reason="DASK IS NOT TESTED: pip install 'codebatch[dask]'")

pytestmark = [
    pytest.mark.slow,
    # While Dask connects again to a scheduler that has died, it does not close the sockets of failed attempts.
    pytest.mark.filterwarnings("ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="TLS IS NOT TESTED: the program openssl is missing"),
]

CAPSULE_BYTES = 21_000_000


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    """The certificates of the clusters of this module."""
    return CertificateFiles(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def cluster(certificates: CertificateFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """A cluster with TLS and two workers."""
    with DaskCluster(tmp_path_factory.mktemp("cluster"), *certificates.arguments) as cluster:
        for _ in range(2):
            cluster.start_worker()
        yield cluster


@pytest.fixture
def engine(cluster: DaskCluster, certificates: CertificateFiles) -> Iterator[Engine]:
    """An engine with both workers."""
    engine = open_engine(cluster.url, certificates.options)
    wait_for_slots(engine, 2)
    yield engine
    engine.close()


def test_large_capsules_arrive_without_warnings(engine: Engine, capfd: pytest.CaptureFixture[str]) -> None:
    assert engine.name.startswith("dask tls://127.0.0.1:")
    assert engine.cores_per_slot == 1
    assert engine.is_alive()
    assert not logging.getLogger("tornado.application").isEnabledFor(logging.ERROR)
    assert engine.executor.submit(len, bytes(CAPSULE_BYTES)).result(120) == CAPSULE_BYTES
    assert engine.executor.submit(bytes, CAPSULE_BYTES).result(120) == bytes(CAPSULE_BYTES)
    assert isinstance(engine.executor.submit(fail, b"no").exception(120), ValueError)
    engine.close()
    assert not engine.is_alive()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("call", MALICIOUS)
def test_no_code_of_a_malicious_worker_runs(engine: Engine, tmp_path: Path, call: Callable[[bytes], bytes]) -> None:
    """Dask itself reads an exception in the worker. Each process that runs the code writes a file with its pid."""
    error = engine.executor.submit(call, os.fsencode(tmp_path)).exception(120)
    assert type(error) in (ForeignObjectRefused, RemoteError, Exception, ValueError)
    replies = engine.call_everywhere(call, os.fsencode(tmp_path), 60)
    assert [bool(reply.error) for reply in replies] == [True, True]
    assert not (tmp_path / str(os.getpid())).exists()
    assert engine.executor.submit(process_id, b"again").result(120).startswith(b"again")


def test_messages_of_a_malicious_scheduler_are_not_read(tmp_path: Path) -> None:
    """Values can be pickled in several parts of a message, not only as results."""
    from distributed.protocol import dumps, loads, to_serialize
    from distributed.protocol.pickle import dumps as pickled
    from distributed.protocol.serialize import ToPickle

    refuse_foreign_objects()
    malicious = Malicious(str(tmp_path))
    for message in (
        {"op": "x", "data": ToPickle(malicious)},
        {"op": "x", "data": to_serialize(malicious)},
        {"op": "x", "data": to_serialize([malicious])},
        {"op": "x", "data": to_serialize({"a": (malicious,)})},
    ):
        with pytest.raises(ForeignObjectRefused):
            loads([*map(bytes, dumps(message))])
    assert loads(dumps({"op": "x", "data": to_serialize(b"answer")}))["data"] == b"answer"
    with pytest.raises(ForeignObjectRefused):
        distributed.client.loads(pickled(malicious))
    assert [*tmp_path.iterdir()] == []


def test_equal_calls_are_executed_separately(engine: Engine) -> None:
    calls = [engine.executor.submit(time.monotonic_ns) for _ in range(4)]
    assert len({call.result(120) for call in calls}) == 4


def test_each_worker_replies_under_its_address(engine: Engine) -> None:
    replies = engine.call_everywhere(process_id, b"pid", 120)
    assert len({reply.answer for reply in replies}) == 2
    assert [reply.process for reply in replies] == sorted({reply.process for reply in replies})
    assert all(reply.process.startswith("tls://127.0.0.1:") and not reply.error for reply in replies)
    assert {reply.error for reply in engine.call_everywhere(fail, b"no", 30)} == {"ValueError: no"}
    assert replies[0].answer is not None
    pid = replies[0].answer.partition(b" ")[2]
    seconds, (first, second) = call_until_a_process_replies(engine, sleep_if_named, pid)
    assert (first.process, first.answer, first.error) == (replies[0].process, None, f"no reply within {seconds} s")
    assert (second.process, second.answer, second.error) == (replies[1].process, pid, "")


def test_a_cancelled_call_ends_at_once(engine: Engine, tmp_path: Path) -> None:
    call = engine.executor.submit(note_start_and_wait, os.fsencode(tmp_path))
    wait_until(lambda: [*tmp_path.iterdir()])
    assert call.cancel()
    with pytest.raises(CancelledError):
        call.result(0)
    (tmp_path / "finish").touch()
    assert engine.executor.submit(process_id, b"").result(120)


def test_certificates_of_the_configuration_of_dask_are_used(
    cluster: DaskCluster, certificates: CertificateFiles
) -> None:
    settings = {
        "distributed.comm.tls.ca-file": str(certificates.authority),
        "distributed.comm.tls.client.cert": str(certificates.certificate),
        "distributed.comm.tls.client.key": str(certificates.key),
    }
    with dask_config.set(settings):
        engine = open_engine(cluster.url, EngineOptions())
        assert engine.is_alive()
        engine.close()


def test_clients_without_a_valid_certificate_are_refused(
    cluster: DaskCluster, certificates: CertificateFiles, tmp_path: Path
) -> None:
    foreign = CertificateFiles(tmp_path / "foreign")
    encrypted = tmp_path / "encrypted.key"
    command = ["openssl", "pkcs8", "-topk8", "-in", certificates.key, "-out", encrypted, "-passout", "pass:x"]
    subprocess.run([*map(str, command)], check=True, timeout=30)
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("no certificate")
    ca, certificate, key = certificates.authority, certificates.certificate, certificates.key
    for options, message, hint in [
        (EngineOptions(), "requires a client certificate: --tls-ca and --tls-cert not given", "--tls-key"),
        (EngineOptions(tls_ca=ca), "requires a client certificate: --tls-cert not given", "--tls-key"),
        (EngineOptions(tls_cert=certificate, tls_key=key), "certificate: --tls-ca not given", "--tls-key"),
        (EngineOptions(tls_ca=ca, tls_cert=certificate), "the TLS files cannot be used", "PEM"),
        (EngineOptions(tls_ca=ca, tls_cert=foreign.certificate, tls_key=key), "cannot be used", "PEM"),
        (EngineOptions(tls_ca=garbage, tls_cert=certificate, tls_key=key), "cannot be used", "PEM"),
        (EngineOptions(tls_ca=tmp_path / "no.pem", tls_cert=certificate), "--tls-ca: cannot read", "PEM"),
        (EngineOptions(tls_ca=tmp_path, tls_cert=certificate), "it is not a regular file", "PEM"),
        (EngineOptions(tls_ca=ca, tls_cert=tmp_path / "no.pem"), "--tls-cert: cannot read", "PEM"),
        (EngineOptions(tls_ca=ca, tls_cert=certificate, tls_key=tmp_path / "no.key"), "--tls-key: cannot", "PEM"),
        (EngineOptions(tls_ca=ca, tls_cert=certificate, tls_key=encrypted), "has a passphrase", "without a passphrase"),
        (foreign.options, "the certificate of the scheduler at tls://127.0.0.1:", "--tls-ca FILE"),
        (
            EngineOptions(tls_ca=ca, tls_cert=foreign.certificate, tls_key=foreign.key),
            "refused the client certificate",
            "--tls-cert FILE --tls-key FILE",
        ),
    ]:
        with refused(message, hint):
            open_engine(cluster.url, options)


def test_a_scheduler_without_tls_is_used_only_by_its_own_protocol(
    certificates: CertificateFiles, cluster: DaskCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codebatch.engines.addresses.CONNECT_SECONDS", 2.0)
    tls = cluster.file.read_text().partition("tls://127.0.0.1:")[2].partition('"')[0]
    with DaskCluster(tmp_path, protocol="tcp") as plain:
        port = plain.file.read_text().partition("tcp://127.0.0.1:")[2].partition('"')[0]
        for host in ("127.0.0.1", "localhost"):
            engine = open_engine(f"dask:tcp://{host}:{port}", EngineOptions())
            assert engine.name == f"dask tcp://{host}:{port}"
            assert (engine.slots(), engine.call_everywhere(process_id, b"", 5), engine.is_alive()) == (0, [], True)
            engine.close()
        options = certificates.options
        for url, given, message in [
            (f"dask:tls://127.0.0.1:{port}", options, "TLS failed: WRONG_VERSION_NUMBER"),
            (f"dask:tcp://127.0.0.1:{port}", options, "TLS files are given"),
            (f"dask:tcp://127.0.0.1:{tls}", EngineOptions(), "it does not answer"),
        ]:
            with refused(message, "tls"):
                open_engine(url, given)


def test_futures_end_when_the_scheduler_is_killed(certificates: CertificateFiles, tmp_path: Path) -> None:
    with DaskCluster(tmp_path, *certificates.arguments) as cluster:
        cluster.start_worker()
        engine = open_engine(cluster.url, certificates.options)
        wait_for_slots(engine, 1)
        call = engine.executor.submit(note_start_and_wait, os.fsencode(tmp_path))
        wait_until(lambda: [*tmp_path.glob("started-*")])
        cluster.scheduler.kill()
        wait_until(lambda: not engine.is_alive())
        with pytest.raises(CancelledError):
            call.result(120)
        with pytest.raises(ConnectionError):
            engine.executor.submit(process_id, b"")
        assert (engine.slots(), engine.call_everywhere(process_id, b"", 1)) == (0, [])
        _close(engine)


def test_a_scheduler_that_does_not_answer_counts_as_dead(certificates: CertificateFiles, tmp_path: Path) -> None:
    with DaskCluster(tmp_path, *certificates.arguments) as cluster:
        engine = open_engine(cluster.url, certificates.options)
        cluster.scheduler.send_signal(signal.SIGSTOP)
        assert not engine.is_alive()
        cluster.scheduler.send_signal(signal.SIGCONT)
        wait_until(engine.is_alive)
        cluster.scheduler.send_signal(signal.SIGSTOP)
        call = engine.executor.submit(process_id, b"")
        assert call.cancel()
        _close(engine)


def test_a_call_whose_worker_was_killed_is_executed_by_another_or_ends(
    certificates: CertificateFiles, tmp_path: Path
) -> None:
    with DaskCluster(tmp_path, *certificates.arguments, allowed_failures=1) as cluster:
        workers = [cluster.start_worker() for _ in range(2)]
        engine = open_engine(cluster.url, certificates.options)
        wait_for_slots(engine, 2)
        call = engine.executor.submit(note_start_and_wait, os.fsencode(tmp_path))
        for count in (1, 2):
            wait_until(lambda count=count: len([*tmp_path.glob("started-*")]) == count)  # type: ignore[misc]
            pids = {int(path.name.partition("-")[2]) for path in tmp_path.glob("started-*")}
            assert not call.done()
            for worker in workers:
                if worker.pid in pids:
                    worker.kill()
        assert str(call.exception(120)).startswith("distributed.scheduler.KilledWorker(")
        wait_for_slots(engine, 0)
        assert engine.is_alive()
        engine.close()


def test_a_call_during_the_loss_of_the_connection_is_cancelled() -> None:
    """The connection is lost after the first look at its status, while the call is submitted."""
    from codebatch.engines.dask import DaskExecutor

    client = FlakyClient(["running", "connecting"])
    future = DaskExecutor(client).submit(process_id, b"")
    assert future.cancelled()


class FlakyClient:
    """A client whose status changes with each look."""

    def __init__(self, statuses: list[str]) -> None:
        self._statuses = statuses

    @property
    def status(self) -> str:
        """The next status."""
        return self._statuses.pop(0)

    @property
    def loop(self) -> FlakyClient:
        """The event loop, which runs nothing."""
        return self

    def add_callback(self, *_: object) -> None:
        """Run nothing."""

    def submit(self, *_: object, **options: object) -> Future[bytes]:
        """Return a call that waits."""
        return Future()


def _close(engine: Engine) -> None:
    engine.close()
    gc.collect()  # The warnings about sockets of Dask appear in this test, not in another module.
