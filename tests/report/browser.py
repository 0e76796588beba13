"""A real browser, headless, asked over a pair of pipes (its DevTools protocol)."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DEADLINE_SECONDS = 120.0
_SETTINGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
# It reads descriptor 3 and writes 4.
_LAUNCH = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Page:
    """A page of the browser. `requested` are the addresses that it asked for, `complaints` what its console said."""

    def __init__(self, process: subprocess.Popen[bytes], write: int, read: int) -> None:
        self._process = process
        self._write = write
        self._read = read
        self._pending = b""
        self._asked = 0
        self._session = ""
        self._events: list[dict[str, Any]] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def open(self, path: Path, *, width: int = 1600, height: int = 1000, scheme: str = "light") -> None:
        """Load a file, until it is drawn."""
        self._events.clear()
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._call("Page.navigate", url=path.as_uri())
        self._wait("Page.loadEventFired")
        self.ask("new Promise((told) => requestAnimationFrame(() => requestAnimationFrame(told)))")

    def ask(self, expression: str) -> Any:
        """What an expression of JavaScript is."""
        found = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key, and let it go."""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, "ArrowUp": 38}
        about: dict[str, Any] = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        text = {"text": "\r"} if key == "Enter" else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        self._call("Input.dispatchKeyEvent", type="keyUp", **about)

    def picture(self, clip: Mapping[str, float] | None = None) -> bytes:
        """What it looks like, as PNG."""
        part = {"clip": {**clip, "scale": 1}} if clip else {}
        return base64.b64decode(self._call("Page.captureScreenshot", captureBeyondViewport=True, **part)["data"])

    def print(self) -> bytes:
        """What it prints, as PDF."""
        return base64.b64decode(self._call("Page.printToPDF", printBackground=True)["data"])

    @property
    def requested(self) -> list[str]:
        """Addresses that were asked for since it was opened."""
        return [each["params"]["request"]["url"] for each in self._of("Network.requestWillBeSent")]

    @property
    def complaints(self) -> list[Any]:
        """What the console said, and what was thrown, since it was opened."""
        said = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening")
        return [each["params"] for method in said for each in self._of(method)]

    def _of(self, method: str) -> list[dict[str, Any]]:
        return [each for each in self._events if each.get("method") == method]

    def _call(self, method: str, **params: object) -> dict[str, Any]:
        self._asked += 1
        message: dict[str, Any] = {"id": self._asked, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while True:
            told = self._next()
            if told.get("id") == self._asked:
                assert "error" not in told, told
                result: dict[str, Any] = told["result"]
                return result
            self._events.append(told)

    def _wait(self, method: str) -> None:
        while not self._of(method):
            self._events.append(self._next())

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser says nothing"
            data = os.read(self._read, 1 << 20)
            assert data, "the browser is gone"
            self._pending += data
        message, _, self._pending = self._pending.partition(b"\0")
        told: dict[str, Any] = json.loads(message)
        return told


@contextmanager
def browse(directory: Path) -> Iterator[Page]:
    """A browser that keeps what it keeps in a directory."""
    assert CHROMIUM is not None
    theirs_read, ours_write = os.pipe()
    ours_read, theirs_write = os.pipe()
    launcher = (sys.executable, "-c", _LAUNCH, str(theirs_read), str(theirs_write))
    process = subprocess.Popen(
        [*launcher, CHROMIUM, *_SETTINGS, f"--user-data-dir={directory}", "about:blank"],
        pass_fds=(theirs_read, theirs_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(directory)},
    )
    os.close(theirs_read)
    os.close(theirs_write)
    try:
        yield Page(process, ours_write, ours_read)
    finally:
        os.close(ours_write)
        os.close(ours_read)
        process.kill()
        process.wait()
