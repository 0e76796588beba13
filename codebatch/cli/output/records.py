"""Text lines of records and summaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from codebatch.cli.output.tables import table_lines
from codebatch.model.record import SEVERITIES
from codebatch.model.task import JsonValue
from codebatch.model.text.quantities import count_text, human_bytes
from codebatch.query.fields import JsonRecord, cell_text, record_path

if TYPE_CHECKING:
    from codebatch.operations.runs.collection import CollectionResult
    from codebatch.query.answers.language_lines import LanguageLines
    from codebatch.query.answers.summary import Summary

LANGUAGES_SHOWN_MAX = 20
CODES_SHOWN_MAX = 8


def record_line(record: JsonRecord) -> str:
    """Return a record as `path:line:col: …`, the format of grep, which editors can parse."""
    return "".join(record_parts(record))


def record_location(record: JsonRecord) -> str:
    """Return the location at the start of the line of a record: `path:line:col`, or only the path."""
    kind, place = record["kind"], record_path(record)
    if kind in ("diagnostic", "symbol"):
        place += f":{record['line']}:{record['column']}"
    elif kind in ("edge", "duplicate") or (kind == "metric" and "symbol" in record):
        place += f":{record.get('line', 1)}"
    return place + cell_text(record)


def record_text(record: JsonRecord) -> str:
    """Return the line of a record without its location."""
    return record_line(record).removeprefix(f"{record_location(record)}: ")


def record_parts(record: JsonRecord) -> tuple[str, str, str]:
    """Return the line of a record in three parts.

    The second part is its severity or name, which is coloured. The first and third part are the text before and after
    it.
    """
    path, place = record_path(record), record_location(record)
    match record["kind"]:
        case "diagnostic":
            also = record.get("also")
            tools = f"{record['tool']}, also {', '.join(map(str, also))}" if isinstance(also, list) else record["tool"]
            text = f" {record['code']} {record['message']} [{tools}]"
            return f"{place}: ", str(record["severity"]), text
        case "symbol":
            return f"{place}: {record['symbol_type']} ", str(record["qualified"]), ""
        case "edge":
            text = f"{place}: {record['source'] or '(file)'} {record['edge_type']} "
            return text, str(record["target"]), f" ({record['resolution']})" if "resolution" in record else ""
        case "metric":
            function = f" {record['symbol']}" if "symbol" in record else ""
            return f"{place}:{function} ", str(record["metric"]), f" = {record['value']}"
        case "duplicate":
            other = f"{record_path(record, 'other_path')}:{record['other_line']}"
            text = f"{place}: {record['lines']} code lines as in {other}, "
            text += f"{record['copies']} copies"
        case "file" if "lang" not in record:  # An entry of a snapshot.
            text = f"{path}: {value_text(record['size'], 'byte')}{', executable' * bool(record['executable'])}"
        case "file":
            lines = value_text(record["lines"], "line")
            text = f"{path}: {record['lang']}, {lines}, {record['class']}, parse {record['parse']}"
        case "failure":
            text = f"{path}: {record['task']} failed: {record['reason']}"
        case "change":
            text = f"{path}: {_change_text(record)}"
        case _:
            member_text = ", ".join(
                f"{key}={value}" for key, value in record.items() if key not in ("kind", "path", "path_b64")
            )
            text = f"{path}: {record['kind']} {member_text}"
    return text, "", ""


def _change_text(record: JsonRecord) -> str:
    """Return the difference that a proposed change makes, such as `change +3 -1 lines`."""
    after, executable = record.get("after"), record.get("executable")
    gate = record.get("refused_by")
    refusal = f", refused by {gate}: {record.get('evidence', '')}" if gate else ""
    if after is None:
        return f"change -{record['removed']} lines, deleted{refusal}"
    if after == record["before"]:
        return f"change of the executable bit to {'on' if executable else 'off'}{refusal}"
    return f"change +{record['added']} -{record['removed']} lines{', executable' * bool(executable)}{refusal}"


def value_text(number: JsonValue, noun: str) -> str:
    """Return a number with its noun: `1 line`, `2 lines`. Return `? lines` if the record has no number."""
    return count_text(number, noun) if isinstance(number, int) else f"? {noun}s"


def summary_lines(summary: Summary, worst: Iterable[JsonRecord]) -> Iterator[str]:
    """Yield the lines of a summary."""
    yield f"{count_text(summary.files, 'file')}, {count_text(summary.records, 'record')}"
    if summary.lines:
        yield from _language_table(summary.lines)
    elif summary.languages:
        yield f"languages    {_most_frequent_text(summary.languages, LANGUAGES_SHOWN_MAX)}"
    if summary.kinds:
        yield f"records      {_most_frequent_text(summary.kinds, len(summary.kinds))}"
    if summary.severities:
        ordered = {name: summary.severities[name] for name in SEVERITIES if name in summary.severities}
        yield "diagnostics  " + ", ".join(f"{count:,} {name}" for name, count in ordered.items())
        yield f"rules        {_most_frequent_text(summary.codes, CODES_SHOWN_MAX)}"
    if worst := list(worst):
        yield "worst:"
        yield from (f"  {record_line(record)}" for record in worst)


def _language_table(lines: Mapping[str, LanguageLines]) -> Iterator[str]:
    """Yield a table of lines by language: first code, then data formats and prose, each with a row of sums."""
    code = {language: counts for language, counts in lines.items() if not counts.is_data}
    data = {language: counts for language, counts in lines.items() if counts.is_data}
    rows = [*_language_rows(code, "code"), *_language_rows(data, "data, text")]
    yield from table_lines(rows, ("language", "files", "code", "comment", "blank"))


def _language_rows(lines: Mapping[str, LanguageLines], total: str) -> Iterator[tuple[object, ...]]:
    """Yield the rows of some languages, the one with the most lines first, and a row `total` with their sums.

    Languages beyond LANGUAGES_SHOWN_MAX share a row.
    """
    ranked = sorted(lines.items(), key=lambda pair: (-pair[1].code, -pair[1].files, pair[0]))
    for language, counts in ranked[:LANGUAGES_SHOWN_MAX]:
        yield language, *_line_numbers([counts])
    if other_languages := ranked[LANGUAGES_SHOWN_MAX:]:
        yield f"{len(other_languages)} more", *_line_numbers(counts for _, counts in other_languages)
    if ranked:
        yield f"total of {total}", *_line_numbers(lines.values())


def _line_numbers(lines: Iterable[LanguageLines]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*((line.files, line.code, line.comment, line.blank) for line in lines), strict=True)))


def failure_lines(displayed_failures: Iterable[JsonRecord], count: int) -> Iterator[str]:
    """Yield the lines of some failures. `count` is the number of all failures."""
    yield "failures:"
    remaining = count
    for record in displayed_failures:
        remaining -= 1
        yield f"  {record_line(record)}"
    if remaining:
        yield f"  {remaining:,} more"


def collection_line(collected: CollectionResult, *, is_dry: bool = False) -> str:
    """Return one line about what a garbage collection has removed or, with `is_dry`, would remove."""
    counted = [
        *([count_text(len(collected.batches), "batch", "batches")] if collected.batches else []),
        *([count_text(len(collected.snapshots), "snapshot")] if collected.snapshots else []),
        *([count_text(collected.objects, "object")] if collected.objects else []),
    ]
    if collected.packs_rewritten and not counted:
        counted.append("duplicate objects")
    if collected.settled:
        settled = len(collected.settled)
        counted.append(
            f"files that {count_text(settled, 'batch', 'batches')} no longer need{'s' if settled == 1 else ''}"
        )
    if collected.relinked:
        counted.append(f"{count_text(collected.relinked, 'copy', 'copies')} of shard files")
    if not counted:
        return "nothing was removed" if collected.unremoved else "nothing to remove"
    done = "would remove" if is_dry else "collected"
    return f"{done} {', '.join(counted)}: {human_bytes(collected.freed_bytes)}"


def _most_frequent_text(counts: dict[str, int], limit: int) -> str:
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    ranked_text = ", ".join(f"{name} {count:,}" for name, count in ranked[:limit])
    remaining = len(ranked) - limit
    return f"{ranked_text}, {remaining} more" if remaining > 0 else ranked_text


def resolution_mark(row: JsonRecord) -> str:
    """Return a text in brackets, after a space, for a relation that is not certain. Otherwise, return no text."""
    resolution = row["resolution"]
    if resolution == "exact":
        return ""
    return " (by name)" if resolution == "name" else f" ({resolution})"


def implementation_line(row: JsonRecord) -> str:
    """Return a row of `codebatch implementations` as one line."""
    text = f"{row['symbol_type']} {row['qualified']} {row['relation']} {row['base']}{resolution_mark(row)}"
    return f"{record_path(row)}:{row['line']}:{row['column']}: {text}"
