"""Every file of a store is damaged in every way, and every reading command is asked: it answers as before, or says so.

Damage: a bit flipped, the file cut, emptied, appended to, overwritten with zeros from somewhere on, deleted. An answer
may be the undamaged one, an error with exit status 4, or another one that is said to be damaged; nothing else, never a
70. Of an unfinished store `run` must come to the same result, or end with 4.

A sample drawn by a seed; CODEBATCH_STORE_FUZZ says how many damages a file and kind, for a longer look.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from codebatch.cli import cli
from codebatch.cli.ending import run_to_exit_status
from tests.cli.process import CommandLine, make_project, write

ROUNDS = int(os.environ.get("CODEBATCH_STORE_FUZZ", "0"))
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

# What may be lost without a word, for it is no part of any answer but evidence, speed and history (SPEC.md "Promises").
EXPENDABLE = ("journal", "cache", "indexes", "locks")
SAID = ("DAMAGED", "damaged", "is missing", "passed over", "is lost", "cannot be read", "in no pack")

Damage = Callable[[bytes, random.Random], bytes | None]


def flip(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    changed[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def make_foreign(data: bytes, chance: random.Random) -> bytes:
    """A byte that no UTF-8 begins with."""
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
    """As a file system leaves what it had not written yet."""
    place = chance.randrange(len(data))
    return data[:place] + bytes(len(data) - place)


def delete(data: bytes, chance: random.Random) -> None:
    return None


DAMAGES: tuple[Damage, ...] = (flip, make_foreign, cut, cut_by_one, empty, append, zero, delete)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said, and its status."""

    status: int
    stdout: bytes
    stderr: str

    @property
    def is_said(self) -> bool:
        return any(word in self.stderr or word.encode() in self.stdout for word in SAID)


def ask(arguments: tuple[str, ...]) -> Answer:
    """Ask in this process: hundreds of commands a second."""
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        status = run_to_exit_status(cli, arguments)
    said, told = (stream.detach() for stream in (stdout, stderr))
    assert isinstance(said, io.BytesIO)
    assert isinstance(told, io.BytesIO)
    return Answer(status, said.getvalue(), told.getvalue().decode("utf-8", "replace"))


class Store:
    """A store to damage, file by file, and to make whole again."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._sound: dict[Path, bytes] = {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}

    @property
    def files(self) -> list[Path]:
        return list(self._sound)

    def damaged(self, path: Path, damage: Damage, chance: random.Random) -> bool:
        """Damage a file; False where the damage changes nothing. A name that shares its inode shares the damage."""
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
        """Undo the damage, and what the commands noted of it."""
        for noted in self.root.glob("objects/*.bad"):
            noted.unlink()
        for each in {path, *self.root.glob("objects/*.idx")} & self._sound.keys():
            each.write_bytes(self._sound[each])

    def is_sound(self) -> bool:
        return self._sound == {path: path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> tuple[CommandLine, str]:
    """A project with a finished store, in which one file has a failure of one task; and its result digest."""
    root = tmp_path_factory.mktemp("fuzz")
    make_project(root / "project")
    write(root / "project" / "src" / "other.py", "import main\n\nmain.Main().run('1')\n")
    write(root / "codebatch.toml", SETTINGS)
    write(root / "picky.py", PICKY)
    codebatch = CommandLine(root)
    digest = codebatch("run", "project", "-j", "2", "--json", status=3).json["result_digest"]
    return codebatch, str(digest)


@pytest.fixture
def here(project: tuple[CommandLine, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project in the current directory. Its links are kept: a commit is one file of many names."""
    copied = tmp_path / "copied"
    shutil.copytree(project[0].directory, copied, symlinks=True)
    copy_links(project[0].directory / ".codebatch", copied / ".codebatch")
    monkeypatch.chdir(copied)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return copied


def copy_links(source: Path, target: Path) -> None:
    """Make one file again of each that has many names."""
    first: dict[int, Path] = {}
    for path in sorted(source.rglob("*")):
        if path.is_file() and path.stat().st_nlink > 1:
            known = first.setdefault(path.stat().st_ino, path)
            if known != path:
                copied = target / path.relative_to(source)
                copied.unlink()
                copied.hardlink_to(target / known.relative_to(source))


def chance_of(path: Path, damage: Damage, root: Path) -> random.Random:
    """The same places at each run, though ids differ: by the kind of file."""
    return random.Random(
        zlib.crc32(f"{SEED} {path.relative_to(root).parts[0]} {path.suffix} {damage.__name__}".encode())
    )


def test_no_damage_becomes_an_answer(here: Path) -> None:
    store = Store(here / ".codebatch")
    forms = [(*question, *form) for question in QUESTIONS for form in ((), ("--json",))]
    sound = {form: ask(form) for form in forms}
    assert {answer.status for answer in sound.values()} == {0}, [f for f, a in sound.items() if a.status]
    asked = 0
    wrong: list[str] = []
    for path in store.files:
        name = path.relative_to(store.root)
        for damage in DAMAGES:
            chance = chance_of(path, damage, store.root)
            for _ in range(ROUNDS or 1):
                for form in forms if ROUNDS else chance.sample(forms, 4):
                    if not store.damaged(path, damage, chance):
                        continue
                    answer = ask(form)
                    store.repair(path)
                    asked += 1
                    if problem := problem_of(sound[form], answer, name):
                        wrong.append(f"{damage.__name__} {name}: {' '.join(form)}: {problem}")
    assert not wrong, f"{len(wrong)} of {asked}:\n" + "\n".join(wrong[:60])
    assert asked > 1000
    assert store.is_sound()


def problem_of(sound: Answer, answer: Answer, name: Path) -> str:
    """What is wrong with an answer of a damaged store; nothing where it is right, or an error, or said."""
    if answer.status == 4:
        return "" if answer.stdout == b"" else "an error with data"
    if answer.status == 0 and (answer.stdout == sound.stdout or answer.is_said):
        return ""
    if answer.status == 0 and set(name.parts) & set(EXPENDABLE) and not set(name.parts) & {"journal"}:
        return "something expendable was answered from"
    if answer.status == 0 and set(name.parts) & {"journal"}:
        return "other evidence" if answer.stdout != sound.stdout else ""
    return f"status {answer.status}: {answer.stderr[-300:]!r} {answer.stdout[:200]!r}"
