"""A store entry with an unexpected type or content does not affect other batches.

A store has an older batch, a work batch, and the latest batch, which is of another tree. An entry of one of the first
two is replaced by something that is not a regular file, or its document by one with a valid checksum and invalid
values. Questions about the latest batch are then answered as before. Lists and overviews skip the entry and report
this. No command hangs, or ends with an internal error.

The tests draw a sample with a seed. CODEBATCH_STORE_FUZZ sets how often each kind of entry is tried, for longer tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import socket
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codebatch.model.digest import digest_bytes
from tests.bad_input.bases import Hung, ending
from tests.bad_input.test_store_fuzz import Answer, ask
from tests.support.command_line import CommandLine, write
from tests.support.inline_workers import inline

ROUNDS = int(os.environ.get("CODEBATCH_STORE_FUZZ", "0"))
SAMPLE = 60
SHARD = "[shard]\nfiles_average = 2\nfiles_min = 2\nfiles_max = 2\n"
WORK = '[tasks.a]\nrun = "echo hi"\n[tasks.b]\nrun = "false"\nneeds = ["a"]\n[tasks.c]\nrun = "codebatch ask why"\n'
# Questions about the latest batch, which must be answered as before; and questions about all batches, which may also
# report the odd entry.
UNTOUCHED = ("summary", "findings", "errors", "status", "references f", "files", "run .")
TOUCHED = ("batch list", "snapshot list", "gc --dry-run", "diagnose", "check")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleStore:
    """A store with three batches. Each trial uses a copy."""

    root: Path
    old: str
    work: str
    latest: str

    def copied(self, to: Path) -> Path:
        shutil.rmtree(to, ignore_errors=True)
        return Path(shutil.copytree(self.root / "store", to, symlinks=True))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> SampleStore:
    root = tmp_path_factory.mktemp("shop")
    for tree in ("old", "new"):
        write(root / tree / "codebatch.toml", SHARD)
        write(root / tree / "a.py", f"import b\n\n\ndef f(x=[]):\n    return x is 1  # {tree}\n")
        write(root / tree / "b.py", f"import os  # {tree}\n")
        write(root / tree / "c.c", "int main(void) { return f(1); }\n")
    write(root / "old" / "work.toml", WORK)
    codebatch = CommandLine(root / "old", {"CODEBATCH_STORE": str(root / "store")})
    codebatch("run", ".", "-q")
    codebatch("index-build", "-q")
    codebatch("work", "run", "-q", status=3)
    codebatch("run", root / "new", "-q")
    old, work, latest = sorted(path.name for path in (root / "store" / "batches").iterdir())
    return SampleStore(root=root, old=old, work=work, latest=latest)


def query_store(shop: SampleStore, store: Path, question: str) -> Answer:
    """Run a command on the new tree."""
    with pytest.MonkeyPatch.context() as patch, inline(), ending():
        patch.chdir(shop.root / "new")
        return ask((*question.split(), "--json", "-q", "--store", str(store)))


def problem_of(question: str, before: Answer, after: Answer) -> str:
    """Return what is wrong with an answer, or an empty string if it is as before or adds a harmless report."""
    if question in UNTOUCHED:
        is_right = (after.status, _without_times(after)) == (before.status, _without_times(before))
    elif question == "diagnose":
        is_right = after.status in (0, 4) and bool(after.stdout)
    else:
        is_right = after.status == before.status
    return "" if is_right else f"status {after.status}: {after.stderr[-300:]!r} {after.stdout[:200]!r}"


def _without_times(answer: Answer) -> object:
    document = json.loads(answer.stdout)
    return {**document, "seconds": 0} if isinstance(document, dict) else document


# --- Types ----------------------------------------------------------------------------------------------------------


def fifo(path: Path) -> None:
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.mkdir()


def full_directory(path: Path) -> None:
    write(path / "x", "x")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def socket_file(path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, socket.socket(socket.AF_UNIX) as made:
        patch.chdir(path.parent)  # A socket's path may only be short.
        made.bind(path.name)


def device(path: Path) -> None:
    with contextlib.suppress(PermissionError):
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))


def plain(path: Path) -> None:
    path.write_bytes(b"x")


KINDS: tuple[Callable[[Path], None], ...] = (
    fifo, directory, full_directory, loop, dangling, socket_file, device, plain,
)  # fmt: skip


def list_places(shop: SampleStore) -> list[str]:
    """Return all entries that belong only to an older batch, and names that such entries could have."""
    store = shop.root / "store"
    snapshots = [
        json.loads((store / "batches" / name / "batch.json").read_bytes())["snapshot_id"]
        for name in (shop.old, shop.work)
    ]
    roots = [f"batches/{shop.old}", f"batches/{shop.work}", f"indexes/{shop.old}"]
    roots += [f"snapshots/{name}" for name in snapshots]
    paths = [str(path.relative_to(store)) for root in roots for path in (store / root, *(store / root).rglob("*"))]
    return sorted(
        [
            *paths,
            "batches/batch-20990101-000000-000000-abcdef",
            "snapshots/snap-0123456789abcdef",
            "indexes/batch-20990101-000000-000000-abcdef",
            f"objects/{'0' * 64}.pack",
            f"objects/{'0' * 64}.idx",
            "objects/x.part",
            f"pins/{shop.old}",
            "cache/x",
            "locks/x",
        ]
    )


def replace_entry(store: Path, place: str, kind: Callable[[Path], None]) -> bool:
    """Replace an entry. Return False if it already has this type."""
    path = store / place
    if kind in (directory, full_directory, plain) and os.path.lexists(path) and path.is_dir() == (kind is not plain):
        return False
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    kind(path)
    return True


def kind_of(place: str) -> str:
    """Return a place without the IDs and numbers of batches and shards."""
    return re.sub(r"batch-[0-9a-f-]+|[0-9a-f]{8,}|\d+", "#", place)


def numbered_sample(every: list[Any]) -> list[tuple[int, Any]]:
    """Return a numbered sample. If rounds are set, return all elements."""
    return list(enumerate(every * ROUNDS if ROUNDS else random.Random(1).sample(every, min(SAMPLE, len(every)))))


def test_entry_of_another_type_affects_no_other_batch(shop: SampleStore, tmp_path: Path) -> None:
    by_kind = {kind_of(place): place for place in list_places(shop)}
    trials = [(place, kind) for place in by_kind.values() for kind in KINDS]
    wrong = _problems_of_trials(shop, tmp_path, numbered_sample(trials), replace_entry)
    assert not wrong, "\n".join(wrong[:40])


# --- Documents ------------------------------------------------------------------------------------------------------

VALUES: tuple[object, ...] = (
    2**200, -(2**200), -1, 2**63, 1.5, None, "", "../../../x", "snap-../../../x", "batch-../../../x", "a\0b", "x" * 300,
    [], {}, {"../x": "../y"},
)  # fmt: skip


def sign_document(members: dict[str, Any]) -> bytes:
    """Encode a document with these members and a valid checksum."""
    body = json.dumps(members, separators=(",", ":"), ensure_ascii=False)[:-1].encode()
    return body + f',"checksum":"{digest_bytes(body)}"}}'.encode()


def fields_of(value: object, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the place of each member of a document. Lists are represented by their first element."""
    members = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, below in members:
        if key != "checksum":
            yield (*above, key)
            yield from fields_of(below, (*above, key))


