"""No control character of a name reaches a terminal, whichever command prints it.

The only exceptions are the colors and links of codebatch itself. The tree, its records and its commands have names that
would control a terminal. Each command runs with standard output and standard error on a terminal, in each of its
formats.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import struct
import termios
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from codebatch.cli import cli
from codebatch.cli.output.terminal import printable_line
from codebatch.cli.reference.interface import describe_interface
from tests.support.command_line import SCRIPT, CommandLine, write
from tests.support.fork_server import started

TITLE = "\x1b]0;evil\x07"
NAMES = (
    f"a{TITLE}.py",
    "b\x9b95mevil.py",
    "c\x1b[95m\udc9b95mevil\udcff.py",
    "d\r\x1b[K\x1b[2Jevil.py",
    "e\u202eevil\u2066.py",
    f"f\n{TITLE}error: evil.py",
    f"dir\x1b[95m{TITLE}/x.py",
)
MODULE = f"g{TITLE}.js"
OWN_TASK = f"""
from codebatch.model.record import Diagnostic, Edge, Metric, Symbol

EVIL = {TITLE + chr(0x9B) + "95m"!r}


def task(file):
    path, path_b64 = file.path_fields
    of = dict(path=path, path_b64=path_b64)
    yield Diagnostic(
        **of, line=1, column=1, end_line=1, end_column=2, severity="error", code="own" + EVIL, message="found" + EVIL,
        tool="tool" + EVIL,
    )
    yield Symbol(
        **of, name="evil" + EVIL, symbol_type="function", qualified="evil" + EVIL, scope="", line=1, column=1,
        end_line=2, end_column=1, parameters=("p" + EVIL,), decorators=("d" + EVIL,),
    )
    yield Edge(**of, edge_type="calls", source="evil" + EVIL, target="target" + EVIL, line=1)
    yield Metric(**of, metric="metric" + EVIL, value=3, symbol="evil" + EVIL, line=1)
    if b"fails" in file.content:
        raise ValueError("evidence" + EVIL)
"""
WORK = f"""
[tasks.loud]
title = {json.dumps(f"title{TITLE}")}
run = "printf 'printed \\\\033]0;evil\\\\007\\\\n'; exit 1"

[tasks.asks]
run = {json.dumps(f"codebatch ask 'question{TITLE}' --choice yes || exit 75")}
"""

_OWN = re.compile(r"\x1b\[(?:0|1|31|32|33|35|36)m|\x1b\]8;;(?:file://[!-~]*)?\x1b\\|\r\x1b\[K")
"""Colors, links and the progress line as codebatch writes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """A project with hostile names, after two runs, an import and a run of commands."""

    codebatch: CommandLine
    store: Path
    object: str

    def on_a_terminal(self, *words: str) -> str:
        """Return everything that a command sends to a terminal, except escape sequences of codebatch itself."""
        controller, terminal = os.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {**self.codebatch.environment, "TERM": "xterm", "CODEBATCH_STORE": str(self.store)}
        arguments = [str(SCRIPT), *words]
        with started(arguments, self.codebatch.directory, environment, [terminal, terminal, terminal]) as process:
            os.close(terminal)
            assert process is not None
            sent = _read(controller)
            process.wait()
        os.close(controller)
        return _OWN.sub("", sent.decode("utf-8", "surrogateescape").replace("\r\n", "\n"))


def _read(descriptor: int) -> bytes:
    sent = b""
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:  # EIO: the last process that had the terminal open has closed it.
            return sent
        if not piece:
            return sent
        sent += piece


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    """A project for tests of reading commands. Commands that write must leave it usable for other tests."""
    codebatch = CommandLine(tmp_path_factory.mktemp("hostile"))
    tree, store = codebatch.directory, codebatch.directory / "store"
    body = "".join(f"    value_{value} = compute_it(number={value}, other='the same')\n" for value in range(14))
    for number, name in enumerate(NAMES):
        write(tree / name, f"import os\n\n\ndef f{number}(x):\n    if x:\n        return x\n\n\ndef copied():\n{body}")
    write(tree / MODULE, 'import "./h.js";\nexport const g = 1;\n')
    write(tree / "h.js", f'import {{ g }} from "./{MODULE}";\nexport const h = g;\n')
    write(tree / "fails.py", "fails = (\n")
    write(tree / "codebatch.toml", "[tasks.evil]\npython = 'evil_task.py:task'\n")
    write(tree / "evil_task.py", OWN_TASK)
    write(tree / "work.toml", WORK)
    write(tree / ".codebatchignore", "found.jsonl\nstore\n")
    named = ("--store", store)
    codebatch("run", ".", *named, "-q", status=3)
    write(tree / NAMES[0], f"import sys\n\n\ndef other(x):\n    return undefined\n\n\ndef copied():\n{body}")
    codebatch("run", ".", *named, "-q", status=3)
    evil = {"path": NAMES[0], "line": 1, "message": f"imported{TITLE}", "code": f"code{TITLE}", "tool": f"tool{TITLE}"}
    write(
        tree / "found.jsonl",
        "".join(json.dumps(finding) + "\n" for finding in (evil, {**evil, "path": f"none{TITLE}"})),
    )
    codebatch("import", "jsonl", "found.jsonl", "--as", "other", *named, status=3)
    codebatch("work", "run", *named, "-q", status=3)
    rows = codebatch("files", *named, "--json").records
    return Hostile(codebatch=codebatch, store=store, object=next(row["object"] for row in rows if row.get("object")))


