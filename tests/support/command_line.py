"""The console script as a real process in a clean environment, and checks that hold for every command."""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types
import msgspec
import pytest

from codebatch.model.documents import encode_document
from codebatch.store.batches.batch_directory import decode_batch
from tests.support.fork_server import LOCALE, run_forked

SCHEMAS = Path(__file__).parent.parent.parent / "schemas"
SCRIPT = Path(sys.executable).with_name("codebatch")
DEADLINE_SECONDS = 180.0
UNPRIVILEGED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
"""Prefix of a command that makes file permissions apply to it, even if the tests run as root."""

permissions_bind = pytest.mark.skipif(
    bool(UNPRIVILEGED) and shutil.which("setpriv") is None,
    reason="this root cannot give up its privileges (no setpriv)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A command that has ended, with its exit status and output."""

    command: str
    status: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Standard output."""
        return self.stdout.decode("utf-8", "surrogateescape")

    @property
    def lines(self) -> list[str]:
        """The lines of standard output."""
        return self.text.splitlines()

    @property
    def notes(self) -> str:
        """Standard error."""
        return self.stderr.decode("utf-8", "surrogateescape")

    @property
    def json(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.stdout)

    @property
    def records(self) -> Any:
        """The rows of a JSON answer, without its description of the batch."""
        return self.json["records"]

    @property
    def error(self) -> dict[str, Any]:
        """The error on the last line of standard error, as `--json` prints it."""
        document = json.loads(self.notes.splitlines()[-1])
        check_schema(document)
        error = document["error"]
        assert error.keys() == {"code", "message", "hint", "exit"}
        assert error["exit"] == self.status
        assert isinstance(error, dict)
        return error


class CommandLine:
    """`codebatch`, run in a directory. A call with arguments runs the command and checks its exit status."""

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str] | None = None,
        *,
        prefix: Sequence[str] = (),
        plugins: Path | None = None,
    ) -> None:
        """`prefix` is a program that runs the script, such as UNPRIVILEGED. `plugins` has more packages."""
        self.directory = directory
        self.plugins = plugins
        self.prefix = prefix
        self.environment = {
            "PATH": f"{SCRIPT.parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": f"{directory}/no-home",  # No command creates a store in the home directory by default.
            "LC_ALL": LOCALE,
            "TMPDIR": str(directory),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            **(environment or {}),
        }

    def __call__(
        self, *arguments: str | bytes | Path, status: int = 0, cwd: Path | None = None, has_answer: bool = False
    ) -> Ended:
        """Run the command to its end. Fail if its exit status differs, or if it printed a traceback.

        `has_answer`: the command prints an answer before its error.
        """
        shown = " ".join(os.fsdecode(argument) for argument in arguments)
        returned, stdout, stderr = self._run(arguments, cwd or self.directory)
        return self.check(shown, returned, stdout, stderr, status, has_answer=has_answer)

    def ends(self, *arguments: str | bytes | Path) -> Ended:
        """Run the command to its end, with any exit status."""
        returned, stdout, stderr = self._run(arguments, self.directory)
        return self.check(str(arguments), returned, stdout, stderr, returned)

    def shell(self, line: str, *, status: int = 0) -> Ended:
        """Run a line of bash."""
        process = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=self.directory,
            env=self._whole_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        return self.check(line, process.returncode, process.stdout, process.stderr, status)

    def start(self, *arguments: str | Path) -> subprocess.Popen[bytes]:
        """Start the command without waiting; the caller calls `finish`. SIGINT stops it, as from a terminal."""
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            # The tests run as a background job, and children inherit that the signal is ignored.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return subprocess.Popen(
            [*self.prefix, SCRIPT, *arguments],
            cwd=self.directory,
            env=self._whole_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def finish(self, process: subprocess.Popen[bytes], *, status: int = 0) -> Ended:
        """Wait for a started process, and check it as `__call__` does."""
        stdout, stderr = process.communicate(timeout=DEADLINE_SECONDS)
        return self.check(str(process.args), process.returncode, stdout, stderr, status)

    def _run(self, arguments: Sequence[str | bytes | Path], directory: Path) -> tuple[int, bytes, bytes]:
        """Run a command. Return its exit status, standard output and standard error."""
        if not self.prefix:
            forked = run_forked(
                [SCRIPT, *arguments], directory, self.environment, DEADLINE_SECONDS, plugins=self.plugins
            )
            if forked is not None:
                return forked
        process = subprocess.run(
            [*self.prefix, SCRIPT, *arguments],
            cwd=directory,
            env=self._whole_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        return process.returncode, process.stdout, process.stderr

    def _whole_environment(self) -> dict[str, str]:
        """Return the environment of a new process, including PYTHONPATH for the plugins."""
        return self.environment if self.plugins is None else {**self.environment, "PYTHONPATH": str(self.plugins)}

    @staticmethod
    def check(
        command: str, returned: int, stdout: bytes, stderr: bytes, status: int, *, has_answer: bool = False
    ) -> Ended:
        """Check the output of a command for everything that holds for every command, and return it."""
        ended = Ended(command=command, status=returned, stdout=stdout, stderr=stderr)
        assert returned == status, f"{command}: status {returned}\n{ended.text}\n{ended.notes}"
        assert b"Traceback" not in stderr, ended.notes
        if status in (2, 4, 5):
            assert bool(stdout) == has_answer, f"the output beside the error is unexpected: {ended.text}"
            assert "error" in ended.notes
        # `stdout` is None if the test redirected it.
        if stdout and stdout.startswith(b"{") and b'"schema": "codebatch.' in stdout:
            check_schema(ended.json)
        return ended


def check_schema(answer: Any, name: str | None = None) -> None:
    """Check an answer against the schema of a name, by default the schema that the answer names itself."""
    name = name or answer["schema"].removeprefix("codebatch.").removesuffix("/1")
    assert name is not None
    schema_of_answer(name).validate(answer)


@functools.cache
def schema_of_answer(name: str) -> jsonschema.Draft202012Validator:
    """Return a validator for the answer of a name. It rejects members that the schema does not describe."""
    schema = json.loads((SCHEMAS / f"{name}-answer.json").read_bytes())
    for described in schema["$defs"].values():
        if "properties" in described:
            described.setdefault("additionalProperties", False)
    return jsonschema.Draft202012Validator(schema)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition is true. The pauses leave CPU time to the process that must make it true."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"the deadline passed before this happened: {what}")
        time.sleep(0.002)


def write(path: Path, content: bytes | str) -> Path:
    """Write a file, and create its directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def make_project(root: Path) -> Path:
    """Write a small tree of several languages, with findings, a syntax error, a binary file and a non-UTF-8 name."""
    write(root / "src" / "main.py", "import os\n\n\nclass Main:\n    def run(self, code):\n        return eval(code)\n")
    write(root / "src" / "broken.py", "def broken(:\n    pass\n")
    write(root / "web" / "app.js", "export function app(a) {\n  return a == 1;\n}\n")
    write(root / "web" / "types.ts", "export interface Point { x: number }\n")
    write(root / "native" / "main.c", "int main(void) { return 0; }\n")
    write(root / "data.json", '{"a": [1, 2]}\n')
    write(root / "logo.bin", bytes(range(256)))
    write(root / "Grüße, Welt.py", "x = 1\n")
    write(Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.py")), "import sys\n\n\ndef latin():\n    pass\n")
    return root


def set_apart(codebatch: CommandLine, name: str) -> None:
    """Make a directory below the current one a project of its own, with the store of the current directory.

    Otherwise a codebatch.toml in the current directory would make the directory part of that project.
    """
    codebatch.shell(f"git init -q {name}")
    codebatch.environment["CODEBATCH_STORE"] = str(codebatch.directory / ".codebatch")


def copy_project(source: Path, target: Path) -> None:
    """Copy a directory and the store in it, and make the copy the source of the copied batches."""
    shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True)
    for path in target.glob(".codebatch/batches/*/batch.json"):
        about = decode_batch(path.read_bytes())
        new_sources = (root.replace(os.fsencode(source), os.fsencode(target), 1) for root in about.sources)
        path.write_bytes(encode_document(msgspec.structs.replace(about, sources=tuple(new_sources))))


def make_many(root: Path, count: int) -> Path:
    """Write many small modules, each a little different, so that a run takes some time and has several shards."""
    for index in range(count):
        body = "".join(
            f"def f{n}(x):\n    if x > {n}:\n        return x * {index}\n    return {n}\n\n\n" for n in range(8)
        )
        write(root / f"package{index % 7}" / f"module{index:03}.py", f"import os\n\n\n{body}")
    return root


def make_modules(root: Path, count: int = 12) -> Path:
    """Write small modules in one directory. Each has an unused import."""
    for number in range(count):
        write(root / f"m{number:02d}.py", f"import os\n\n\ndef f{number}(x):\n    return x\n")
    return root


def write_own_task(root: Path, name: str, code: str, settings: str = "") -> Path:
    """Write a custom task of a project: its module, and a codebatch.toml of `settings` and this task."""
    write(root / "codebatch.toml", f"{settings}[tasks.{name}]\npython = '{name}.py:task'\n")
    return write(root / f"{name}.py", code)
