"""The context of a command: its store, its global options, and the output of answers and notes."""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
import msgspec

from codebatch.cli.framework.common_options import (
    OutputForm as OutputForm,
)  # Re-exported for commands, like `table_lines` below.
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.groups import (
    GLOBAL_FLAGS,
    STORE_VARIABLE,
    GlobalOptions,
    add_global_options,
    answer_schema_name,
    command_words,
    get_global_options,
)
from codebatch.cli.framework.read_report import EXPLAIN_PARAMETER, explain_option, read_report_lines
from codebatch.cli.output.colors import Color, Painter, is_colored, supports_links
from codebatch.cli.output.progress import ProgressDisplay, ProgressStage, make_display
from codebatch.cli.output.streams import write_with_colors

# Re-exported, because most commands need it together with the context.
from codebatch.cli.output.tables import table_lines as table_lines
from codebatch.cli.output.terminal import printable_line
from codebatch.errors import CodebatchError, InvalidInput, TaskNotRun
from codebatch.model.entry import display_path
from codebatch.model.text.displayed_paths import paths_displayed_as
from codebatch.model.text.quantities import count_text, human_bytes
from codebatch.operations.project.stores import StoreLocator
from codebatch.store.batches.batch_directory import BatchDir, BatchKind, is_work
from codebatch.store.batches.resolution import belongs_to_other_project, resolve_batch
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.ids import latest_offset
from codebatch.system.files.counted_files import CountedFiles

if TYPE_CHECKING:
    from codebatch.operations.queries.batch_query import BatchQuery

F = TypeVar("F", bound=Callable[..., object])

# A complete command line in a hint: after a colon, or between backquotes.
_COMMAND_IN_HINT = re.compile(r"(?<=: )codebatch [^;`]*[^;` ]|(?<=`)codebatch [^`]+(?=`)")
_COMMANDS_WITH_TRUST = (
    "codebatch resume",
    "codebatch cancel",
    "codebatch work run",
    "codebatch work retry",
    "codebatch work answer",
)
_COMMANDS_WITHOUT_STORE = ("codebatch init", "codebatch pipeline", "codebatch config")


