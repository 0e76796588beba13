"""Analysis of a change with the settings of its base. It shows which findings the settings of the change hide.

The settings files of the base are laid over the files of HEAD in a scratch directory. Only programs of the user's
project run, and only if the change does not change them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import msgspec

from codebatch.compare.differences import Change
from codebatch.coordinator.analysis.planning import check_tools
from codebatch.errors import BatchIncomplete, CodebatchError, InvalidInput, Stopped, ToolMismatch
from codebatch.git.ancestry import Repository
from codebatch.git.changed_lines import changed_paths
from codebatch.git.commit_tree import check_out_commit
from codebatch.git.repository import GitError
from codebatch.model.analysis.imports import is_import
from codebatch.model.entry import display_path
from codebatch.model.plan import PlannedTask
from codebatch.model.record import Diagnostic
from codebatch.operations.api.batch import Batch
from codebatch.operations.gate.base_runs import freeze_commit, head_rules, run_snapshot_as
from codebatch.operations.gate.changed_settings import ChangedSettings
from codebatch.operations.history.checkouts import find_source_repository
from codebatch.operations.project.configuration import Configuration, load_configuration
from codebatch.operations.project.pipelines import project_code_tasks
from codebatch.operations.project.project_snapshot import rules_for, take_snapshot_of_paths
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.operations.runs.planning import choose_pipeline, plan_tasks
from codebatch.plugins.command_tasks import find_program
from codebatch.snapshotting.selection import SourceRules
from codebatch.store.batches.batch_directory import BatchDir, Checkout
from codebatch.store.batches.store_directory import StoreDir
from codebatch.store.snapshots.snapshots import Snapshot, load_snapshot

_UNCOMMITTED_BYTES_MAX = 64 << 20


class HiddenFindings(msgspec.Struct, frozen=True, kw_only=True):
    """The findings that the settings of a change hide.

    - `findings`: the number of findings of HEAD that only the settings of the base report.
    - `lowered`: the number of findings to which the settings of the base give a higher severity.
    - `unknown_reason`: why both numbers are null, or empty.
    """

    findings: int | None = 0
    lowered: int | None = 0
    unknown_reason: str = ""


class BaseSettings(NamedTuple):
    """The settings of a base.

    - `head`: the batch of HEAD's files with these settings.
    - `execution`: the settings as configuration. `rules` select the files.
    """

    head: BatchDir
    execution: ExecutionSettings
    rules: SourceRules

    def analyse_base(self, store: StoreDir, base: BatchDir, listener: Listener) -> BatchDir:
        """Return the batch of the base's files with these settings. Raises BatchIncomplete, Stopped or StoreError."""
        checkout = Checkout(base.about.commit, False)  # Other rules may have selected the files of this commit.
        try:
            snapshot = freeze_commit(store, base.about.commit, self.head, self.rules, listener)
            return run_snapshot_as(store, self.head, snapshot, self.execution, listener, checkout, base)
        except (GitError, OSError, ToolMismatch, InvalidInput) as error:
            raise BatchIncomplete(f"the base cannot be analysed with its settings: {error}") from error


def find_hidden(
    head: Batch,
    base: BatchDir,
    changed: ChangedSettings,
    execution: ExecutionSettings,
    listener: Listener,
    *,
    is_required: bool,
) -> tuple[BaseSettings | None, HiddenFindings]:
    """Return the settings of the base, if they differ, and the findings that the settings of HEAD hide.

    If the settings of the base cannot be applied, these findings are unknown. If `is_required` is set, BatchIncomplete
    is raised instead. Raises Stopped at a signal, and StoreError.
    """
    if not changed.paths:
        unknown = HiddenFindings(findings=None, lowered=None, unknown_reason=changed.unknown_reason)
        return None, unknown if changed.unknown_reason else HiddenFindings()
    try:
        settings = _apply_base_settings(head.question.store, head.question.batch, base, changed, execution, listener)
    except BatchIncomplete as error:
        if is_required:
            raise
        return None, HiddenFindings(findings=None, lowered=None, unknown_reason=error.message)
    return settings, _count_hidden(settings.head.id, head, changed)


def _apply_base_settings(
    store: StoreDir,
    head: BatchDir,
    base: BatchDir,
    changed: ChangedSettings,
    execution: ExecutionSettings,
    listener: Listener,
) -> BaseSettings:
    """Analyse the files of HEAD with the settings of the base.

    Raises BatchIncomplete with the reason if this is impossible, and Stopped at a signal.
    """
    place = ""
    try:
        if changed.programs:
            raise GitError(f"the change changes {', '.join(changed.programs)}, which a task executes")
        check_tools(
            execution.configuration.catalogue.with_imports(head.about.imports), head.plan(), head.about.programs
        )
        repository_and_directory = find_source_repository(head.about.sources)
        if repository_and_directory is None or not head.about.commit:
            raise GitError("HEAD has no commit")
        repository = Repository(*repository_and_directory)
        listener.note("settings of the check differ from the base; analysing HEAD with the settings of the base")
        with check_out_commit(repository, head.about.commit, base.about.commit, changed.paths) as directory:
            place = f"{os.fsdecode(directory)}/"
            if not head.about.is_clean:
                _copy_uncommitted(repository, head.about.commit, directory, changed.paths)
            configuration = _load_base_configuration(directory, changed, execution.configuration, repository.directory)
            rules = _base_rules(head_rules(store, head), execution.configuration, configuration)
            taken = take_snapshot_of_paths(store, [Path(place)], rules, listener.phase, is_temporary=True)
            snapshot = load_snapshot(store.files, store.root, taken.snapshot_id)
            _refuse_other_files(snapshot, load_snapshot(store.files, store.root, head.about.snapshot_id), changed.paths)
            tasks = _plan_base_tasks(head, configuration, execution.configuration, listener)
        changed_execution = msgspec.structs.replace(execution, configuration=configuration)
        checkout = Checkout(head.about.commit, False)
        batch = run_snapshot_as(store, head, snapshot, changed_execution, listener, checkout, tasks=tasks)
        return BaseSettings(batch, changed_execution, rules)
    except Stopped:
        raise
    except (CodebatchError, GitError, OSError) as error:
        message = f"HEAD cannot be analysed with the settings of the base: {str(error).replace(place, '')}"
        raise BatchIncomplete(message, hint="judge by the settings of HEAD: --settings-from head") from error


