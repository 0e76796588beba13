"""The commands `ast` and `rules`: the syntax tree of a file, and lint rules. Most of them need no batch."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path
from typing import cast

import click

from codebatch.cli.framework.answer_printing import emit_document, open_queried_batch
from codebatch.cli.framework.commands import command, option
from codebatch.cli.framework.common_options import common_option
from codebatch.cli.framework.context import (
    CommandContext,
    SourcePath,
    query_batch_option,
    table_lines,
    with_common_options,
)
from codebatch.cli.framework.groups import CommandGroup, group_with_common_options
from codebatch.cli.framework.read_report import explain_option
from codebatch.cli.output.records import record_line
from codebatch.cli.output.terminal import printable_line
from codebatch.coordinator.analysis.planning import check_overrides
from codebatch.errors import BatchIncomplete, InvalidInput, SourceUnreadable, UnknownId
from codebatch.model.entry import display_path
from codebatch.model.task import JsonValue
from codebatch.model.text.quantities import count_text
from codebatch.model.text.suggestions import closest_word
from codebatch.operations.project.configuration import Configuration, load_configuration
from codebatch.operations.queries.unmatched_filters import PARSE_RULES
from codebatch.plugins.worker_services import language_services
from codebatch.query.filters.filters import JsonRecord, path_bytes
from codebatch.store.batches.resolution import resolve_batch
from codebatch.system.files.regular_files import read_regular

_FILE_BYTES_MAX = 256 << 20
_RULE_CODE = re.compile(r"[A-Z]+[0-9]+|[a-z]+(?:-[a-z]+)+")


@command()
@click.argument("path", metavar="FILE", type=SourcePath())
@common_option("batch", help="Read the file from this batch instead of from disk")
@option("--language", metavar="NAME", default_text="detected from the file", help="Language to parse the file as")
@explain_option
@with_common_options
def ast(context: CommandContext, path: Path, batch_reference: str | None, language: str | None) -> None:
    """Print the syntax tree of a file.

    The output is JSON: a flat list of all nodes, parents first.
    """
    contexts: dict[str, bytes] = {}
    if batch_reference is None:
        name, content = os.fsencode(path), _read_source(path)
    else:
        name, content, contexts = open_queried_batch(context, batch_reference).content(str(path))
    if language is not None:
        contexts["attributes"] = b"language=" + language.encode()
    tree = language_services().syntax_tree(name, content, contexts)
    context.display.erase_for_output()
    sys.stdout.buffer.write(tree)
    sys.stdout.flush()


class _RuleCommands(CommandGroup):
    """The group of commands `rules`. If the user gives a rule ID instead of a command, it suggests `rules show`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if _RULE_CODE.fullmatch(args[0]) and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"no such command {args[0]!r}; did you mean `codebatch rules show {args[0]}`?")
        return super().resolve_command(ctx, args)


@click.group(cls=_RuleCommands)
@group_with_common_options
def rules() -> None:
    """List, describe, test and create lint rules."""


@rules.command("list")
@click.argument("codes", nargs=-1, metavar="[RULE]...")
@option("--on", "only_on", is_flag=True, help="List only rules that are on")
@with_common_options
def list_(context: CommandContext, codes: tuple[str, ...], only_on: bool) -> None:
    """List lint rules, with their severity and whether they are on.

    Each RULE is a rule ID or a pattern such as `E7*`. The configuration of the current directory applies.
    """
    every = _list_all_rules()
    finds = language_services().rule_summaries()
    rows = [row | {"summary": row["summary"] or finds.get(str(row["code"]), "")} for row in every]
    rows = [row for row in rows if not codes or any(fnmatchcase(str(row["code"]), code) for code in codes)]
    if not rows:
        raise _unknown_rule_error(codes[0], [str(row["code"]) for row in every])
    rows = [row for row in rows if row["enabled"] or not only_on]
    cells = (
        (row["code"], row["severity"], "on" if row["enabled"] else "off", row["tool"], row["summary"]) for row in rows
    )
    context.print(rows, table_lines(cells, ("rule", "severity", "", "tool", "detects")))
    if len(rows) == 1:
        context.note(f"describe it with: codebatch rules show {rows[0]['code']}")


@rules.command()
@click.argument("code", metavar="RULE")
@query_batch_option
@with_common_options
def show(context: CommandContext, code: str, batch_reference: str | None) -> int:
    """Describe a rule: what it detects, an example, and why it has this severity.

    If there is a batch, also shows how many findings of the rule the batch has.
    """
    every = {str(row["code"]): row for row in _list_all_rules()}
    if code not in every:
        raise _unknown_rule_error(code, every)
    rule = every[code] | language_services().explain_rule(_lint_settings(), code)
    lines = _rule_lines(rule)
    batch = open_queried_batch(context, batch_reference) if batch_reference or _has_batch(context) else None
    if batch is None or "lint" not in batch.tasks:
        context.print(rule, lines)
        why = f"batch {batch.id} has no results of the task lint" if batch else "there is no batch"
        context.note(f"number of findings unknown: {why}")
        return 0
    answer = batch.summary("lint")
    findings, batch_id = answer.result.codes.get(code, 0), answer.result.batch_id
    lines[2:2] = [f"{count_text(findings, 'finding')} in batch {batch_id}"]
    if findings:
        context.note(f"list them with: codebatch query diagnostics --code {code}")
    return emit_document(context, answer, {**rule, "findings": findings, "batch_id": batch_id}, lines)


