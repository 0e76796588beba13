"""Making an export of a batch, or of what is new and worse in it than in another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, get_args

import msgspec

from codebatch.application.asking import Answer
from codebatch.application.comparing import Comparison, compare
from codebatch.application.findings import SHOWN
from codebatch.application.opened_batch import OpenedBatch
from codebatch.compare.lines import NOWHERE
from codebatch.compare.states import REGRESSIONS
from codebatch.errors import InvalidInput
from codebatch.exchange.checkstyle import export_checkstyle
from codebatch.exchange.ctags import export_ctags
from codebatch.exchange.export import Export, Form, Told
from codebatch.exchange.github import export_github
from codebatch.exchange.gitlab import export_gitlab
from codebatch.exchange.outgoing import Outgoing, with_fingerprints, worst_first
from codebatch.exchange.rdjson import export_rdjson
from codebatch.exchange.sarif import export_sarif
from codebatch.exchange.scanning_limits import by_tool, cut
from codebatch.exchange.sources import Sources
from codebatch.exchange.tools import summaries_of, tools_of
from codebatch.model.likeness import did_you_mean
from codebatch.model.record import Diagnostic, Severity
from codebatch.query.completeness import Completeness
from codebatch.query.wanted import Filters, Several, filter_of, several

if TYPE_CHECKING:
    from typing_extensions import Unpack


def make_export(
    batch: OpenedBatch,
    form: Form,
    *,
    than: OpenedBatch | None = None,
    severity: Severity | Sequence[Severity] | None = None,
    code: Several = None,
    tool: Several = None,
    **filters: Unpack[Filters],
) -> Answer[Export]:
    """The findings of a batch in a form that other programs read; with `than` those that are new or worse than there.

    The filters are those of `findings`: without `severity` no hints. `ctags` are of definitions, which have a language
    and a path alone. The same batches give the same bytes. Raises InvalidInput, StoreCorrupt, and BatchIncomplete
    unless the batches were opened with `partial`: then what there is, and SARIF says that it is not all.
    """
    own: dict[str, Several] = {"severity": severity, "code": code, "tool": tool}
    if form == "ctags":
        if than is not None:
            raise InvalidInput("tags are of one batch", hint="such as: codebatch export ctags -o tags")
        if given := [name for name, value in own.items() if value is not None]:
            raise InvalidInput(f"`{given[0]}` is of findings, and tags are of definitions")
        symbols = batch.symbols(**filters)
        return Answer(question=batch.question, found=export_ctags(symbols.found), whole=symbols.whole)
    task, severity = filters.get("task"), severity or SHOWN
    answer: Answer[object]
    if than is None:
        answer = diagnostics = batch.diagnostics(severity=severity, code=code, tool=tool, **filters)
        found = [Outgoing(each, each.path_bytes) for each in diagnostics]
    else:
        asked = filter_of(filters, Filters, {"kind": "diagnostic", **own, "severity": severity})
        comparison = compare(than, batch, asked=asked, task=task)
        answer = comparison.old if comparison.new.is_complete else comparison.new
        found = list(_regressions(comparison))
    tools = tools_of(batch, task, () if tool is None else several("tool", tool))
    return batch.check(_made(batch, form, found, tools, answer))


def _made(
    batch: OpenedBatch, form: Form, found: Iterable[Outgoing], tools: dict[str, str], answer: Answer[object]
) -> Answer[Export]:
    records = batch.question.records
    sources = Sources(records)
    findings = worst_first(records, found)

    def told() -> Told:
        return Told(findings=tuple(findings), tools=tools, incomplete=_whole(answer, sources).lacking)

    match form:
        case "sarif":
            taken = cut(by_tool(findings, tools))
            known = by_tool(with_fingerprints(records, [*chain(*taken.values())], sources), dict.fromkeys(taken, ""))
            export = export_sarif(told(), known, summaries_of(taken))
        case "github":
            export = export_github(told())
        case "gitlab":
            export = export_gitlab(with_fingerprints(records, findings, sources))
        case "checkstyle":
            export = export_checkstyle(findings)
        case "rdjson":
            export = export_rdjson(findings, sources)
        case _:
            raise InvalidInput(f"there is no form {form!r}", hint=did_you_mean(form, get_args(Form)))
    return Answer(question=answer.question, found=export, whole=_whole(answer, sources))


def _whole(answer: Answer[object], sources: Sources) -> Completeness:
    return msgspec.structs.replace(answer.whole, lost=len(sources.lost))


def _regressions(comparison: Comparison) -> Iterator[Outgoing]:
    for each in comparison.differences():
        if each.state in REGRESSIONS and isinstance(each.new, Diagnostic):
            path = each.new.path_bytes
            yield Outgoing(each.new, path, each.state, _is_changed(comparison.lines(path), each.new.line))


def _is_changed(lines: Sequence[int] | None, line: int) -> bool:
    """Whether a line is none of the older file's, of which `lines` says which line is which."""
    return lines is None or not 0 < line <= len(lines) or lines[line - 1] == NOWHERE