class CommandContext(msgspec.Struct, frozen=True, kw_only=True):
    """The options, the store and the output of a command. `command` are the words that name the command.

    - `files`: counts what is read, for `-v` and `--explain`.
    - `questions`: the queries whose reads `--explain` reports.
    - `display`: shows the progress of the command.
    - `batches`: the batches whose files may be named in the output.
    - `other_stores`: stores that suggested commands must name.
    - `notes_shown`: the notes about the store that were printed, so that each is printed once.
    - `is_trusted`: `--trust` was given, so commands in a store that was created elsewhere may run.
    """

    store_path: str | None
    as_json: bool
    quiet: bool
    command: str
    display: ProgressDisplay
    verbose: bool = False
    color: Color = "auto"
    files: CountedFiles | None = None
    explain: bool = False
    questions: list[BatchQuery] = msgspec.field(default_factory=list)
    batches: list[BatchDir] = msgspec.field(default_factory=list)
    other_stores: list[Path] = msgspec.field(default_factory=list)
    is_trusted: bool = False
    notes_shown: set[str] = msgspec.field(default_factory=set)

    @property
    def store_place(self) -> StoreLocator:
        """The location of the store. Raises InvalidInput."""
        if self.store_path == "":
            raise InvalidInput("--store is empty", hint="check whether a shell variable in the command is empty")
        named = self.store_path or os.environ.get(STORE_VARIABLE)
        return StoreLocator(Path(named) if named else None, self.files, note=self._note_once)

    @property
    def painter(self) -> Painter | None:
        """The painter that colours lines on standard output, or None if they are not coloured."""
        if not is_colored(self.color):
            return None
        sources = self.batches[-1].about.sources if self.batches else ()
        return Painter(sources[0] if len(sources) == 1 else None, has_links=supports_links())

    def batch(
        self, reference: str | None, kind: BatchKind = "analysis", *, is_change: bool = False
    ) -> tuple[StoreDir, BatchDir]:
        """Return a batch and its store. Without a reference, return the latest batch of a kind.

        With `is_change`, a batch of a task list in another part of the project must be named.
        """
        store = self.store_place.open()
        if kind == "analysis":
            batch = resolve_batch(store, reference, self.report, kind=kind)
        else:
            from codebatch.work.control.batch_selection import select_batch  # Queries of analyses do not need it.

            batch = select_batch(store, reference, self.report, kind=kind, is_change=is_change)
        self.batches.append(batch)
        self.report_other_project(store, batch)
        self.report_other_directory(store, batch, reference)
        return store, batch

    def live_batch(
        self, reference: str | None, kind: BatchKind = "work", *, else_latest: bool = False
    ) -> tuple[StoreDir, BatchDir]:
        """Return the named batch, or the only running one of a kind, and its store."""
        from codebatch.work.control.batch_selection import select_live_batch

        store = self.store_place.open()
        batch = select_live_batch(store, reference, self.note, kind=kind, else_latest=else_latest)
        self.report_other_directory(store, batch, reference)
        return store, batch

    def report_other_directory(self, store: StoreDir, batch: BatchDir, reference: str | None) -> None:
        """If the user has not named a batch, and it is of a task list in another directory, print a message."""
        if is_work(batch) and (reference is None or latest_offset(reference) is not None):
            from codebatch.work.control.batch_selection import list_directory_text

            if directory := list_directory_text(store, batch):
                self.report(f"batch {batch.id} is of the task list in {directory}")

    def report_other_project(self, store: StoreDir, batch: BatchDir) -> None:
        """If a batch does not belong to the project of the current directory, print a message on standard error."""
        if store.project is not None and belongs_to_other_project(store, batch):
            project, current = map(display_path, (batch.about.project_root, store.project.root))
            self.report(f"batch {batch.id} belongs to project {project}, not to the current project {current}")

    def use_store_of(self, batch: BatchDir) -> None:
        """Add `--store` with the store of a batch to commands in hints. If it is the default store, do nothing."""
        root = batch.root.parent.parent
        if self.store_place.named is None and self.store_place.store_root() != root:
            self.other_stores.append(root)

    def note(self, text: str) -> None:
        """Print a note on standard error, unless `-q` was given.

        Commands in the note are completed by `suggest`.
        """
        if not self.quiet:
            self.report(text)

    def _note_once(self, text: str) -> None:
        if text not in self.notes_shown:
            self.notes_shown.add(text)
            self.note(text)

    def unless_quiet(self, lines: Iterable[str]) -> Iterable[str]:
        """Return lines that only confirm what a command did, or nothing if `-q` was given."""
        return () if self.quiet else lines

    def detail(self, text: str) -> None:
        """Print a note if `-v` was given."""
        if self.verbose:
            self.note(text)

    def report(self, text: str) -> None:
        """Print a message on standard error, even with `-q`.

        Use this method if an answer would be misleading without the message.
        """
        with self.display.without_progress_line():
            print(printable_line(self.complete_hint(text)), file=sys.stderr, flush=True)

    @property
    def has_colored_notes(self) -> bool:
        """Whether notes on standard error are coloured."""
        return is_colored(self.color, sys.stderr)

    def relay(self, line: str) -> None:
        """Print a line from ProgramOutput, unless `-q` was given. ProgramOutput has already escaped the line."""
        if not self.quiet:
            with self.display.without_progress_line():
                write_with_colors(sys.stderr, f"{line}\n")

    def report_reading(self) -> None:
        """With `-v`, report which store was used and how much was read.

        With `--explain`, also report the numbers of each query.
        """
        if self.files is None:
            return
        emit = self.report if self.explain else self.note
        if self.files.root is None:
            emit("store: not used")
            return
        emit(f"store: {self.files.root}")
        emit(f"read: {count_text(len(self.files.paths), 'file')} of it, {human_bytes(self.files.read_bytes)}")
        for question in self.questions if self.explain else ():
            for line in read_report_lines(question):
                emit(line)

    def phase(self, phase: str, done: int = 0, planned: int = 0, unit: str = "files") -> None:
        """Update the progress display. `planned` is 0 if it is unknown."""
        self.display.show_stage(ProgressStage(phase, done, planned, unit))

    def complete_hint(self, hint: str) -> str:
        """Return a hint whose commands can be run as they are. `--store` and `--trust` are added to them if needed."""
        named = self.store_path or next(map(str, self.other_stores), None)
        if not (named or self.is_trusted):
            return hint

        store = f" --store {shlex.quote(named)}" if named else ""

        def complete(match: re.Match[str]) -> str:
            command = match[0]
            if self.is_trusted and command.startswith(_COMMANDS_WITH_TRUST) and "--trust" not in command:
                command += " --trust"
            is_complete = (
                command.startswith(_COMMANDS_WITHOUT_STORE) or "--store" in command or command.endswith("--help")
            )
            return command if is_complete else command + store

        return _COMMAND_IN_HINT.sub(complete, hint)

    def print(self, document: object, lines: Iterable[str], *, if_none: str = "", name: str | None = None) -> None:
        """Print the answer: the document as JSON, or the lines. If there are no lines, print the note `if_none`.

        A JSON object gets a member `schema`. It names the schema of the command or, if `name` is given, the schema
        `name`. If `name` is empty, the names of the object's members are data, so `schema` is not added.
        """
        if self.as_json:
            encoded = _encode_json_line(_with_schema_name(document, self.command if name is None else name)) + b"\n"
            self.display.erase_for_output()
            sys.stdout.buffer.write(encoded)
        else:
            if isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(errors="backslashreplace")
            is_empty = True
            paint = self.painter or str
            for line in lines:
                if is_empty:
                    self.display.erase_for_output()
                write_with_colors(sys.stdout, f"{paint(printable_line(line))}\n")
                is_empty = False
            if is_empty and if_none:
                self.note(if_none)
        sys.stdout.flush()