def list_documents(shop: SampleStore) -> dict[str, str]:
    """Return one document of each kind that belongs to an older batch."""
    documents_by_kind = {}
    for place in list_places(shop):
        path = shop.root / "store" / place
        if path.is_file() and path.suffix in ("", ".json", ".jsonl", ".r1") and b'"checksum":"' in path.read_bytes():
            documents_by_kind[kind_of(place)] = place
    return documents_by_kind


def forge_document(store: Path, place: str, change: tuple[tuple[str | int, ...], object]) -> bool:
    """Change a member in the first line of a document, and update its checksum."""
    field, value = change
    path = store / place
    first, *others = path.read_bytes().split(b"\n")
    document: Any = json.loads(first)
    at = document
    for key in field[:-1]:
        at = at[key]
    at[field[-1]] = value
    del document["checksum"]
    path.unlink()
    path.write_bytes(b"\n".join((sign_document(document), *others)))
    return True


def test_document_with_invalid_values_affects_no_other_batch(shop: SampleStore, tmp_path: Path) -> None:
    trials = [
        (place, (field, value))
        for place in list_documents(shop).values()
        for field in fields_of(json.loads((shop.root / "store" / place).read_bytes().split(b"\n")[0]))
        for value in VALUES
    ]
    own = [f"{words} --batch {name}" for words in ("status", "batch show") for name in (shop.old, shop.work)]
    wrong = _problems_of_trials(shop, tmp_path, numbered_sample(trials), forge_document, own)
    assert not wrong, "\n".join(wrong[:40])