FORMS = ((), ("--json",))
RECORDS = (*FORMS, *(("-o", form) for form in ("csv", "jsonl", "md", "table", "plain")))
FILE = NAMES[0]
WORDS: dict[str, Sequence[Sequence[str]]] = {
    "ast": [(FILE,)],
    "baseline show": [(f"none{TITLE}",)],
    "batch init": [("--pipeline", f"none{TITLE}")],
    "batch list": FORMS,
    "batch show": FORMS,
    "callers": [("evil*",), (f"evil{TITLE}",)],
    "cancel": [("--batch", f"none{TITLE}")],
    "cat-object": [("OBJECT",), (f"none{TITLE}",)],
    "check": [("latest~1", "latest"), ("latest~1", "latest", "--json"), (f"none{TITLE}",)],
    "config show": FORMS,
    "def": [("evil*",), (f"evil{TITLE}\x9b95m",), (f"evil{TITLE}\x9b95m", "--json")],
    "diagnose": FORMS,
    "diff": [(), ("latest~1", "latest"), ("latest~1", "latest", "--json"), ("latest~1", "latest", "--kind", "symbol")],
    "duplicates": [*RECORDS, ("--show", "1"), (FILE,)],
    "errors": FORMS,
    "events": [("--batch", "WORK")],
    "explain": [("findings",), (f"none{TITLE}",)],
    "explain-miss": [("latest", FILE), ("latest", f"none{TITLE}")],
    "export": [(form,) for form in ("sarif", "github", "gitlab", "checkstyle", "rdjson", "ctags")],
    "files": [*FORMS, ("--why", FILE)],
    "find": [("-l", "python", "--pattern", "compute_it($$$)", *form) for form in RECORDS],
    "findings": [*RECORDS, ("--all",), (FILE,), (f"none{TITLE}",)],
    "follow": [("--batch", "WORK"), ("--batch", "latest")],
    "gc": [("--dry-run",)],
    "graph": [*FORMS, ("--cycles",), ("--dot",), (MODULE,)],
    "help": [(f"none{TITLE}",)],
    "hotspots": [*RECORDS, ("--files",), (FILE,)],
    "impact": [(MODULE,), (MODULE, "--json"), (MODULE, "--tests"), (f"none{TITLE}",)],
    "improvements": [(), ("latest~1", "latest")],
    "inspect": [(FILE,), (f"{FILE}:1",), (FILE, "--all"), (FILE, "--json"), (FILE, "--explain")],
    "outline": [(FILE,), (NAMES[1],), (f"none{TITLE}",)],
    "pipeline": [("full",), (f"none{TITLE}",)],
    "references": [("copied", *form) for form in FORMS],
    "regressions": [(), ("latest~1", "latest"), ("latest~1", "latest", "-o", "csv")],
    "report": [("-o", "-"), ("-o", f"none{TITLE}/r.html")],
    "resume": [("--batch", "WORK"), ("--batch", f"none{TITLE}")],
    "rules list": FORMS,
    "rules show": [(f"none{TITLE}",)],
    "run": [(".",), (f"none{TITLE}",), (".", "--json"), (FILE, "-v"), (".", "--name", f"none{TITLE}")],
    "serve": [("--store", f"none{TITLE}")],
    "shards": [("--task", "lint"), ("--task", f"none{TITLE}")],
    "snapshot show": FORMS,
    "sql": [("select * from file", *form) for form in RECORDS] + [(f"select '{TITLE}' as \"column{TITLE}\"",)],
    "status": [(), ("--batch", "WORK"), ("--batch", "WORK", "--json")],
    "summary": FORMS,
    "task try": [("evil", FILE), ("evil", "fails.py"), ("evil", FILE, "--json")],
    "top": [("--by", "path"), ("--by", "code"), ("--by", "name"), ("--by", "path", "--json")],
    "trace": [(), ("--batch", "WORK")],
    "work attempts": FORMS,
    "work log": [(), ("loud",), (f"none{TITLE}",)],
    "work questions": FORMS,
    "work run": [("-f", f"none{TITLE}.toml"), ()],
    "work skip": [(f"none{TITLE}",)],
    **{f"query {noun}": [*RECORDS, (FILE,)] for noun in ("diagnostics", "edges", "files", "metrics", "symbols")},
    **{f"query {noun}": RECORDS for noun in ("duplicates", "failures", "outputs", "stats")},
}
"""The arguments of each command. A command that is not listed runs without arguments, and with `--json`."""
SHOWS_A_NAME = {
    "duplicates", "errors", "export", "files", "find", "findings", "graph", "hotspots", "impact", "inspect", "outline",
    "query diagnostics", "query duplicates", "query files", "query metrics", "query outputs", "query symbols", "sql",
    "references", "top", "work log", "work questions", "diff", "def",
}  # fmt: skip
"""Commands that show at least one hostile name, which must be escaped."""


@pytest.mark.parametrize("command", sorted((each.name for each in describe_interface(cli).commands), key="run".__eq__))
def test_no_control_character_in_a_name_reaches_a_terminal(hostile: Hostile, command: str) -> None:
    shown = ""
    work = next(path.parent.name for path in sorted((hostile.store / "batches").glob("*/work.json")))
    for words in WORDS.get(command, FORMS):
        given = [{"WORK": work, "OBJECT": hostile.object}.get(word, word) for word in words]
        text = hostile.on_a_terminal(*command.split(), *given)
        for line in text.split("\n"):
            bare = line.replace("\t", " ")
            assert printable_line(bare) == bare, (command, given, line)
        shown += text
    assert ("evil" in shown) or command not in SHOWS_A_NAME, shown


def test_every_command_in_the_tables_of_this_module_exists() -> None:
    assert {*WORDS, *SHOWS_A_NAME} <= {command.name for command in describe_interface(cli).commands}
