"""What commands share: the store, `--json`, `--batch`, and how answers are printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from codebatch.errors import StoreNotFound
from codebatch.store.batches import Batch, resolve_batch
from codebatch.store.store import STORE_DIRECTORY, Store, create_store, find_store, open_store
from codebatch.system.files import RealFiles

F = TypeVar("F", bound=Callable[..., object])

STORE_VARIABLE = "CODEBATCH_STORE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answering:
    """How this command was asked to answer, and which store it was told."""

    store_path: str | None
    as_json: bool
    quiet: bool

    def store(self) -> Store:
        """The store, which must exist. Raises StoreNotFound or StoreForeign."""
        path = self._named() or find_store(Path.cwd())
        if path is None:
            raise StoreNotFound(
                f"there is no {STORE_DIRECTORY} store in {Path.cwd()} or above it",
                hint="make one with `codebatch run PATH` or `codebatch init`, or name one with --store",
            )
        return open_store(RealFiles(), path)

    def store_or_new(self) -> Store:
        """The store, made where there is none: at the named place, else at the top of the git work tree, else here."""
        path = self._named() or find_store(Path.cwd())
        if path is not None:
            if self._named() is None:
                return open_store(RealFiles(), path)
        else:
            path = _project_root(Path.cwd()) / STORE_DIRECTORY
        store, is_new = create_store(RealFiles(), path)
        if is_new:
            self.note(f"new store: {store.root}")
        return store

    def batch(self, reference: str | None) -> tuple[Store, Batch]:
        """The store and the batch that was named, the latest by default."""
        store = self.store()
        return store, resolve_batch(store, reference)

    def note(self, text: str) -> None:
        """Something worth knowing that is no data."""
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def print(self, document: object, lines: Iterable[str]) -> None:
        """The answer: the document as JSON, or the lines."""
        if self.as_json:
            sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
        else:
            sys.stdout.writelines(line + "\n" for line in lines)
        sys.stdout.flush()

    def _named(self) -> Path | None:
        named = self.store_path or os.environ.get(STORE_VARIABLE)
        return Path(named) if named else None


def answering(function: F) -> F:
    """Give a command `--store`, `--json` and `-q`, before or after its name, as one `answering` argument."""

    @click.option("--store", metavar="PATH", help="The store to use.")
    @click.option("--json", "as_json", is_flag=True, help="Answer as JSON, errors included.")
    @click.option("-q", "--quiet", is_flag=True, help="No progress and no notes on standard error.")
    @click.pass_context
    def wrapped(ctx: click.Context, /, store: str | None, as_json: bool, quiet: bool, **arguments: object) -> object:
        given = ctx.find_root().obj or {}
        return ctx.invoke(
            function,
            answering=Answering(
                store_path=store or given.get("store"),
                as_json=as_json or bool(given.get("as_json")),
                quiet=quiet or bool(given.get("quiet")),
            ),
            **arguments,
        )

    wrapped.__name__ = function.__name__
    wrapped.__doc__ = function.__doc__
    if hasattr(function, "__click_params__"):
        wrapped.__click_params__ = [*function.__click_params__, *getattr(wrapped, "__click_params__", [])]  # type: ignore[attr-defined]
    return wrapped  # type: ignore[return-value]


batch_option = click.option(
    "--batch", "batch_reference", metavar="ID", help="A batch id, unique prefix, latest or latest~N. Default: latest."
)
jobs_option = click.option(
    "-j", "--jobs", type=click.IntRange(min=1), help="Worker processes. Default: the usable cores."
)


def table(rows: Iterable[Iterable[object]], header: Iterable[str]) -> list[str]:
    """Aligned columns: numbers to the right, text to the left, nothing cut."""
    cells = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    titles = list(header)
    numbers = [all(_is_number(row[column]) for row in cells) for column in range(len(titles))]
    widths = [max(len(row[column]) for row in [titles, *cells]) for column in range(len(titles))]
    return [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, numbers, strict=True)
        ).rstrip()
        for row in [titles, *cells]
    ]


def human_bytes(count: int) -> str:
    """A size for people."""
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


def _is_number(text: str) -> bool:
    return text.replace(",", "").isdigit()


def _project_root(start: Path) -> Path:
    return next((directory for directory in (start, *start.parents) if (directory / ".git").exists()), start)
