"""Import of findings from files or standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from codebatch.errors import BatchIncomplete, InvalidInput
from codebatch.model.analysis.imports import IMPORT_BYTES_MAX
from codebatch.model.analysis.report_formats import ReportFormat, ReportFormatName, format_name, parse_report_format
from codebatch.model.task import JsonValue
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.stores import locate_store
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.operations.runs.imports import ImportResult, InvalidImport, import_into
from codebatch.query.filters.arguments import path_argument
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import StoreDir
from codebatch.system.files.regular_files import read_regular

STANDARD_INPUT = "-"
_ATTEMPTS_MAX = 100


def import_findings(
    file: str | Path | Sequence[str | Path],
    form: ReportFormatName | Mapping[str, JsonValue],
    task: str,
    *,
    store: str | Path | None = None,
    batch: str | None = None,
    root: str | Path | None = None,
    jobs: int | None = None,
    allow_failed: bool = False,
    project: str | Path | None = None,
    listener: Listener | None = None,
) -> ImportResult:
    """Import findings of another tool as records of a task.

    The records are stored durably in a new batch, which becomes the latest batch.

    - `file`: one file, or several files of the same format.
    - `form`: the name of the format, or a table that describes the format, such as `{"format": "json", …}`.
    - `batch`: the batch to which the findings are added, by default the latest batch of the whole project. This batch
      itself does not change.
    - `root`: the path that the project had when the tool ran, by default its current path. An absolute path in
      the file that begins with `root` is converted to a path in the project.
    - `allow_failed`: accept a file in which the tool reports that it failed.
    - `project`: a directory of the project whose settings, default store and latest batch are used, by default the
      current directory.

    Raises InvalidInput, ToolMismatch, BatchIncomplete or StoreError. Raises InvalidImport if a file has another format,
    or if it reports a failure without `allow_failed`. `ImportResult.shortfall` describes other data that is missing
    from the batch.
    """
    place = locate_store(store, project)
    return import_files(
        ExecutionSettings(configuration=load_configuration(place.directory), jobs=jobs),
        place.open(),
        batch,
        [str(path_argument(file_path)) for file_path in ([file] if isinstance(file, str | Path) else file)],
        form=check_format(form),
        task=task,
        root=None if root is None else path_argument(root),
        allow_failed=allow_failed,
        listener=listener or Listener(),
    )


def check_format(form: JsonValue) -> ReportFormat:
    """Return the format of reports to import. Raises InvalidInput."""
    try:
        return parse_report_format(form)
    except ValueError as error:
        raise InvalidInput(str(error), hint="see: codebatch help data") from error


class _BatchSupersededError(Exception):
    """Raised if another process has created a newer batch during an import."""


def import_files(
    execution: ExecutionSettings,
    store: StoreDir,
    reference: str | None,
    names: Sequence[str],
    *,
    form: ReportFormat,
    task: str,
    root: Path | None,
    allow_failed: bool,
    listener: Listener,
) -> ImportResult:
    """Import the named files like `import_into`. `-` is standard input. Errors contain the file names.

    If no batch is given, the import starts from the latest one, and another import may replace it meanwhile. This
    import is then repeated with the new latest batch, so both imports are kept. But if the new batch has another
    snapshot, BatchIncomplete is raised.
    """
    if not names or names.count(STANDARD_INPUT) > 1:
        problem = "standard input was given twice" if names else "no file given"
        raise InvalidInput(problem, hint=f"for example: codebatch import {format_name(form)} FILE FILE --as {task}")
    files = _read_imports(names)
    joined_names = ", ".join(names)
    first = start = resolve_batch(store, reference, listener.note, is_unrestricted=True)
    for _ in range(_ATTEMPTS_MAX):

        def check(expected: BatchDir = start) -> None:
            if reference is None and resolve_batch(store, None, is_unrestricted=True).id != expected.id:
                raise _BatchSupersededError

        try:
            return import_into(
                execution,
                store,
                start,
                files,
                form=form,
                task=task,
                root=None if root is None else os.fsencode(os.path.abspath(root)),
                allow_failed=allow_failed,
                check=check,
                listener=listener,
            )
        except (BatchIncomplete, InvalidImport) as error:
            raise type(error)(f"{joined_names}: {error.message}", hint=error.hint) from error
        except _BatchSupersededError:
            start = resolve_batch(store, reference, listener.note, is_unrestricted=True)
            if start.about.snapshot_id != first.about.snapshot_id:
                break
    hint = f"give the batch: codebatch import {format_name(form)} FILE --as {task} --batch {first.id}"
    raise BatchIncomplete(
        f"{joined_names}: nothing was imported, because another batch was created in the meantime", hint=hint
    )


def _read_imports(names: Sequence[str]) -> list[bytes]:
    """Return the content of files or standard input.

    Reading stops as soon as the total size exceeds the import limit. Raises InvalidInput.
    """
    files: list[bytes] = []
    for name in names:
        files.append(_read_import(name))
        if sum(map(len, files)) > IMPORT_BYTES_MAX:
            break
    return files


def _read_import(file: str) -> bytes:
    try:
        if file == STANDARD_INPUT:
            return sys.stdin.buffer.read(IMPORT_BYTES_MAX + 1)
        return read_regular(path_argument(file), bytes_max=IMPORT_BYTES_MAX, is_link_followed=True)
    except OSError as error:
        hint = "to import the output of a program, pipe the output to this command and give - as FILE"
        raise InvalidInput(f"cannot read {file}: {error.strerror}", hint=hint) from error