def _rule_lines(rule: dict[str, object]) -> list[str]:
    """Return the lines that describe a rule: its summary, followed by an explanation or an example."""
    lines = [
        f"{rule['code']} {rule['name']}".rstrip(),
        f"{rule['severity']}, {'on' if rule['enabled'] else 'off'}, from {rule['tool']}",
        f"detects: {rule['summary']}",
        f"why {rule['severity']}: {rule['severity_reason']}",
        *([f"docs: {rule['url']}"] if rule["url"] else []),
    ]
    if rule["explanation"]:
        lines += ["", *str(rule["explanation"]).rstrip().split("\n")]
    elif rule["example"]:
        lines += ["", "example:", *(f"  {line}" for line in str(rule["example"]).split("\n"))]
    return [printable_line(line) for line in lines]


def _unknown_rule_error(code: str, known: Collection[str]) -> InvalidInput:
    if code in PARSE_RULES:
        return InvalidInput(
            f"{code!r} is not a lint rule; it is reported by the task `parse`",
            hint=f"see: codebatch query diagnostics --code {code}",
        )
    similar = closest_word(code.upper(), known) or closest_word(code, known)
    hint = f"did you mean {similar!r}?" if similar else "see: codebatch rules list"
    return InvalidInput(f"no such rule {code!r}", hint=hint)


def _has_batch(context: CommandContext) -> bool:
    if not context.store_place.has_store():
        return False
    try:
        resolve_batch(context.store_place.open(), None)
    except UnknownId:
        return False
    return True


@rules.command("test")
@click.argument("paths", nargs=-1, type=SourcePath(), metavar="[FILE]...")
@with_common_options
def test(context: CommandContext, paths: tuple[Path, ...]) -> int:
    """Test custom rules on their examples and on files.

    Runs the rules in [[tasks.lint.rules]] on their `bad` examples, which must match, and on their `good` examples,
    which must not. Also lists the findings in each FILE.

    Exit status 1 if an example fails. Otherwise, exit status 3 if a rule exceeds the time limit per file, or if nothing
    was tested: there are no rules, or a rule has no examples and no FILE is given.
    """
    from codebatch.operations.maintenance.rule_trials import test_rules

    files = [(os.fsencode(path), _read_source(path)) for path in paths]
    configuration = load_configuration(Path.cwd())
    seconds = configuration.settings.file_seconds_max
    answer = test_rules(_lint_settings(configuration), files, seconds=seconds)
    lines = [record_line(finding) for finding in answer["findings"]]
    lines += [_trial_line(file) for file in answer["files"]] if answer["rules"] else []
    is_wrong = False
    for row in answer["rules"]:
        wrong = cast("list[dict[str, object]]", row["failed_examples"])
        is_wrong = is_wrong or bool(wrong)
        lines.append(f"{row['id']}: {count_text(cast('int', row['examples']), 'example')}, {len(wrong)} failed")
        for example in wrong:
            result = "no match found in the `bad`" if example["example"] == "bad" else "a match found in the `good`"
            lines.append(f"  {result} example: {example['text']}")
    context.print(answer, lines)
    untested = [str(row["id"]) for row in answer["rules"] if not row["examples"]] if not files else []
    if not answer["rules"]:
        context.report("nothing tested: no custom rules; add [[tasks.lint.rules]] to codebatch.toml")
    if untested:
        context.report(f"not tested: {', '.join(untested)}; add examples to the rule (`bad`, `good`), or give a FILE")
    for failure in answer["failures"]:
        where = f"its {failure['example']} example" if "example" in failure else display_path(path_bytes(failure))
        context.report(f"rule {failure['rule']} did not finish on {where}: {failure['reason']}")
    is_incomplete = answer["failures"] or untested or not answer["rules"]
    return 1 if is_wrong else BatchIncomplete.exit_status if is_incomplete else 0


def _trial_line(file: JsonRecord) -> str:
    """Return a line with the result of testing custom rules on a file."""
    displayed_file = display_path(path_bytes(file))
    if file["skip_reason"]:
        return f"{displayed_file}: skipped, {file['skip_reason']}"
    return f"{displayed_file}: {file['language']}, {count_text(cast('int', file['rules']), 'rule')} tried"


@rules.command("new")
@click.argument("rule_id", metavar="ID")
@option(
    "-l",
    "--language",
    "language",
    metavar="NAME",
    default_text="most frequent language in the project",
    help="Language of the rule",
)
@with_common_options
def new(context: CommandContext, rule_id: str, language: str | None) -> None:
    """Add an example of a custom rule to the configuration file of the project."""
    from codebatch.operations.project.scaffolding import scaffold_rule

    created = scaffold_rule(Path.cwd(), rule_id, language)
    lines = [f"{created.file}:", *(f"  {line}" for line in created.text.splitlines())]
    context.print(created, context.unless_quiet(lines))
    context.note("test its examples with: codebatch rules test")
    context.note("run it on the project with: codebatch run")


def _list_all_rules() -> list[dict[str, object]]:
    return language_services().list_rules(_lint_settings())


def _lint_settings(configuration: Configuration | None = None) -> dict[str, JsonValue]:
    """Return the validated settings of the task `lint`. The default is the configuration of the current project.

    Raises InvalidConfiguration.
    """
    configuration = configuration or load_configuration(Path.cwd())
    settings = configuration.settings.tasks.get("lint", {})
    check_overrides(configuration.catalogue, {"lint": settings})
    return settings


def _read_source(path: Path) -> bytes:
    """Return the content of a file on disk.

    Raises InvalidInput if it does not exist, and SourceUnreadable if it cannot be read.
    """
    try:
        return read_regular(path, bytes_max=_FILE_BYTES_MAX, is_link_followed=True)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    except OSError as error:
        raise SourceUnreadable(f"cannot read {path}: {error.strerror}") from error