def with_common_options(function: F) -> F:
    """Add the common options to a command. The command receives them as one argument, `context`.

    On the command line, these options may precede or follow the name of the command.
    """

    @add_global_options
    @click.pass_context
    def wrapped(ctx: click.Context, /, store: str | None, color: str | None, **arguments: object) -> object:
        given = get_global_options(ctx)
        given.add_given(store, color, {name: bool(arguments.pop(name)) for name in GLOBAL_FLAGS})
        chosen = given.get("store")
        command, is_quiet = command_words(ctx), bool(given["quiet"])
        context = CommandContext(
            store_path=None if chosen is None else str(chosen),
            as_json=bool(given["as_json"]),
            quiet=is_quiet,
            command=command.replace(" ", "-"),
            display=make_display(command, quiet=is_quiet),
            verbose=bool(given["verbose"]),
            color=_resolve_color(given),
            files=CountedFiles() if given["verbose"] or given.get(EXPLAIN_PARAMETER) else None,
            explain=bool(given.get(EXPLAIN_PARAMETER)),
            is_trusted=bool(arguments.get("is_trusted")),
        )
        try:
            return ctx.invoke(function, context=context, **arguments)
        except CodebatchError as error:
            if isinstance(error, TaskNotRun):
                error.hint = _pipelines_hint(error.tasks) or error.hint
            error.hint = error.hint and context.complete_hint(error.hint)
            raise
        finally:
            context.display.close()
            context.report_reading()

    wrapped.__name__ = function.__name__
    wrapped.__doc__ = function.__doc__
    if hasattr(function, "__click_params__"):
        wrapped.__click_params__ = [*function.__click_params__, *getattr(wrapped, "__click_params__", [])]  # type: ignore[attr-defined]
    return wrapped  # type: ignore[return-value]


def _pipelines_hint(tasks: tuple[str, ...]) -> str:
    """Return a hint that names the pipelines of the current project that have one of some tasks. Empty if none has."""
    # Imported here, because most commands do not end with this error.
    from codebatch.operations.project.pipelines import pipelines_with
    from codebatch.query.missing_tasks import pipelines_hint

    return pipelines_hint(pipelines_with(tasks, Path()))


def _resolve_color(given: GlobalOptions) -> Color:
    """Return the colour mode: the value of the last `--color`. Without `--color`, `--no-color` means `never`."""
    match given.get("color"):
        case "always" | "never" | "auto" as mode:
            return mode
        case _:
            return "never" if given["no_color"] else "auto"


class SourcePath(click.Path):
    """A path argument that names a source file.

    An empty path is rejected, because it usually comes from an unset variable. If no file has the given name, the name
    may be the display form of a path, with escapes. It is then decoded (model/text/displayed_paths.py).
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Path:
        text = os.fspath(value)  # The default is already a path.
        if not text:
            self.fail("must not be empty", param, ctx)
        return Path(next(filter(os.path.lexists, (text, *paths_displayed_as(text))), text))


batch_option = common_option("batch", default_text="latest of this project")
work_batch_option = common_option("batch", default_text="latest task list of this project")
whole_batch_option = common_option("batch", default_text="latest of the whole project")


def query_batch_option(function: F) -> F:
    """Add the options `--batch` and `--explain` to a command that queries a batch."""
    return whole_batch_option(explain_option(function))


path_option = common_option("path")


def _with_schema_name(document: object, name: str) -> object:
    """Return an object with an added member `schema` and sorted members. Return any other value unchanged."""
    members = msgspec.to_builtins(document) if isinstance(document, msgspec.Struct) else document
    if not isinstance(members, dict) or not name:
        return document
    return dict(sorted({"schema": answer_schema_name(name), **members}.items()))


def _encode_json_line(document: object) -> bytes:
    try:
        return msgspec.json.format(msgspec.json.encode(document), indent=2)
    # The document has a path that is not valid UTF-8. Python's json module writes it with lone surrogates, from which
    # Python can restore the bytes.
    except UnicodeEncodeError:
        import json

        return json.dumps(msgspec.to_builtins(document), indent=2).encode("ascii")
