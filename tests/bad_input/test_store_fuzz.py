"""Reading commands on a store with any damaged file: the answer is unchanged or the damage is reported.

Kinds of damage: a bit flipped, the file cut, emptied, appended to, overwritten with zeros from some byte on, deleted.
An answer may equal the answer of the undamaged store, be an error with exit status 4, or differ and report the damage.
Exit status 70 is a failure. `run` on an unfinished store must produce the same result or end with 4.

The tests draw a sample with a seed. CODEBATCH_STORE_FUZZ sets the number of damages for each file and kind, for longer
tests.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from codebatch.cli import cli
from codebatch.cli.framework.exit import run_to_exit_status
from tests.support.command_line import CommandLine, copy_project, make_project, write

ROUNDS = int(os.environ.get("CODEBATCH_STORE_FUZZ", "0"))
RUNS = 60 * ROUNDS or 5
SEED = 1

SETTINGS = """
[shard]
files_average = 3
files_min = 2
files_max = 4
[tasks.picky]
python = "picky.py:task"
"""
PICKY = "def task(file):\n    if file.path == b'web/app.js':\n        raise ValueError('this one not')\n    return ()\n"

QUESTIONS = tuple(
    tuple(line.split())
    for line in """
batch list
snapshot list
status
tasks
shards --task parse
shards --task lint
summary
errors
top
top --by path
inspect native/main.c
inspect src/main.py --explain
query outputs
query diagnostics
query outputs --task picky
files
files --snapshot latest
references run
impact src/main.py
graph
graph --cycles
ast src/main.py --batch latest
""".strip().splitlines()
)

FORMS = [(*question, *form) for question in QUESTIONS for form in ((), ("--json",))]

DAMAGE_REPORTS = ("DAMAGED", "damaged", "is missing", "passed over", "is lost", "cannot be read", "not in any pack")

Damage = Callable[[bytes, random.Random], bytes | None]


def flip(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def make_foreign(data: bytes, chance: random.Random) -> bytes:
    """Insert a byte that cannot begin a UTF-8 sequence."""
    place = chance.randrange(len(data))
    return data[:place] + b"\xff" + data[place + 1 :]


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def cut_by_one(data: bytes, chance: random.Random) -> bytes:
    return data[:-1]


def empty(data: bytes, chance: random.Random) -> bytes:
    return b""


def append(data: bytes, chance: random.Random) -> bytes:
    return data + chance.choice([b"\n", b"\0", b"x\n", data])


def zero(data: bytes, chance: random.Random) -> bytes:
    """Overwrite the end with zeros, as file systems leave data that they had not written yet."""
    place = chance.randrange(len(data))
    return data[:place] + bytes(len(data) - place)


def delete(data: bytes, chance: random.Random) -> None:
    return None


DAMAGES: tuple[Damage, ...] = (flip, make_foreign, cut, cut_by_one, empty, append, zero, delete)


@dataclass(frozen=True, slots=True)
class Answer:
    """The output of a command, and its exit status."""

    status: int
    stdout: bytes
    stderr: str

    @property
    def reports_damage(self) -> bool:
        return any(word in self.stderr or word.encode() in self.stdout for word in DAMAGE_REPORTS)


def ask(arguments: tuple[str, ...]) -> Answer:
    """Run a command in this process, which allows hundreds of commands a second."""
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        status = run_to_exit_status(cli, arguments)
    out, err = (stream.detach() for stream in (stdout, stderr))
    assert isinstance(out, io.BytesIO)
    assert isinstance(err, io.BytesIO)
    return Answer(status, out.getvalue(), err.getvalue().decode("utf-8", "replace"))


class Store:
    """A store to damage file by file, and to restore."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._sound: dict[Path, bytes] = {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}

    @property
    def files(self) -> list[Path]:
        return list(self._sound)

    def sound(self, path: Path) -> bytes:
        return self._sound[path]

    def damaged(self, path: Path, damage: Damage, chance: random.Random) -> bool:
        """Damage a file and return whether its bytes changed. All hard links of the file are damaged too."""
        sound = self._sound[path]
        if not sound and damage not in (append, delete):
            return False
        changed = damage(sound, chance)
        if changed == sound:
            return False
        if changed is None:
            path.unlink()
        else:
            path.write_bytes(changed)
        return True

    def repair(self, path: Path) -> None:
        """Undo the damage, and remove what commands recorded about it."""
        for record in self.root.glob("objects/*.bad"):
            record.unlink()
        for file in {path, *self.root.glob("objects/*.idx")} & self._sound.keys():
            file.write_bytes(self._sound[file])

    def is_sound(self) -> bool:
        return self._sound == {path: path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[CommandLine, str]:
    """A project with a finished store, and its result digest. One task failed for one file."""
    root = tmp_path_factory.mktemp("fuzz")
    make_project(root)
    write(root / "src" / "other.py", "import main\n\nmain.Main().run('1')\n")
    write(root / "codebatch.toml", SETTINGS)
    write(root / "picky.py", PICKY)
    codebatch = CommandLine(root)
    digest = codebatch("run", ".", "-j", "2", "--json", status=3).json["result_digest"]
    return codebatch, str(digest)


@pytest.fixture
def here(project: tuple[CommandLine, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project in the current directory.

    Hard links are preserved, because commits are published by link.
    """
    copied = tmp_path / "copied"
    copy(project[0].directory, copied)
    monkeypatch.chdir(copied)
    monkeypatch.setenv("CODEBATCH_STORE", str(copied / ".codebatch"))  # A copied store is trusted only if it is named.
    monkeypatch.setattr(sys, "path", [*sys.path])
    return copied


def copy(source: Path, target: Path) -> None:
    """Copy a project with its store, and preserve hard links."""
    copy_project(source, target)
    first: dict[int, Path] = {}
    for path in sorted(source.rglob("*")):
        if path.is_file() and path.stat().st_nlink > 1:
            known = first.setdefault(path.stat().st_ino, path)
            if known != path:
                copied = target / path.relative_to(source)
                copied.unlink()
                copied.hardlink_to(target / known.relative_to(source))


def unfinish(root: Path) -> Path:
    """Remove the outputs and most outcomes of one task, as a killed coordinator leaves a store."""
    store = root / ".codebatch"
    for outputs in store.glob("batches/*/outputs/*"):
        shutil.rmtree(outputs)
    for register in sorted(store.glob("batches/*/outcomes/*.lint.r1"))[1:]:
        register.unlink()
    for register in store.glob("batches/*/outcomes/project-*"):
        register.unlink()
    return store


def test_damage_of_a_finished_store_never_becomes_an_answer(here: Path) -> None:
    store = Store(here / ".codebatch")
    sound = {form: ask(form) for form in FORMS}
    assert {answer.status for answer in sound.values()} == {0, 3}, (
        "a task failed, and answers that it affects report this"
    )
    trial_count = 0
    wrong: list[str] = []
    for path, damage, form in iter_trials(store, 1):
        name = path.relative_to(store.root)
        answer = ask(form)
        store.repair(path)
        trial_count += 1
        if problem := problem_of(path, form, sound[form], answer):
            wrong.append(f"{damage.__name__} {name}: {' '.join(form)}: {problem}")
    assert not wrong, f"{len(wrong)} of {trial_count}:\n" + "\n".join(wrong[:60])
    assert trial_count > 600
    assert store.is_sound()


def test_damage_of_an_unfinished_store_never_becomes_a_record(here: Path) -> None:
    """Damaged work is open again, like work that was never done. Records that are returned are right."""
    store = Store(unfinish(here))
    sound = {form: ask(form) for form in FORMS}
    assert {answer.status for answer in sound.values()} <= {0, 3}
    every = records(ask(("query", "outputs", "--json")).stdout)
    assert every
    wrong: list[str] = []
    for path, damage, form in iter_trials(store, 1):
        answer = ask(form)
        is_list = form[:2] in (("query", "outputs"), ("query", "diagnostics")) and form[-1] == "--json"
        store.repair(path)
        name = path.relative_to(store.root)
        if answer.status not in (0, 3, 4) or (answer.status == 4 and answer.stdout):
            wrong.append(f"{damage.__name__} {name}: {' '.join(form)}: status {answer.status} {answer.stderr[-300:]!r}")
        elif answer.stdout and is_list and not records(answer.stdout) <= every:
            wrong.append(f"{damage.__name__} {name}: {' '.join(form)}: a record that was not there")
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:60])
    assert store.is_sound()


def records(answer: bytes) -> set[str]:
    """Return the records of a query, from a list or from an object."""
    document = json.loads(answer)
    return {json.dumps(record) for record in (document["records"] if isinstance(document, dict) else document)}


def test_damaged_unfinished_store_yields_the_same_result(
    here: Path, project: tuple[CommandLine, str], tmp_path: Path
) -> None:
    store = Store(unfinish(here))
    chance = random.Random(SEED)
    every = [(path, damage) for path in store.files for damage in DAMAGES]
    wrong: list[str] = []
    for number, (path, damage) in enumerate(chance.sample(every, RUNS)):
        copied = tmp_path / f"run{number}"
        copy(here, copied)
        name = path.relative_to(store.root)
        target = copied / ".codebatch" / name
        sound = store.sound(path)
        changed = damage(sound, chance) if sound or damage in (append, delete) else sound
        if changed is None:
            target.unlink()
        else:
            target.write_bytes(changed)
        problem = problem_of_run(
            CommandLine(copied, {"CODEBATCH_STORE": str(copied / ".codebatch")}),
            project[1],
            is_store=name == Path("store.json"),
        )
        if problem:
            wrong.append(f"{damage.__name__} {name}: {problem}")
        shutil.rmtree(copied)
    assert not wrong, f"{len(wrong)} of {RUNS}:\n" + "\n".join(wrong[:60])


def problem_of_run(codebatch: CommandLine, digest: str, *, is_store: bool) -> str:
    """Return what is wrong with `run` on a damaged store.

    If `run` refuses it, the new batch that the hint suggests is checked.
    """
    for arguments in (("run", ".", "--json"), ("run", ".", "--again", "--json")):
        ended = codebatch.ends(*arguments)
        if ended.status == 3 and ended.json["result_digest"] == digest:
            return ""
        if ended.status != 4 or ended.stdout:
            return f"{ended.command}: status {ended.status}: {ended.stdout[:300]!r} {ended.stderr[-300:]!r}"
        if is_store:
            return ""
    return "a new batch is refused too"


def iter_trials(store: Store, share: int) -> Iterator[tuple[Path, Damage, tuple[str, ...]]]:
    """Damage each file in each way, and yield `share` questions for each damage.

    The sample is the same in each test run.
    """
    for number, path in enumerate(store.files):
        for damage in DAMAGES:
            chance = random.Random(f"{SEED} {number} {damage.__name__}")
            for _ in range(ROUNDS or 1):
                for form in FORMS if ROUNDS else chance.sample(FORMS, share):
                    if store.damaged(path, damage, chance):
                        yield path, damage, form


def without_evidence(form: tuple[str, ...], answer: Answer) -> list[object]:
    """Return an answer of `errors` without the evidence from journals."""
    if form[-1] == "--json":
        return [{**record, "evidence": None} for record in json.loads(answer.stdout)]
    return [line for line in answer.stdout.splitlines() if not line.startswith(b" ")]


def problem_of(path: Path, form: tuple[str, ...], sound: Answer, answer: Answer) -> str:
    """Return what is wrong with an answer from a damaged store.

    The result is empty if the answer is right, an error, or reports the damage.
    """
    if answer.status == 4 and answer.stdout == b"":
        return ""
    if answer.status in (0, 3) and answer.reports_damage:
        return ""
    known = answer.stdout
    if "cache" in path.parts:  # Without the stat cache, it is unknown whether the tree has changed.
        known = known.replace(b'"stale": null', b'"stale": false')
    if (answer.status, known) == (sound.status, sound.stdout):
        return ""
    if (
        "journal" in path.parts
        and answer.status == sound.status
        and without_evidence(form, answer) == without_evidence(form, sound)
    ):
        return ""  # A line that is missing at the end of a journal cannot be detected, and need not be.
    return f"status {answer.status}: {answer.stderr[-300:]!r} {answer.stdout[:200]!r}"