def _problems_of_trials(
    shop: SampleStore,
    tmp_path: Path,
    trials: Sequence[tuple[int, tuple[str, Any]]],
    damage: Callable[[Path, str, Any], bool],
    own: Sequence[str] = (),
) -> list[str]:
    """Damage a copy in each way, run commands, and return what is wrong.

    Questions about the damaged batch may end with 4.
    """
    before = {
        question: query_store(shop, shop.copied(tmp_path / "store"), question) for question in (*UNTOUCHED, *TOUCHED)
    }
    wrong = []
    for number, (place, how) in trials:
        store = shop.copied(tmp_path / "store")
        if not damage(store, place, how):
            continue
        chance = random.Random(number)
        for question in (
            *chance.sample(UNTOUCHED, 1),
            *chance.sample(TOUCHED, 1),
            *chance.sample(own, min(len(own), 1)),
        ):
            name = getattr(how, "__name__", how)
            try:
                after = query_store(shop, store, question)
            except Hung:
                wrong.append(f"{name} {place}: {question}: it hangs")
                continue
            if question in own:
                problem = "" if after.status in (0, 3, 4) else f"status {after.status}: {after.stderr[-300:]!r}"
            else:
                problem = problem_of(question, before[question], after)
            if problem:
                wrong.append(f"{name} {place}: {question}: {problem}")
    return wrong


# --- Regressions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [fifo, loop, plain])
def test_foreign_entry_in_place_of_the_latest_batch_is_skipped(
    shop: SampleStore, tmp_path: Path, kind: Callable[[Path], None]
) -> None:
    store = shop.copied(tmp_path / "store")
    before = {question: query_store(shop, store, question) for question in UNTOUCHED}
    name = "batch-20990101-000000-000000-abcdef"
    kind(store / "batches" / name)
    for question in UNTOUCHED:
        assert problem_of(question, before[question], query_store(shop, store, question)) == ""
    rows = {row["batch_id"]: row["status"] for row in json.loads(query_store(shop, store, "batch list").stdout)}
    assert rows == {name: "DAMAGED", shop.old: "COMPLETED", shop.work: rows[shop.work], shop.latest: "COMPLETED"}
    damages = json.loads(query_store(shop, store, "diagnose").stdout)["damaged"]
    assert [damage["names"] for damage in damages] == [[f"batches/{name}"]]


@pytest.mark.parametrize(
    ("member", "value"), [("created_at_ns", 2**200), ("created_at_ns", -(2**200)), ("snapshot_id", "snap-../../../x")]
)
def test_batch_with_invalid_values_is_damaged(shop: SampleStore, tmp_path: Path, member: str, value: object) -> None:
    store = shop.copied(tmp_path / "store")
    forge_document(store, f"batches/{shop.old}/batch.json", ((member,), value))
    rows = {row["batch_id"]: row["status"] for row in json.loads(query_store(shop, store, "batch list").stdout)}
    assert (rows[shop.old], rows[shop.latest]) == ("DAMAGED", "COMPLETED")
    assert query_store(shop, store, f"findings --batch {shop.old}").status == 4
    with inline(), ending():
        assert ask(("run", str(shop.root / "old"), "-q", "--store", str(store))).status == 0
