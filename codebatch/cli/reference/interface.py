"""The description of the command line: commands, options, and the JSON types of answers.

This module imports every command. It is as long as it is because it has one table of all answers.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import UnionType
from typing import get_args

import click
import msgspec
from msgspec import UNSET, UnsetType

from codebatch import __version__
from codebatch.cli.answers import rules
from codebatch.cli.answers import schemas as answers
from codebatch.cli.answers.differences import DiffAnswer, ImprovementsAnswer, RegressionsAnswer
from codebatch.cli.answers.run_answer import RunAnswer
from codebatch.cli.changes.apply import ApplyAnswer
from codebatch.cli.changes.branch import BranchAnswer
from codebatch.cli.changes.changes import ChangeGroupRow, ChangeRow
from codebatch.cli.compare.baseline import BaselineCreateAnswer, BaselineRule
from codebatch.cli.compare.check import CheckReport
from codebatch.cli.framework.answer_printing import AnswerScope
from codebatch.cli.framework.commands import HelpfulOption as CommandOption
from codebatch.cli.framework.explain_answers import EXPLAINED_COMMANDS, ExplainedCommand
from codebatch.cli.framework.groups import GLOBAL_FLAGS, answer_schema_name
from codebatch.cli.query.export import ExportAnswer
from codebatch.cli.query.report import ReportAnswer
from codebatch.cli.reference.help import HelpAnswer, VersionAnswer
from codebatch.cli.run.imports import ImportAnswer
from codebatch.cli.run.part import PartAnswer
from codebatch.cli.run.serve import ServeAnswer
from codebatch.cli.run.task import TaskTestAnswer, TaskTryAnswer
from codebatch.cli.run.trace import TraceAnswer
from codebatch.cli.store.collection import GcAnswer, StoreStatsAnswer
from codebatch.cli.store.objects import CatObjectAnswer
from codebatch.cli.store.snapshots import SnapshotShowAnswer
from codebatch.cli.work.ask import AskAnswer
from codebatch.cli.work.control import AttemptRow
from codebatch.cli.work.log import LogRow
from codebatch.errors import CodebatchError
from codebatch.model.entry import EntryLine
from codebatch.model.record import Record, Symbol
from codebatch.model.task import PIPELINES
from codebatch.model.work.event import AnyEvent
from codebatch.operations.engines.check import EngineCheck
from codebatch.operations.gate.baselines import BaselineUpdate
from codebatch.operations.hotspots.hotspots import HotspotBy, Hotspots
from codebatch.operations.maintenance.cache_misses import MissesAnswer
from codebatch.operations.maintenance.diagnosis import Diagnosis
from codebatch.operations.maintenance.verification import VerifyAnswer
from codebatch.operations.names.symbol_overview import SymbolOverview
from codebatch.operations.project.scaffolding import RuleScaffold, TaskScaffold
from codebatch.operations.queries.batch_status import StatusAnswer
from codebatch.operations.queries.batches import BatchRow, ShardStatus, TaskStatus
from codebatch.operations.queries.duplicates import DuplicateBlocks
from codebatch.operations.queries.findings import FindingsByRule
from codebatch.operations.runs.indexing import IndexAnswer
from codebatch.operations.runs.part_selection import MissingParts
from codebatch.operations.runs.preview import RunPreview
from codebatch.query.answers.dependencies import Cycle, Dependent, FileImport
from codebatch.query.answers.search_coverage import SearchCoverage
from codebatch.query.answers.summary import Summary
from codebatch.query.answers.unparsed_files import DoubtfulFile
from codebatch.query.status.unrecorded_work import UnrecordedRow
from codebatch.selftests.catalogue import BundleResult, GateExplainAnswer, GateResult, SelftestGate
from codebatch.store.results.untrusted import UntrustedKey
from codebatch.work.control.analysis import WorkAnalysis
from codebatch.work.control.dry_run import DryRunAnswer
from codebatch.work.control.history import OlderBatch
from codebatch.work.control.log_follow import LogLine
from codebatch.work.control.questions import OpenQuestion
from codebatch.work.control.status import WorkStatus

_GLOBAL_PARAMETERS = {"store", "color", *GLOBAL_FLAGS}


class DescribedArgument(msgspec.Struct, frozen=True, kw_only=True):
    """An argument of a command. `name` is the name of the argument in the help of the command."""

    name: str
    required: bool
    multiple: bool


class DescribedOption(msgspec.Struct, frozen=True, kw_only=True):
    """An option of a command.

    - `value`: the placeholder for the value in help; null for an option without a value.
    - `multiple`: whether the option can be given several times.
    - `description`: a short text.
    - `details`: further sentences, or empty.
    - `default`: the default as shown in help, or null.
    """

    names: tuple[str, ...]
    value: str | None
    choices: tuple[str, ...]
    required: bool
    multiple: bool
    description: str
    details: str
    default: str | None


class DescribedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command.

    `answer` is the name of the schema that its answer with `--json` has. `explainable` is set if `codebatch explain`
    accepts the command.
    """

    name: str
    aliases: tuple[str, ...]
    description: str
    arguments: tuple[DescribedArgument, ...]
    options: tuple[DescribedOption, ...]
    answer: str | None
    explainable: bool


