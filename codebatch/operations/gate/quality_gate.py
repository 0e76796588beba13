"""The quality gate: evaluation of conditions on the regressions of a change (SPEC.md "Quality gate").

HEAD is compared with a base, the batch of the tree before the change. A regression can violate a condition. Regressions
outside of the change are counted but violate no condition.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from codebatch.compare.conditions import (
    EXPIRING,
    GATE_CHANGED,
    REFERENCE_CONDITIONS,
    SEVERITY_RAISED,
    Condition,
    ConditionResult,
    evaluate_conditions,
)
from codebatch.compare.differences import Change
from codebatch.compare.states import ChangeState
from codebatch.errors import BatchIncomplete, InvalidInput, ToolMismatch
from codebatch.model.entry import display_path
from codebatch.model.text.quantities import count_text
from codebatch.operations.api.batch import Batch
from codebatch.operations.api.store import Store
from codebatch.operations.comparison.comparison import Comparison
from codebatch.operations.comparison.revisions import NamedCommit
from codebatch.operations.gate.base_runs import obtain_commit_batch, rerun_with_head_tasks
from codebatch.operations.gate.base_selection import ComparisonBase, NotCompared, choose_base
from codebatch.operations.gate.base_settings import HiddenFindings, find_hidden
from codebatch.operations.gate.baselines import diff_baseline, ignore_baseline_file, read_baseline
from codebatch.operations.gate.changed_lines import ChangeFilter, touched_since
from codebatch.operations.gate.changed_settings import ChangedSettings, changed_settings_of, with_settings
from codebatch.operations.gate.condition_inputs import (
    check_metric,
    compare_for_conditions,
    find_broken,
    judgeable_conditions,
    parse_conditions,
    require_reasons_rule,
)
from codebatch.operations.gate.revision_runs import name_revision, open_commit
from codebatch.operations.gate.suppressions import expired_suppressions, utc_today
from codebatch.operations.gate.unchecked_parts import UncheckedParts, find_unchecked_parts
from codebatch.operations.history.checkouts import find_commit
from codebatch.operations.project.configuration import load_configuration
from codebatch.operations.project.stores import locate_store
from codebatch.operations.queries.tools import ToolTasks
from codebatch.operations.runs.execution import ExecutionSettings, Listener
from codebatch.query.completeness import Completeness, check_kinds
from codebatch.query.filters.arguments import path_argument, refuse_invalid_texts, refuse_unknown
from codebatch.query.filters.paths import PathFilter
from codebatch.store.batches.batch_directory import BatchDir
from codebatch.store.batches.resolution import resolve_batch
from codebatch.store.batches.store_directory import StoreDir


class BaselineReference(NamedTuple):
    """A baseline file as the base of a comparison. `why` is the reason to use it, as text for the user.

    No task of HEAD reports findings of `tools_not_run`, which the baseline names.
    """

    why: str
    tools_not_run: tuple[str, ...]


class CheckResult(NamedTuple):
    """The result of a check.

    - `judged`: each condition with its result.
    - `forbidden`: the changes that violate a condition.
    - `allowed`: new findings that violate no condition.
    - `counts`: the number of changes in each state.
    - `completeness`: the completeness of HEAD. Files whose content the comparison could not read count as missing.
    - `outside_change`: the number of regressions that were ignored because the change under review did not touch their
      lines. Such regressions exist only if the base is older than the commit where the change begins.
    - `on_unchanged_lines`: the number of other regressions that `changed_lines` ignored, because their lines are the
      same as in the base.
    - `not_judged`: the number of changes that would violate a condition, but may be older than the change: the base is
      incomplete and has no result for them. Broken imports and uses in files that HEAD could not parse completely are
      included. With a baseline, the number of its findings whose tool HEAD did not run.

    - `changed_settings`: the settings that decide about findings and that the change changes, as text. None if they are
      unknown.
    - `hidden`: the findings that these settings hide.
    - `path`: the filter that selects the files whose changes were evaluated, or empty.
    - `unchecked`: the parts of HEAD that were not checked, or less than in the base.

    If nothing was compared, `base` is the reason, and all members except `head` are empty.
    """

    head: Batch
    base: ComparisonBase | NotCompared | BaselineReference
    comparison: Comparison | None
    judged: Sequence[ConditionResult]
    forbidden: Sequence[Change]
    allowed: Sequence[Change]
    counts: Mapping[ChangeState, int]
    completeness: Completeness
    outside_change: int = 0
    on_unchanged_lines: int = 0
    not_judged: int = 0
    changed_settings: tuple[str, ...] | None = ()
    hidden: HiddenFindings = HiddenFindings()
    path: str = ""
    unchecked: UncheckedParts = UncheckedParts()

    @property
    def is_compared(self) -> bool:
        """Whether HEAD was compared with a base or a baseline."""
        return not isinstance(self.base, NotCompared)

    @property
    def has_passed(self) -> bool:
        """Whether HEAD was compared completely, and no condition is violated."""
        is_judged = self.is_compared and self.completeness.is_complete and not self.not_judged
        return is_judged and all(result.verdict == "passed" for result in self.judged)


class GateChecker(NamedTuple):
    """The environment of a check.

    `environment` has the variables in which CI describes the build. With `allow_incomparable`, a base with other tasks
    is accepted if it cannot be analysed with the tasks of HEAD. With `uses_base_settings`, both batches are analysed
    with the settings of the base. `today` is by default the present day.
    """

    store: Store
    execution: ExecutionSettings
    listener: Listener
    environment: Mapping[str, str]
    allow_incomparable: bool = False
    uses_base_settings: bool = False
    today: date | None = None

    def check(
        self,
        conditions: Sequence[Condition],
        base: str | None = None,
        head: str | None = None,
        *,
        changed_lines: bool = False,
        path: str = "",
    ) -> CheckResult:
        """Compare HEAD with a base and evaluate conditions. If no base is given, one is chosen.

        Only changes of files that the filter `path` selects are evaluated. Raises InvalidInput if it selects no file.
        Raises BatchIncomplete if the base has other tasks and cannot be analysed with the tasks of HEAD, or if no head
        is given and the latest run is restricted to paths and of another tree. Raises TaskNotRun if no task of HEAD can
        have findings. Raises InvalidInput, UnknownId, Stopped or StoreError.
        """
        newer, commit = self._open_head(head)
        store, batch = newer.question.store, newer.question.batch
        if nothing := _find_nothing_read(newer):
            return CheckResult(newer, nothing, None, (), (), (), {}, newer.completeness)
        check_kinds(lambda: newer.question.catalogue, newer.question.records, ("diagnostic",))
        conditions = judgeable_conditions(conditions, newer, self.listener.note, changed_lines=changed_lines)
        for condition in conditions:
            check_metric(newer, condition.metric)
        chosen_base = (
            self._find_named_base(base, batch, commit)
            if base is not None
            else choose_base(store, batch, self.execution, self.listener, self.environment)
        )
        if isinstance(chosen_base, NotCompared):
            return CheckResult(newer, chosen_base, None, (), (), (), {}, newer.completeness)
        is_required = self.uses_base_settings or any(condition.text == GATE_CHANGED for condition in conditions)
        changed = changed_settings_of(batch, chosen_base.batch, is_required=is_required)
        newer, chosen_base, hidden = self._choose_settings(newer, chosen_base, changed)
        older = self.store.batch(chosen_base.batch.id, partial=True)
        conditions = judgeable_conditions(conditions, older, self.listener.note)
        comparison = compare_for_conditions(older, newer, conditions, path)
        touched = touched_since(batch, chosen_base.change_begins)
        lines = ChangeFilter(comparison, touched, changed_lines_only=changed_lines)
        require_reasons_rule(newer, conditions)
        broken = find_broken(comparison, conditions)
        expired = expired_suppressions(newer, self.today or utc_today())
        selected = PathFilter(path)
        more = (each for each in (*broken.found, *expired) if selected.matches(each.path_bytes))
        changes = chain(filter(lines, comparison.differences()), (Change("new", None, each) for each in more))
        judged, forbidden, allowed = evaluate_conditions(conditions, changes)
        return CheckResult(
            newer,
            chosen_base,
            comparison,
            [with_settings(result, changed.texts) for result in judged],
            forbidden,
            allowed,
            comparison.counts,
            _with_lost_files(newer.completeness, comparison, lacks_files=broken.lacks_files),
            lines.not_of_change,
            lines.on_other_lines,
            broken.not_judged + (0 if self.allow_incomparable else _count_not_judged(conditions, comparison)),
            None if changed.unknown_reason else changed.texts,
            hidden,
            path,
            find_unchecked_parts(comparison.trees, self.execution.configuration, path),
        )

    def check_baseline(self, conditions: Sequence[Condition], path: Path, head: str | None = None) -> CheckResult:
        """Evaluate conditions on the findings of HEAD that are not in a baseline.

        Raises InvalidInput (also for a condition that needs severities or metrics), UnknownId, or StoreError.
        """
        conditions = [each for each in conditions if not (each.is_default and each.text in REFERENCE_CONDITIONS)]
        unknown = [
            condition.text
            for condition in conditions
            if condition.text in (SEVERITY_RAISED, GATE_CHANGED, *REFERENCE_CONDITIONS)
            or condition.kind != "diagnostic"
        ]
        if unknown:
            note = (
                f"--fail-on {', '.join(unknown)} cannot be used with a baseline: baselines contain "
                "neither severities nor metrics, and no files"
            )
            raise InvalidInput(note, hint="compare with a batch: codebatch check BASE")
        entries = read_baseline(path)
        newer, _ = self._open_head(head)
        ignore_baseline_file(newer, path)
        if nothing := _find_nothing_read(newer):
            return CheckResult(newer, nothing, None, (), (), (), {}, newer.completeness)
        answer, difference = diff_baseline(newer, entries)
        require_reasons_rule(newer, conditions)
        expired = expired_suppressions(newer, self.today or utc_today())
        new = (finding for finding in difference.new if finding.code != EXPIRING)
        changes = (Change("new", None, finding) for finding in chain(new, expired))
        verdicts = evaluate_conditions(conditions, changes)
        known = len(answer.result.findings) - len(difference.new)
        counts: dict[ChangeState, int] = {"unchanged": known, "new": len(difference.new), "fixed": difference.gone}
        if difference.not_comparable:
            counts["not_comparable"] = difference.not_comparable
        tasks = ToolTasks(newer.question)
        tools = sorted({entry.tool for entry in entries})
        base = BaselineReference(
            f"{count_text(len(entries), 'finding')} in the baseline {display_path(os.fsencode(path))}",
            tuple(tool for tool in tools if not tasks.reporting_tasks(tool)),
        )
        not_judged = 0 if self.allow_incomparable else sum(entry.tool in base.tools_not_run for entry in entries)
        reason = "a baseline has no settings"
        hidden = HiddenFindings(findings=None, lowered=None, unknown_reason=reason)
        result = CheckResult(newer, base, None, *verdicts, counts, newer.completeness, not_judged=not_judged)
        return result._replace(changed_settings=None, hidden=hidden)

    def _open_head(self, reference: str | None) -> tuple[Batch, str]:
        """Return HEAD and its commit. The commit is empty if it is unknown, or if there are uncommitted changes."""
        if reference is None:
            head = self.store.batch(partial=True)
            _refuse_newer_part(self.store.store, head.question.batch)
            _refuse_other_commit(head)
        else:
            side = name_revision(self.store, reference)
            if isinstance(side, NamedCommit):
                latest = self.store.batch(partial=True).question.batch
                return open_commit(self.store, side, latest, self._run_commit), side.id
            head = side
        about = head.question.batch.about
        return head, about.commit if about.is_clean else ""

    def _find_named_base(self, reference: str, head: BatchDir, commit: str) -> ComparisonBase | NotCompared:
        side = name_revision(self.store, reference)
        if side.id in (head.id, commit):
            return NotCompared(
                f"BASE ({reference}) and HEAD are the same {'batch' if side.id == head.id else 'commit'}"
            )
        if isinstance(side, Batch):
            return ComparisonBase(side.question.batch, "given on the command line")
        return ComparisonBase(
            self._run_commit(self.store.store, head, side), f"batch of {side.label}, given on the command line"
        )

    def _run_commit(self, store: StoreDir, head: BatchDir, commit: NamedCommit) -> BatchDir:
        return obtain_commit_batch(store, head, commit, self.execution, self.listener)

    def _choose_settings(
        self, head: Batch, base: ComparisonBase, changed: ChangedSettings
    ) -> tuple[Batch, ComparisonBase, HiddenFindings]:
        """Return HEAD and the base, analysed with equal tasks and settings, and what the settings of HEAD hide."""
        store, batch = head.question.store, head.question.batch
        settings, hidden = find_hidden(
            head, base.batch, changed, self.execution, self.listener, is_required=self.uses_base_settings
        )
        if settings is None or not self.uses_base_settings:
            return head, self._rerun_base(store, batch, base), hidden
        base_batch = settings.analyse_base(store, base.batch, self.listener)
        why = f"{base.why}, with the settings of the base"
        head = self.store.batch(settings.head.id, partial=True)
        return head, ComparisonBase(base_batch, why, base.change_begins), hidden

    def _rerun_base(self, store: StoreDir, head: BatchDir, base: ComparisonBase) -> ComparisonBase:
        """Return the base with the tasks of HEAD: if its tasks differ, analyse its tree again."""
        try:
            reanalysed = rerun_with_head_tasks(store, head, base.batch, self.execution, self.listener)
        except ToolMismatch as error:
            if self.allow_incomparable:
                return base
            hint = (
                "run HEAD again with this installation, or add --allow-incomparable to compare the batches as they are"
            )
            raise BatchIncomplete(error.message, hint=hint) from error
        if reanalysed.id == base.batch.id:
            return base
        return ComparisonBase(reanalysed, f"{base.why}, re-analysed with the tasks of HEAD", base.change_begins)


def _find_nothing_read(head: Batch) -> NotCompared | None:
    """Return the reason why a check of a batch would judge nothing, or None if the batch has files."""
    batch = head.question.batch
    if batch.about.items:
        return None
    return NotCompared(f"batch {batch.id} has no files, so nothing was checked", is_allowable=True)


def _refuse_newer_part(store: StoreDir, head: BatchDir) -> None:
    """Raise BatchIncomplete if `head`, which covers the whole project, is outdated.

    It is outdated if a later run was restricted to paths and had another tree.
    """
    latest = resolve_batch(store, None)
    if latest.about.snapshot_id == head.about.snapshot_id:
        return
    paths = ", ".join(map(display_path, latest.about.paths))
    message = (
        f"the latest run, {latest.id}, is restricted to {paths} and newer than {head.id}, "
        "which covers the whole project"
    )
    hint = f"run the whole project: codebatch run {shlex.quote(display_path(latest.about.project_root))}"
    raise BatchIncomplete(message, hint=hint)


def _refuse_other_commit(head: Batch) -> None:
    """Raise BatchIncomplete if the work tree has another commit than the latest batch, and other files."""
    about = head.question.batch.about
    commit = find_commit(about.sources)
    if commit in ("", about.commit) or not about.commit or not head.question.is_stale:
        return
    message = f"the latest batch is of commit {about.commit[:12]}, but the work tree has commit {commit[:12]}"
    raise BatchIncomplete(message, hint=f"run: codebatch run {shlex.quote(display_path(about.project_root))}")


def check(
    base: str | None = None,
    head: str | None = None,
    *,
    store: str | Path | None = None,
    fail_on: Sequence[str] = (),
    changed_lines: bool = False,
    path: str = "",
    baseline: str | Path | None = None,
    settings_from: Literal["base", "head"] = "head",
    allow_incomparable: bool = False,
    jobs: int | None = None,
    project: str | Path | None = None,
    listener: Listener | None = None,
) -> CheckResult:
    """Compare HEAD, by default the latest batch, with a base and evaluate conditions, as `codebatch check` does.

    If neither `base` nor `baseline` is given, the base is chosen as in `codebatch check`. If the base or HEAD is a
    commit without a batch, the commit is analysed first.

    `path` selects files, as in `Batch.compare`. With `settings_from="base"`, both sides are analysed with the settings
    of the base.

    `project` is a directory of the project, by default the current directory. Settings, the default store and the
    default HEAD are those of the project.

    `CheckResult.completeness` shows how complete HEAD is. If there is no base, `CheckResult.is_compared` is False.

    Raises InvalidInput, UnknownId, BatchIncomplete, Stopped or StoreError.
    """
    refuse_invalid_texts(fail_on=fail_on)
    refuse_unknown("settings_from", (settings_from,), ("base", "head"))
    conditions = parse_conditions(fail_on)
    place = locate_store(store, project)
    execution = ExecutionSettings(configuration=load_configuration(place.directory), jobs=jobs)
    listener = listener or Listener()
    opened = Store(place.open(), listener.note)
    checker = GateChecker(opened, execution, listener, os.environ, allow_incomparable, settings_from == "base")
    if baseline is None:
        return checker.check(conditions, base, head, changed_lines=changed_lines, path=path)
    if base is not None or changed_lines or path or settings_from == "base":
        raise InvalidInput("`baseline` replaces the base batch and cannot be used with options of the base")
    return checker.check_baseline(conditions, path_argument(baseline), head)


def _with_lost_files(head: Completeness, comparison: Comparison, *, lacks_files: bool) -> Completeness:
    return msgspec.structs.replace(
        head, lost=head.lost + len(comparison.trees.lost), lacks_files=head.lacks_files or lacks_files
    )


def _count_not_judged(conditions: Sequence[Condition], comparison: Comparison) -> int:
    """Return the number of changes that may violate a condition, but for which an incomplete base has no result."""
    if comparison.old.is_complete:
        return 0
    changes = (change for change in comparison.differences({"not_comparable"}) if change.old is None)
    return len(evaluate_conditions(conditions, (change._replace(state="new") for change in changes)).forbidden)
