"""Older batches with any kind of damage: reused results are right, or the damage is reported.

Each file of a settled, an interrupted and a merged batch, and of what they need, is cut, flipped, zeroed, deleted,
changed to another format, or replaced by something that is not a file. Each directory is removed or replaced. Then
`run` of a changed tree, or of an unchanged tree at another path, must have the result of a run into an empty store.
Errors may only report what was planted, data that exists once in the store, and (with status 3) lost objects.

The tests draw a sample. CODEBATCH_DAMAGED_BASES sets the number of trials for each file and kind, for longer tests.
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
    """Replace an entry by a link to it under another name."""
    path.rename(path.with_name("moved"))
    path.symlink_to(path.with_name("moved"))


def swap(path: Path, chance: random.Random) -> None:
    """Replace the contents by those of an undamaged file of the same kind."""
    others = [
        path_of_kind
        for path_of_kind in path.parent.iterdir()
        if path_of_kind != path and path_of_kind.is_file() and path_of_kind.suffix == path.suffix
    ]
    if others:
        path.write_bytes(chance.choice(others).read_bytes())


def make_another_format(path: Path, chance: random.Random) -> None:
    """Increase the format number. A document gets a valid checksum."""
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
DIRECTORY_DAMAGES: tuple[Damage, ...] = (delete, make_directory, make_file, make_fifo, make_link)
PLANTED = (make_directory, make_file, make_fifo, make_link)


def unlink_from_other_stores(store: Path, name: Path) -> None:
    """Separate a file from its hard links in other stores, and keep the links inside this store."""
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
    """Yield a sample of all entries of a store and kinds of damage.

    If TRIALS is set, yield all, some kinds repeatedly.
    """
    every = []
    for path in sorted(path for path in store.rglob("*") if not path.is_symlink()):
        if path.is_dir() or path.stat().st_size:
            every += [(path, damage) for damage in (DIRECTORY_DAMAGES if path.is_dir() else DAMAGES)]
    chosen = every * TRIALS if TRIALS else random.Random(1).sample(every, SAMPLE)
    for number, (path, damage) in enumerate(chosen):
        if number < len(every) or damage in (cut, flip, swap):
            yield path.relative_to(store), damage, random.Random(number)


def allowed_errors(name: Path, damage: Damage) -> tuple[str, ...]:
    """Return the errors that a run may report: for planted entries, or if data exists nowhere else.

    Other damage is a miss.
    """
    if damage in PLANTED or str(name) in (layout.STORE_FILE, layout.UNTRUSTED_FILE):
        return "store_foreign", "store_corrupt"
    return ("batch_incomplete",) if layout.OBJECTS in name.parts else ()


def test_damaged_bases_yield_no_wrong_result(bases: Bases, tmp_path: Path) -> None:
    wrong = []
    trial_count = 0
    for name, damage, chance in trials(bases.store):
        store = bases.copied(tmp_path / "store")
        unlink_from_other_stores(store, name)
        damage(store / name, chance)
        trial_count += 1
        tree = chance.choice(["tree", "tree", "elsewhere"])
        try:
            with inline(), ending():
                problem = bases.problem_of(bases.run(store, tree=tree), tree, may_say=allowed_errors(name, damage))
        except Hung:
            problem = "it hangs"
        if problem:
            wrong.append(f"{damage.__name__} {name}, {tree}: {problem}")
    assert not wrong, f"{len(wrong)} of {trial_count}:\n" + "\n".join(wrong[:40])