class DescribedError(msgspec.Struct, frozen=True, kw_only=True):
    """An error code, and the exit status of commands that fail with it."""

    code: str
    exit: int
    description: str


class DescribedApi(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `codebatch api`.

    - `options`: the options that every command has.
    - `kinds`: the kinds of records, each with a description.
    - `pipelines`: the tasks of each pipeline.
    - `schemas`: the JSON schemas of all answers, by name.
    """

    version: str
    commands: tuple[DescribedCommand, ...]
    options: tuple[DescribedOption, ...]
    kinds: dict[str, str]
    pipelines: dict[str, tuple[str, ...]]
    errors: tuple[DescribedError, ...]
    schemas: dict[str, object]


_NOTES_MEMBER = ("notes", tuple[str, ...])
"""A member `notes`, which some answers have: results may be missing because files were only partially parsed."""

_SEARCH_MEMBERS = (("coverage", SearchCoverage | None), ("not_searched", tuple[DoubtfulFile, ...]))
"""Members of a search. If it has no result, `coverage` has the files on which this rests; otherwise, it is null.

`not_searched` lists the files that contain the name and were not parsed completely, so they may have further results.
"""

_TASK_LIST_MEMBERS = (
    ("unrecorded", tuple[UnrecordedRow, ...] | UnsetType, UNSET),
    ("unchanged", tuple[str, ...] | UnsetType, UNSET),
    ("older_batch", OlderBatch | None | UnsetType, UNSET),
)
"""Members of task lists.

- `unrecorded`: what tasks made in their trees, and the changes do not have.
- `unchanged`: the tasks that are done and changed nothing.
- `older_batch`: an older batch of the list with tasks that are not done, or null.
"""


_Member = tuple[str, object] | tuple[str, object, object]


def _rows_type(name: str, type_: object, *members: _Member) -> type[msgspec.Struct]:
    """Return the type of an answer with rows, in the member `records`. `members` are added to the type."""
    return _answer_type(name, AnswerScope, [("records", type_), *members])


def _scoped_type(name: str, content: type[msgspec.Struct], *members: tuple[str, object]) -> type[msgspec.Struct]:
    """Return the type of an answer with the members of `content`, those of AnswerScope, and additional `members`."""
    scope = [(field.name, field.type) for field in msgspec.structs.fields(AnswerScope)]
    new_members = [member for member in scope if member[0] not in content.__struct_fields__]
    return _answer_type(name, content, [*new_members, *members], content.__doc__)


def _answer_type(
    name: str,
    base: type[msgspec.Struct],
    members: list[_Member],
    *texts: str | None,
) -> type[msgspec.Struct]:
    words = "".join(map(str.capitalize, name.split("-")))
    answer = msgspec.defstruct(f"{words}Answer", members, bases=(base,), frozen=True, kw_only=True)
    displayed_name = name.replace("-", " " if name.startswith(("query-", "baseline-")) else " --", 1)
    scope = "`complete`, `percent`, `stale` and `paths` are as in the answer of `codebatch summary`."
    all_texts = (
        f"The answer of `codebatch {displayed_name}`.",
        *texts,
        AnswerScope.__doc__ if name == "summary" else scope,
    )
    answer.__doc__ = "\n\n".join(inspect.cleandoc(text or "") for text in all_texts)
    return answer


Records = list[Record] | dict[str, int]
"""The answer of `query`: records, or numbers with `--count` and `--group-by`. With `--fields`, only these."""

ANSWER_TYPES: dict[str, object] = {
    "api": DescribedApi,
    "apply": ApplyAnswer,
    "apply-branch": BranchAnswer,
    "ask": AskAnswer,
    "baseline-create": BaselineCreateAnswer,
    "baseline-show": list[BaselineRule],
    "baseline-update": _scoped_type("baseline-update", BaselineUpdate, ("path", str)),
    "batch-init": answers.BatchInitAnswer,
    "batch-list": list[BatchRow],
    "batch-outputs": answers.BatchOutputsAnswer,
    "batch-show": answers.BatchShowAnswer,
    "cancel": WorkStatus | StatusAnswer,
    "callers": _rows_type("callers", list[answers.CallerRow], *_SEARCH_MEMBERS),
    "cat-object": CatObjectAnswer,
    "changes": _rows_type("changes", list[ChangeRow], *_TASK_LIST_MEMBERS),
    "changes-by": _rows_type("changes-by", list[ChangeGroupRow], *_TASK_LIST_MEMBERS),
    "check": _scoped_type("check", CheckReport),
    "completion": answers.CompletionAnswer,
    "config-show": dict[str, answers.SettingRow],
    "def": _rows_type("def", list[Record], _NOTES_MEMBER, *_SEARCH_MEMBERS),
    "diagnose": Diagnosis,
    "diff": DiffAnswer,
    "duplicates": _scoped_type("duplicates", DuplicateBlocks),
    "engine-check": EngineCheck,
    "error": answers.ErrorAnswer,
    "errors": _rows_type("errors", list[answers.ErrorFinding | answers.FailureWithEvidence]),
    "events": AnyEvent,
    "explain": ExplainedCommand,
    "explain-miss": MissesAnswer,
    "export": ExportAnswer,
    "files": _rows_type("files", list[answers.FileRow]),
    "files-snapshot": list[EntryLine],
    "files-why": answers.PathSelectionAnswer,
    "find": _rows_type("find", list[answers.CodeMatchRow] | dict[str, int]),
    "findings": _scoped_type("findings", FindingsByRule),
    "follow": AnyEvent,
    "gate-bundle": BundleResult,
    "gate-explain": GateExplainAnswer,
    "gate-list": list[SelftestGate],
    "gate-run": GateResult,
    "gc": GcAnswer,
    "graph": _rows_type("graph", list[FileImport]),
    "graph-cycles": _rows_type("graph-cycles", list[Cycle]),
    "graph-dot": _rows_type("graph-dot", list[tuple[str, str]]),
    "help": HelpAnswer,
    "hotspots": _scoped_type("hotspots", Hotspots, ("by", HotspotBy)),
    "impact": _rows_type("impact", list[Dependent], *_SEARCH_MEMBERS),
    "impact-symbol": _rows_type(
        "impact-symbol",
        list[answers.SymbolDependentRow],
        ("definitions", list[Symbol]),
        ("is_cut", bool),
        *_SEARCH_MEMBERS,
    ),
    "impact-tests": _rows_type(
        "impact-tests", list[str], ("functions", list[answers.SymbolDependentRow]), *_SEARCH_MEMBERS
    ),
    "implementations": _rows_type("implementations", list[answers.ImplementationRow], *_SEARCH_MEMBERS),
    "improvements": ImprovementsAnswer,
    "import": ImportAnswer,
    "index-build": IndexAnswer,
    "init": answers.InitAnswer,
    "inspect": _rows_type("inspect", list[Record]),
    "inspect-symbol": _scoped_type("inspect-symbol", SymbolOverview, *_SEARCH_MEMBERS),
    "inspect-explain": _scoped_type("inspect-explain", answers.InspectFileAnswer),
    "inspect-line": _scoped_type("inspect-line", answers.InspectLineAnswer),
    "join": RunAnswer,
    "join-missing": MissingParts,
    "pin": answers.PinAnswer,
    "pipeline": answers.PipelineAnswer,
    "pipelines": list[answers.PipelineRow],
    "outline": _rows_type("outline", list[Record], _NOTES_MEMBER),
    "query-diagnostics": _rows_type("query-diagnostics", Records),
    "query-duplicates": _rows_type("query-duplicates", Records),
    "query-edges": _rows_type("query-edges", Records),
    "query-failures": _rows_type("query-failures", Records),
    "query-files": _rows_type("query-files", Records),
    "query-metrics": _rows_type("query-metrics", Records),
    "query-outputs": _rows_type("query-outputs", Records),
    "query-stats": _rows_type("query-stats", dict[str, int]),
    "query-symbols": _rows_type("query-symbols", Records),
    "references": _rows_type("references", list[answers.ReferenceRow], *_SEARCH_MEMBERS),
    "regressions": RegressionsAnswer,
    "report": ReportAnswer,
    "resume": RunAnswer,
    "rules-list": list[rules.RuleRow],
    "rules-new": RuleScaffold,
    "rules-show": rules.RuleShowAnswer,
    "rules-test": rules.RulesTestAnswer,
    "run": RunAnswer,
    "run-dry-run": RunPreview,
    "run-part": PartAnswer,
    "run-shard": answers.ShardsRunAnswer,
    "serve": ServeAnswer,
    "shards": list[ShardStatus],
    "snapshot-list": list[answers.SnapshotListRow],
    "snapshot-show": SnapshotShowAnswer,
    "snapshot-take": answers.SnapshotTakeAnswer,
    "sql": _scoped_type("sql", answers.SqlAnswer),
    "status": StatusAnswer,
    "store-stats": StoreStatsAnswer,
    "summary": _scoped_type("summary", Summary),
    "task-new": TaskScaffold,
    "task-test": TaskTestAnswer,
    "task-try": TaskTryAnswer,
    "tasks": list[TaskStatus],
    "top": _rows_type("top", dict[str, int]),
    "trace": TraceAnswer,
    "unpin": answers.UnpinAnswer,
    "verify": VerifyAnswer,
    "verify-trust": UntrustedKey,
    "version": VersionAnswer,
    "work-analyze": WorkAnalysis,
    "work-add": WorkStatus,
    "work-answer": WorkStatus,
    "work-attempts": list[AttemptRow],
    "work-dry-run": DryRunAnswer,
    "work-log": list[LogRow] | LogLine,
    "work-pause": WorkStatus,
    "work-questions": list[OpenQuestion],
    "work-retry": WorkStatus,
    "work-run": WorkStatus,
    "work-set": WorkStatus,
    "work-skip": WorkStatus,
    "work-status": WorkStatus,
    "work-unpause": WorkStatus,
}
"""The type of each answer, by its schema name: the words of the command, or another name."""

_ANSWERS_OF_BOTH_KINDS = {"cancel"}
"""Commands whose answer depends on the kind of the batch. The member `pipeline` shows the kind."""


def answer_schema(name: str) -> dict[str, object]:
    """Return the JSON Schema of an answer, draft 2020-12."""
    type_ = ANSWER_TYPES[name]
    kinds = get_args(type_) if isinstance(type_, UnionType) and name in _ANSWERS_OF_BOTH_KINDS else (type_,)
    bodies, parts = msgspec.json.schema_components(kinds, schema_hook=lambda _: {"description": "any JSON value"})
    body = bodies[0] if len(bodies) == 1 else {"anyOf": list(bodies)}
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            described = parts[kind.__name__]
            described["properties"]["schema"] = {"const": answer_schema_name(name)}
            described["required"].append("schema")
    return {**schema_head(f"{name}-answer"), **body, "$defs": parts}


def schema_head(name: str) -> dict[str, object]:
    """Return the first two members of every schema."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"codebatch {name}"}


def describe_interface(group: click.Group) -> DescribedApi:
    """Return the description of the command line.

    It is made from the command objects, so it is always the same for the same program.
    """
    listed = [(words, command) for words, command in iter_commands(group) if not isinstance(command, click.Group)]
    names: dict[int, list[str]] = {}
    for words, command in listed:
        names.setdefault(id(command), []).append(" ".join(words))
    distinct = {id(command): command for _, command in listed}
    return DescribedApi(
        version=__version__,
        commands=tuple(_describe_command(names[each], command) for each, command in distinct.items()),
        options=tuple(map(_describe_option, _command_options(group))),
        kinds={kind.__struct_config__.tag: _as_sentence(kind.__doc__) for kind in get_args(Record)},
        pipelines={each.name: each.tasks for each in PIPELINES.values()},
        errors=_describe_errors(),
        schemas={answer_schema_name(name): answer_schema(name) for name in sorted(ANSWER_TYPES)},
    )


def iter_commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command and group below a group, at any depth, with the words that name it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from iter_commands(command, (*words, name))


def _describe_command(names: list[str], command: click.Command) -> DescribedCommand:
    name = next((answer_name for answer_name in _answer_names(names) if answer_name in ANSWER_TYPES), "")
    return DescribedCommand(
        name=names[0],
        aliases=tuple(names[1:]),
        description=_as_sentence(command.help),
        arguments=tuple(
            _describe_argument(answer_name) for answer_name in command.params if isinstance(answer_name, click.Argument)
        ),
        options=tuple(
            _describe_option(answer_name)
            for answer_name in _command_options(command)
            if answer_name.name not in _GLOBAL_PARAMETERS
        ),
        answer=answer_schema_name(name) if name else None,
        explainable=any(answer_name in EXPLAINED_COMMANDS for answer_name in _answer_names(names)),
    )


def _answer_names(names: list[str]) -> list[str]:
    """Return the names that the schema of an answer can have: the command's names, with words joined by `-`."""
    return [name.replace(" ", "-") for name in names]


def _command_options(command: click.Command) -> list[click.Option]:
    return [parameter for parameter in command.params if isinstance(parameter, click.Option)]


def _describe_argument(argument: click.Argument) -> DescribedArgument:
    return DescribedArgument(
        name=argument.make_metavar(click.Context(click.Command(""))),
        required=argument.required,
        multiple=argument.nargs != 1,
    )


def _describe_option(option: click.Option) -> DescribedOption:
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    return DescribedOption(
        names=tuple(option.opts),
        value=None if option.is_flag else option.metavar or option.type.name,
        choices=tuple(map(str, choices)),
        required=option.required,
        multiple=option.multiple,
        description=option.help or "",
        details=option.details if isinstance(option, CommandOption) else "",
        default=option.shown_default or None if isinstance(option, CommandOption) else None,
    )


def _describe_errors() -> tuple[DescribedError, ...]:
    kinds: list[type[CodebatchError]] = [CodebatchError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    coded = [kind for kind in kinds[1:] if "code" in kind.__dict__]
    errors = [
        DescribedError(code=kind.code, exit=kind.exit_status, description=_as_sentence(kind.__doc__)) for kind in coded
    ]
    unknown = "The command line has an unknown command or option, or an invalid value."
    usage = DescribedError(code="usage", exit=2, description=unknown)
    return tuple(sorted([*errors, usage], key=lambda error: error.code))


def _as_sentence(text: str | None) -> str:
    """Return the first paragraph of a docstring on one line."""
    return " ".join((text or "").strip().split("\n\n")[0].split())
