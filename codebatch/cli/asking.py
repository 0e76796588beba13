"""How questions are answered: from which batch, and never with part of an answer as if it were the whole.

A question is put to `ask`; the answer goes out through `Asked.answer_rows` or `Asked.answer_document`, which say on
standard error how complete it is and whether the tree has changed since, put the same into JSON, and give the exit
status.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from codebatch.cli.options import Answering, count_of
from codebatch.errors import BatchIncomplete, InvalidConfiguration
from codebatch.model.entry import display_path
from codebatch.query.completeness import Completeness
from codebatch.query.records import BatchRecords
from codebatch.store.batches import Batch, iter_batches
from codebatch.store.ids import latest_offset
from codebatch.store.store import Store
from codebatch.system.task_catalogue import TaskCatalogue

if TYPE_CHECKING:
    from codebatch.snapshotting.staleness import Changes


class PartAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` says in the place of `records` alone where they are not all: the batch is incomplete, or of a part
    of the project only. `percent` is how much of what the question needs is there; `stale` whether the tree has changed
    since, null where that is not known; `paths` are what the batch is of.
    """

    complete: bool
    percent: float
    batch_id: str
    stale: bool | None
    paths: tuple[str, ...]
    records: object


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A batch that was asked something."""

    answering: Answering
    store: Store
    batch: Batch
    is_named: bool

    @cached_property
    def catalogue(self) -> TaskCatalogue:
        """What the installed tasks give. Own tasks are not run for a question: they may give any kind."""
        return TaskCatalogue()

    @cached_property
    def records(self) -> BatchRecords:
        """Its records."""
        return BatchRecords(self.store, self.batch)

    def answer_rows(self, rows: object, lines: Iterable[str], whole: Completeness, *, if_none: str = "") -> int:
        """Answer with rows, which stand alone in JSON where they are all there are; returns the exit status."""
        self._tell(whole)
        document = rows
        if self.answering.as_json and (self.batch.about.paths or not whole.is_complete):
            document = PartAnswer(
                complete=whole.is_complete,
                percent=whole.percent,
                batch_id=self.batch.id,
                stale=self._is_stale,
                paths=shown_paths(self.batch),
                records=rows,
            )
        if if_none and whole.done < whole.planned:
            if_none += f" so far ({whole.percent} %)"
        self.answering.print(document, lines, if_none=if_none)
        self._tell_changes()
        return _status(whole)

    def answer_document(self, document: dict[str, object], lines: Iterable[str], whole: Completeness) -> int:
        """Answer with one document, to which JSON adds how true it is; returns the exit status."""
        self._tell(whole)
        if self.answering.as_json:
            truth = {"complete": whole.is_complete, "percent": whole.percent, "stale": self._is_stale}
            document = {**document, **truth, "paths": shown_paths(self.batch)}
        self.answering.print(document, lines)
        self._tell_changes()
        return _status(whole)

    def _tell(self, whole: Completeness) -> None:
        for line in _reasons(self.store, self.batch, whole):
            self.answering.tell(f"incomplete: {line}")
        if not self.is_named and not _is_near(self.batch):
            of = ", ".join(map(display_path, self.batch.about.sources))
            self.answering.note(f"of {of}, where the current directory is not")
        if self.batch.about.paths and not whole.lacks_files:
            self.answering.note(f"of {', '.join(shown_paths(self.batch))} alone: all that batch {self.batch.id} is of")

    @cached_property
    def _changes(self) -> Changes | None:
        """How the tree has changed since; None where that is not known, or the batch is knowingly an old one."""
        from codebatch.snapshotting.staleness import changes_since  # 5 ms that `-q` can do without

        about = self.batch.about
        if self.is_named:
            alike = (each for each in iter_batches(self.store) if _is_alike(each, self.batch))
            if next(alike, self.batch).id != self.batch.id:
                return None
        return changes_since(self.store.files, self.store.root, about.stat_cache, about.snapshot_id)

    @property
    def _is_stale(self) -> bool | None:
        return None if self._changes is None else self._changes.is_stale

    def _tell_changes(self) -> None:
        changes = None if self.answering.quiet else self._changes
        if changes is None or changes.is_stale is False:
            return
        if changes.is_stale is None:
            self.answering.note("not known whether the tree has changed since: to find out would take long")
            return
        if not changes.paths:
            as_now = (each for each in iter_batches(self.store) if each.about.snapshot_id == changes.frozen_since)
            found = next((each for each in as_now if _is_alike(each, self.batch)), None)
            if found is not None:
                self.answering.note(f"stale: the tree is as in another batch; ask it with --batch {found.id}")
                return
        first = f"{display_path(changes.paths[0])} has" if changes.paths else "the tree has"
        more = len(changes.paths) - 1
        others = " (and more)" if changes.is_cut else f" (and {more} more)" if more > 0 else ""
        self.answering.note(
            f"stale: {first} changed since{others}; look again with: {rerun(self.store, self.batch, changes)}"
        )


def ask(answering: Answering, reference: str | None) -> Asked:
    """The batch that a question is for. By default the latest that is of a whole project, where there is one."""
    store, batch = answering.batch(reference, whole=True)
    is_named = reference is not None and latest_offset(reference) != 0
    return Asked(answering=answering, store=store, batch=batch, is_named=is_named)


def shown_paths(batch: Batch) -> tuple[str, ...]:
    """The paths that a batch is restricted to, for people."""
    return tuple(map(display_path, batch.about.paths))


def rerun(store: Store, batch: Batch, changes: Changes | None = None, *, of_all: bool = False) -> str:
    """The command that looks at a batch's tree again, or at all `of_all`, by the same patterns where they are known.

    They are those of `changes`, of which whoever did not look at the tree has none.
    """
    # Only those who are told a command pay for it.
    from codebatch.application.configuration import Settings, load_configuration
    from codebatch.snapshotting.staleness import rules_of

    about = batch.about
    found = (
        [os.path.join(about.sources[0], path) for path in about.paths] if about.paths and not of_all else about.sources
    )
    roots = [os.fsdecode(root) for root in found]
    can_be_typed = bool(roots) and all(map(str.isprintable, roots))
    words = ["codebatch", "run", *(roots if can_be_typed else ["PATH"])]
    try:
        settings = load_configuration(Path.cwd()).settings
    except (InvalidConfiguration, FileNotFoundError):  # To be said by the command, when it is run.
        settings = Settings()
    if batch.about.pipeline != settings.pipeline:
        words += ["--pipeline", batch.about.pipeline]
    rules = changes or rules_of(store.files, store.root, about.stat_cache)
    if rules is not None:
        if rules.include != settings.include:
            words += [word for pattern in rules.include for word in ("--include", pattern)]
        words += [
            word for pattern in rules.exclude if pattern not in settings.exclude for word in ("--exclude", pattern)
        ]
    return shlex.join(words)


def no_outputs(batch: Batch) -> BatchIncomplete:
    """The error of who needs the merged outputs of a batch that has none."""
    return BatchIncomplete(f"batch {batch.id} has no outputs yet", hint=f"go on with: codebatch run --batch {batch.id}")


def _status(whole: Completeness) -> int:
    return 0 if whole.is_complete else BatchIncomplete.exit_status


def _is_near(batch: Batch) -> bool:
    """Whether the current directory is in the tree that a batch is of, or above it, or is gone."""
    try:
        here = os.getcwdb().rstrip(b"/") + b"/"
    except FileNotFoundError:
        return True
    trees = [source.rstrip(b"/") + b"/" for source in batch.about.sources]
    return not trees or any(here.startswith(tree) or tree.startswith(here) for tree in trees)


def _is_alike(one: Batch, other: Batch) -> bool:
    return one.about.sources == other.about.sources and one.about.paths == other.about.paths


def _reasons(store: Store, batch: Batch, whole: Completeness) -> Iterable[str]:
    if whole.done < whole.planned:
        counts = f"({whole.done:,} of {whole.planned:,} results)"
        yield f"{whole.percent} % of batch {batch.id} is done {counts}; go on with: codebatch run --batch {batch.id}"
    if whole.failed:
        counts = f"{whole.failed:,} of {whole.planned:,} results of batch {batch.id} failed"
        yield f"{counts} ({', '.join(whole.failed_tasks)}); see: codebatch errors --batch {batch.id}"
    if whole.lost:
        yield f"{count_of(whole.lost, 'file')} could not be read"
    if whole.lacks_files:
        of = ", ".join(shown_paths(batch))
        unknown = f"batch {batch.id} is of {of} alone, and what other files hold is not known"
        yield f"{unknown}; look at all with: {rerun(store, batch, of_all=True)}"
