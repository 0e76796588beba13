"""A real headless browser, controlled over a pair of pipes with its DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.resources import is_readable

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
# The browser reads descriptor 3 and writes descriptor 4.
_LAUNCH = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Page:
    """A page of the browser."""

    def __init__(self, process: subprocess.Popen[bytes], write: int, read: int) -> None:
        self._process = process
        self._write = write
        self._read = read
        self._pending = b""
        self._call_count = 0
        self._session = ""
        self._events: list[dict[str, Any]] = []
        self._attach(self._call("Target.createTarget", url="about:blank")["targetId"])

    def open(
        self, address: Path | str, *, width: int = 1600, height: int = 1000, scheme: str = "light", motion: str = ""
    ) -> None:
        """Load a file, or an address, and wait until the page is drawn. `motion` is `prefers-reduced-motion`."""
        self._events.clear()
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": motion}
        self._call(
            "Emulation.setEmulatedMedia",
            features=[{"name": name, "value": value} for name, value in features.items()],
        )
        self._call("Page.bringToFront")  # A page in the background is not drawn.
        # Without this, another fragment of the same address would not load the page again.
        self._call("Page.navigate", url="about:blank")
        self._wait("Page.loadEventFired")
        self._events.clear()
        self._call("Page.navigate", url=address if isinstance(address, str) else address.as_uri())
        self._wait("Page.loadEventFired")
        self.ask("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")

    def ask(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript. If it is a promise, wait for it."""
        result = self._call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_until(self, condition: str, seconds: float = 40.0) -> None:
        """Wait until a condition of JavaScript holds. Fail with the text of the page if it does not."""
        holds = self.ask(
            f"""new Promise((resolve) => {{
                const end = Date.now() + {seconds * 1000};
                const check = () => {{
                    let holds = false;
                    try {{ holds = Boolean({condition}); }} catch {{ /* An element does not exist yet. */ }}
                    if (holds || Date.now() > end) resolve(holds);
                    else setTimeout(check, 20);
                }};
                check();
            }})"""
        )
        assert holds, f"{condition} does not hold:\n{self.ask('document.body.innerText')}\n{self.complaints}"

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key, and release it. A printable key enters its character."""
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, "ArrowUp": 38}
        code = codes[key] if key in codes else ord(key.upper())
        event: dict[str, Any] = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 8 * shift}
        text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", **event, **text)
        self._call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text: str) -> None:
        """Enter a text in the focused element."""
        self._call("Input.insertText", text=text)

    def switch_to(self, start: str) -> None:
        """Wait for a page whose address starts with a text, such as a new tab, and continue with this page."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            targets = self._call("Target.getTargets")["targetInfos"]
            found = [target["targetId"] for target in targets if target["url"].startswith(start)]
            if found:
                return self._attach(found[0])
            assert time.monotonic() < deadline, targets
            time.sleep(0.02)

    def _attach(self, target: str) -> None:
        self._session = ""
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def picture(self, clip: Mapping[str, float] | None = None) -> bytes:
        """Return a picture of the page as PNG."""
        part = {"clip": {**clip, "scale": 1}} if clip else {}
        return base64.b64decode(self._call("Page.captureScreenshot", captureBeyondViewport=True, **part)["data"])

    def print(self) -> bytes:
        """Return the printed page as PDF."""
        return base64.b64decode(self._call("Page.printToPDF", printBackground=True)["data"])

    @property
    def requested(self) -> list[str]:
        """The addresses that the page requested since it was opened, those of WebSockets included."""
        requests = [event["params"]["request"]["url"] for event in self._of("Network.requestWillBeSent")]
        return requests + [event["params"]["url"] for event in self._of("Network.webSocketCreated")]

    @property
    def complaints(self) -> list[Any]:
        """The console messages, uncaught exceptions and dialogs since the page was opened."""
        methods = (
            "Runtime.consoleAPICalled",
            "Runtime.exceptionThrown",
            "Log.entryAdded",
            "Page.javascriptDialogOpening",
        )
        return [event["params"] for method in methods for event in self._of(method)]

    def _of(self, method: str) -> list[dict[str, Any]]:
        return [event for event in self._events if event.get("method") == method]

    def _call(self, method: str, **params: object) -> dict[str, Any]:
        self._call_count += 1
        message: dict[str, Any] = {"id": self._call_count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while True:
            answer = self._next()
            if answer.get("id") == self._call_count:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._events.append(answer)

    def _wait(self, method: str) -> None:
        while not self._of(method):
            self._events.append(self._next())

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while b"\0" not in self._pending:
            assert is_readable(self._read, deadline - time.monotonic()), "the browser does not answer"
            data = os.read(self._read, 1 << 20)
            assert data, "the browser has ended"
            self._pending += data
        message, _, self._pending = self._pending.partition(b"\0")
        document: dict[str, Any] = json.loads(message)
        return document


@contextmanager
def browse(directory: Path) -> Iterator[Page]:
    """Start a browser that keeps its profile in a directory."""
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
