"""Notifying somebody: a command of the user's is given events as JSON on its standard input (SPEC.md "Notifications").

A thread of its own runs one after the other, so that one that hangs or fails does no harm: it is killed when its time
is over, and nothing is tried again. What is not delivered a while after the end of the batch is given up.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

import msgspec

from codebatch.model.batch_event import BatchEvent, name_of
from codebatch.model.work import Notify

WAITING_MAX = 1000
"""Events that wait to be told while a command takes its time; of more, those that come are given up."""


class Notifier:
    """Tells somebody of those events of a batch that he wants to know of, from `begin` to `close`."""

    def __init__(self, notify: Notify, *, directory: Path, environment: Mapping[str, str]) -> None:
        """`directory` is where the command starts, `environment` what it has."""
        self._notify = notify
        self._wanted = frozenset(notify.events)
        self._directory = directory
        self._environment = environment
        self._waiting: queue.Queue[BatchEvent | None] = queue.Queue(WAITING_MAX)
        self._thread = threading.Thread(target=self._deliver_all, name="notify", daemon=True)
        self._is_over = threading.Event()
        self.problem: str | None = None
        """What went wrong first, for people."""

    def begin(self) -> None:
        """Deliver from now on."""
        try:
            self._thread.start()
        except RuntimeError as error:
            self.problem = f"nobody is notified: {error}"

    def tell(self, event: BatchEvent) -> None:
        """Have an event delivered, if it is one of those that are wanted."""
        if name_of(event) in self._wanted:
            with contextlib.suppress(queue.Full):
                self._waiting.put_nowait(event)

    def close(self) -> None:
        """Wait until all is delivered, for as long as the command may take once; what is left is given up."""
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(None)
        if self._thread.ident is not None:
            self._thread.join(self._notify.timeout_seconds + 1)
        self._is_over.set()

    def _deliver_all(self) -> None:
        while (event := self._waiting.get()) is not None and not self._is_over.is_set():
            try:
                self._deliver(event)
            except OSError as error:
                self.problem = self.problem or f"nobody is notified: {error.strerror or error}"

    def _deliver(self, event: BatchEvent) -> None:
        run = self._notify.command
        process = subprocess.Popen(
            ["/bin/sh", "-c", run] if isinstance(run, str) else run,
            cwd=self._directory,
            env={**self._environment, "CODEBATCH_BATCH": event.batch_id, "CODEBATCH_EVENT": name_of(event)},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.communicate(msgspec.json.encode(event) + b"\n", timeout=self._notify.timeout_seconds)
            if process.returncode:
                self.problem = self.problem or f"notify ended with status {process.returncode}; it is not tried again"
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            self.problem = self.problem or f"notify took longer than {self._notify.timeout_seconds:g} s, and was killed"