def _count_hidden(base_settings_head: str, head: Batch, changed: ChangedSettings) -> HiddenFindings:
    """Count the findings that HEAD does not report, or with a lower severity, because of its settings."""
    comparison = head.compare(base_settings_head)
    if not comparison.is_complete:
        return HiddenFindings(findings=None, lowered=None, unknown_reason="results are missing")
    changes = [change for change in comparison.differences() if not _is_at(change, changed.paths)]
    # A renamed rule reports the same message at the same location.
    reported = {_identity(change.new) for change in changes if change.old is None}
    hidden = [change for change in changes if change.new is None and _identity(change.old) not in reported]
    lowered = sum(change.state == "severity_lowered" for change in changes)
    return HiddenFindings(findings=len(hidden), lowered=lowered)


def _is_at(change: Change, paths: Collection[bytes]) -> bool:
    record = change.old or change.new
    return record is not None and record.path_bytes in paths


def _identity(record: object) -> object:
    assert isinstance(record, Diagnostic)
    return record.path_bytes, record.line, record.column, record.message


def _copy_uncommitted(repository: Repository, commit: str, directory: bytes, settings: Collection[bytes]) -> None:
    """Copy the uncommitted changes of a work tree to the checkout of its commit. Raises GitError or OSError."""
    size_bytes = 0
    for path in sorted({*changed_paths(repository, commit, None)} - {*settings}):
        source, target = os.path.join(repository.directory, path), os.path.join(directory, path)
        if not (os.path.realpath(os.path.dirname(target)) + b"/").startswith(os.path.realpath(directory) + b"/"):
            raise GitError(f"{display_path(path)} is behind a link")
        if os.path.lexists(target):
            os.remove(target)
        if os.path.islink(source) or os.path.isfile(source):
            size_bytes += os.lstat(source).st_size
            if size_bytes > _UNCOMMITTED_BYTES_MAX:
                raise GitError("there are too many uncommitted changes")
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def _load_base_configuration(
    directory: bytes, changed: ChangedSettings, own: Configuration, project: bytes
) -> Configuration:
    """Return the settings in a checkout. Programs are those of the project. Raises BatchIncomplete."""
    top, source = Path(os.fsdecode(directory)), Path(os.fsdecode(project))
    configuration = load_configuration(top, source)
    file = configuration.file
    if file is not None and file.resolve().parent != top.resolve():
        raise BatchIncomplete(f"{file.name} is not a file in the root of the project")
    is_file_in_commit = (
        own.file is None or own.file.name.encode() in changed.paths or os.path.lexists(top / own.file.name)
    )
    if not is_file_in_commit or (own.file is not None and own.file.resolve().parent != source.resolve()):
        raise BatchIncomplete(f"{own.file} is not in the commit of HEAD")
    return configuration


def _base_rules(rules: SourceRules | None, own: Configuration, base: Configuration) -> SourceRules:
    """Return the rules of the base, with the patterns that the command line added to the rules of HEAD."""
    configured = rules_for(own, (), ())
    rules = rules or configured
    count = len(configured.exclude)
    if rules.exclude[:count] != configured.exclude:
        raise BatchIncomplete("the settings have changed since HEAD was analysed")
    return rules_for(base, () if rules.include == configured.include else rules.include, rules.exclude[count:])


def _refuse_other_files(snapshot: Snapshot, head: Snapshot, settings: Collection[bytes]) -> None:
    for entry in snapshot.entries:
        other = head.entry(entry.path)
        if other is not None and other != entry and entry.path not in settings:
            raise BatchIncomplete(f"{entry.text} has changed since HEAD was analysed")


def _plan_base_tasks(
    head: BatchDir, configuration: Configuration, own: Configuration, listener: Listener
) -> list[PlannedTask]:
    """Return the tasks that the base's settings plan. Imported findings are those of HEAD.

    Code of the project is not started if HEAD ran none, because HEAD may have been analysed with `--no-commands`.
    """
    plan, settings = head.plan(), configuration.settings
    name = settings.pipeline if plan.pipeline == own.settings.pipeline else plan.pipeline
    commands = configuration.catalogue.commands
    runnable = [
        task
        for task in project_code_tasks(configuration, name)  # `choose_pipeline` would load custom tasks.
        if not (task in commands and commands[task].table.optional and find_program(commands[task]) is None)
    ]
    if runnable and {*own.catalogue.commands, *own.catalogue.custom_locations}.isdisjoint(plan.task_names):
        raise BatchIncomplete(f"HEAD was analysed without a task that runs code of the project, such as {runnable[0]}")
    pipeline = choose_pipeline(configuration, name)
    source = Path(os.fsdecode(head.about.sources[0])).resolve()
    is_project = own.directory.resolve().is_relative_to(source)
    tasks = plan_tasks(configuration, pipeline, listener.note, is_project=is_project)
    return [*tasks, *filter(is_import, plan.tasks)]
