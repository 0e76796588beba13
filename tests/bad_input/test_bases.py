"""Older batches that are damaged in every way: what is taken over from them is right, or it is said what is damaged.

Each file of a settled, of a broken off and of a merged batch, and of what they need, is cut, flipped, zeroed, deleted,
made of another format, or replaced by what is no file; each directory goes or is replaced. Then `run` of a tree that
has changed, or of one elsewhere that is as this one was, comes to what a run into an empty store does. It may say only
what was planted, what is like nothing else in the store, and (with status 3) which objects are lost. A sample;
CODEBATCH_DAMAGED_BASES says how many trials of each file and kind, for a longer look.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from codebatch.model.digest import digest_bytes
from codebatch.store import layout
from tests.bad_input.bases import Bases, Hung, ending
from tests.support.inline_workers import inline

TRIALS = int(os.environ.get("CODEBATCH_DAMAGED_BASES", "0"))
SAMPLE = 40

Damage = Callable[[Path, random.Random], None]


def cut(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: chance.randrange(len(data))])


def flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def copy_half(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + bytes(len(data) - len(data) // 2))


def delete(path: Path, chance: random.Random) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def make_directory(path: Path, chance: random.Random) -> None:
    delete(path, chance)
    path.mkdir()


def make_file(path: Path, chance: random.Random) -> None:
    delete(path, chance)
    path.write_bytes(b"x")


def make_fifo(path: Path, chance: random.Random) -> None:
    delete(path, chance)
    os.mkfifo(path)


def make_link(path: Path, chance: random.Random) -> None:
    """To what it was, under another name."""
    path.rename(path.with_name("moved"))
    path.symlink_to(path.with_name("moved"))


def swap(path: Path, chance: random.Random) -> None:
    """For a sound file of the same kind."""
    others = [each for each in path.parent.iterdir() if each != path and each.is_file() and each.suffix == path.suffix]
    if others:
        path.write_bytes(chance.choice(others).read_bytes())


def make_another_format(path: Path, chance: random.Random) -> None:
    """With a sound checksum, where it is a document."""
    data = path.read_bytes()
    body, mark, _ = data.rpartition(b',"checksum"')
    if mark and body.startswith(b'{"format":') and data.count(b"\n") == 1:
        document = msgspec.json.decode(body + b"}")
        document["format"] += 1
        body = msgspec.json.encode(document)[:-1]
        path.write_bytes(body + b',"checksum":"' + digest_bytes(body).encode() + b'"}\n')


DAMAGES: tuple[Damage, ...] = (
    cut, flip, copy_half, delete, make_directory, make_fifo, make_link, swap, make_another_format,
)  # fmt: skip
OF_DIRECTORIES: tuple[Damage, ...] = (delete, make_directory, make_file, make_fifo, make_link)
PLANTED = (make_directory, make_file, make_fifo, make_link)


def unlink_from_other_stores(store: Path, name: Path) -> None:
    """Have a file, under all its names here, be another one than that in the store that this one was linked from."""
    if (store / name).is_dir():
        return
    inode, data = (store / name).stat().st_ino, (store / name).read_bytes()
    same = [path for path in store.rglob("*") if path.lstat().st_ino == inode and path != store / name]
    (store / name).unlink()
    (store / name).write_bytes(data)
    for path in same:
        path.unlink()
        path.hardlink_to(store / name)


def trials(store: Path) -> Iterator[tuple[Path, Damage, random.Random]]:
    """A sample of all that lies in a store with each damage; or all of it, some kinds many times."""
    every = []
    for path in sorted(path for path in store.rglob("*") if not path.is_symlink()):
        if path.is_dir() or path.stat().st_size:
            every += [(path, damage) for damage in (OF_DIRECTORIES if path.is_dir() else DAMAGES)]
    chosen = every * TRIALS if TRIALS else random.Random(1).sample(every, SAMPLE)
    for number, (path, damage) in enumerate(chosen):
        if number < len(every) or damage in (cut, flip, swap):
            yield path.relative_to(store), damage, random.Random(number)


def may_say(name: Path, damage: Damage) -> tuple[str, ...]:
    """The errors where there is what no store has, or there is nothing else to take it from: all else is a miss."""
    if damage in PLANTED or str(name) in (layout.STORE_FILE, layout.UNTRUSTED_FILE):
        return "store_foreign", "store_corrupt"
    return ("batch_incomplete",) if layout.OBJECTS in name.parts else ()


def test_damaged_bases_yield_no_wrong_result(bases: Bases, tmp_path: Path) -> None:
    wrong = []
    tried = 0
    for name, damage, chance in trials(bases.store):
        store = bases.copied(tmp_path / "store")
        unlink_from_other_stores(store, name)
        damage(store / name, chance)
        tried += 1
        tree = chance.choice(["tree", "tree", "elsewhere"])
        try:
            with inline(), ending():
                problem = bases.problem_of(bases.run(store, tree=tree), tree, may_say=may_say(name, damage))
        except Hung:
            problem = "it hangs"
        if problem:
            wrong.append(f"{damage.__name__} {name}, {tree}: {problem}")
    assert not wrong, f"{len(wrong)} of {tried}:\n" + "\n".join(wrong[:40])
