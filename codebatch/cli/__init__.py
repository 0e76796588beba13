"""The command line. It parses arguments, runs one command, and turns every outcome into messages and an exit status.

A command is imported when it runs. So `codebatch --help` imports only click and this module.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import click

from codebatch import __version__
from codebatch.cli.framework.commands import OWN_OPTIONS_TITLE, HelpfulOption, help_row
from codebatch.cli.framework.exit import EXIT_INTERRUPTED, run_to_exit_status
from codebatch.cli.framework.groups import CommandGroup, group_with_common_options
from codebatch.cli.output.streams import set_up_streams
from codebatch.errors import Interrupted

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_REPEAT_SECONDS = 0.01

LOW_LEVEL_SECTION = "Low-level commands"
OLD_NAMES_SECTION = "CodeBatch 1 names"

COMMANDS_BY_SECTION: dict[str, dict[str, tuple[str, str]]] = {
    "Analyse": {
        "run": ("run.run:run", "Analyse a project, reusing cached results"),
        "check": (
            "compare.check:check",
            "Fail if a change introduces errors or breaks imports",
        ),
        "report": ("query.report:report", "Write an HTML report of a batch"),
        "rules": ("query.syntax:rules", "List, describe, test and create lint rules"),
        "baseline": ("compare.baseline:baseline", "Manage a file of accepted findings"),
        "join": ("run.join:join", "Join parts that ran on other machines, and finish the run"),
        "export": ("query.export:export", "Export findings for other programs, or definitions for editors"),
        "import": ("run.imports:import_", "Import findings of other tools"),
        "task": ("run.task:task", "Create and test custom tasks"),
    },
    "Query": {
        "findings": ("query.findings:findings", "List likely bugs and other findings, grouped by rule"),
        "hotspots": ("query.hotspots:hotspots", "Rank functions by complexity, change frequency and dependents"),
        "duplicates": ("query.duplicates:duplicates", "Show duplicate blocks, the largest first"),
        "inspect": ("query.inspect:inspect", "Show an overview of a file or symbol"),
        "impact": ("query.dependencies:impact", "List what depends on a file or a symbol, directly or indirectly"),
        "graph": ("query.dependencies:graph", "List imports between files, or import cycles"),
        "references": ("query.references:references", "Find all references to a name"),
        "query": ("query.record_commands:query", "Filter, sort and count the records of a batch"),
        "diff": ("compare.diff:diff", "Compare the findings of two batches or commits"),
        "summary": ("query.record_commands:summary", "Show how many files, lines and records a batch has"),
        "errors": (
            "query.record_commands:errors",
            "List files that a task could not process, and findings of severity error",
        ),
        "top": ("query.record_commands:top", "Count records by kind, rule, path or another field"),
        "find": ("query.find:find", "Find code that matches a pattern or a tree-sitter query"),
        "def": ("query.definitions:define", "Find the definitions of a name"),
        "callers": ("query.definitions:callers", "List the functions that call a name"),
        "implementations": (
            "query.definitions:implementations",
            "List the types that inherit a type, or the methods that override a method",
        ),
        "outline": ("query.definitions:outline", "List the definitions in a file"),
        "refs": ("query.references:references", "Same as references"),
        "regressions": ("compare.diff:regressions", "List new findings and raised severities"),
        "improvements": ("compare.diff:improvements", "List fixed findings and lowered severities"),
        "sql": ("query.sql:sql", "Query the records of a batch with SQL"),
        "ast": ("query.syntax:ast", "Print the syntax tree of a file"),
        "files": ("store.snapshots:files", "List files, or explain why a path is included or excluded"),
    },
    "Change files": {
        "changes": ("changes.changes:changes", "Show the changes that tasks of a batch propose"),
        "apply": ("changes.apply:apply", "Write the changes that a batch proposes to the files of the project"),
    },
    "Task lists": {
        "work": ("work.work:work", "Run task lists, show their logs and answer their questions"),
        "resume": ("run.run:resume", "Resume an interrupted batch and retry what failed"),
        "status": ("run.status:status", "Show the state and progress of a batch"),
        "follow": ("run.follow:follow", "Follow the progress of a batch until it ends"),
        "serve": ("run.serve:serve", "Show batches on a local web page while they run"),
        "cancel": ("run.cancel:cancel", "Cancel a running batch"),
        "events": ("run.follow:events", "Print the events of a batch"),
        "trace": ("run.trace:trace", "Write a timeline of a batch for Perfetto"),
        "ask": ("work.ask:ask", "Ask a question from within a task"),
    },
    "Maintain": {
        "gc": ("store.collection:gc", "Remove old batches and the data that only they use"),
        "diagnose": ("store.diagnosis:diagnose", "Check the store for damage and repair it"),
        "init": ("run.setup:init", "Create a store"),
        "config": ("run.setup:config", "Show the effective configuration"),
        "pin": ("store.collection:pin", "Protect a batch or snapshot from removal"),
        "unpin": ("store.collection:unpin", "Undo pin, or remove the name of a batch"),
        "store-stats": ("store.collection:store_stats", "Show the contents and the size of the store"),
        "engine": ("run.engine:engine", "Check an engine, which runs the tasks of files on other machines"),
        "index": ("store.index:index", "Build the index that makes queries faster"),
        "verify": ("run.reuse:verify", "Run a sample of a batch again and compare the results"),
        "explain-miss": ("run.reuse:explain_miss", "Explain cache misses"),
        "selftest": ("reference.selftest:selftest", "Run self-tests on the store, a batch and this installation"),
    },
    "Help": {
        "help": ("reference.help:help_", "Show help on a topic or a command"),
        "version": ("reference.help:version", "Print the versions of codebatch and Python"),
        "completion": ("reference.describe:completion", "Print the completion script of a shell"),
        "api": ("reference.describe:api", "Describe the command line and its JSON answers, for programs"),
        "explain": ("reference.describe:explain", "Show which files of the store a command reads"),
    },
    LOW_LEVEL_SECTION: {
        "snapshot": ("store.snapshots:snapshot", "Take, list and show snapshots"),
        "batch": ("run.batches:batch", "Create a batch without running it, list and show batches"),
        "run-shard": ("run.run:run_shard", "Run one task on selected shards"),
        "shards": ("run.batches:shards", "List the shards of one task"),
        "tasks": ("run.batches:tasks", "List the tasks of a batch and their progress"),
        "pipelines": ("run.pipelines:pipelines", "List the pipelines"),
        "pipeline": ("run.pipelines:pipeline", "List the tasks of a pipeline"),
        "cat-object": ("store.objects:cat_object", "Print an object of the store"),
    },
    OLD_NAMES_SECTION: {
        "snapshot-list": ("store.snapshots:snapshot_list", "Same as snapshot list"),
        "snapshot-show": ("store.snapshots:snapshot_show", "Same as snapshot show"),
        "batch-list": ("run.batches:batch_list", "Same as batch list"),
        "batch-show": ("run.batches:batch_show", "Same as batch show"),
        "index-build": ("store.index:index_build", "Same as index build"),
        "gate": ("reference.selftest:selftest", "Same as selftest"),
        "gate-list": ("reference.selftest:gate_list", "Same as selftest list"),
        "gate-run": ("reference.selftest:gate_run", "Same as selftest run"),
        "gate-bundle": ("reference.selftest:gate_bundle", "Same as selftest bundle"),
        "gate-explain": ("reference.selftest:gate_explain", "Same as selftest explain"),
    },
}
"""Every command, with its module and attribute, and the first sentence of its help."""

_LISTED_COMMANDS = {
    "run", "check", "report", "rules",
    "findings", "hotspots", "duplicates", "inspect", "impact", "graph", "references", "query", "diff",
    "work", "resume", "status", "serve",
    "gc", "diagnose",
}  # fmt: skip
"""The commands that `codebatch --help` lists, so that it fits 40 lines. `codebatch help commands` lists all."""
_UNLISTED_OPTIONS = {"--no-color", "--version"}
"""Options that `codebatch --help` does not list, so that it stays short."""

_LINES_OF_CODE_COMMAND = 'sql "select lang, sum(code) from files group by lang"'

EQUIVALENT_COMMANDS = {
    "analyze": "run",
    "analyse": "run",
    "churn": "hotspots --files --by churn",
    "clean": "gc",
    "cloc": _LINES_OF_CODE_COMMAND,
    "complexity": "hotspots",
    "ctags": "export ctags",
    "clones": "duplicates",
    "copies": "duplicates",
    "cycles": "graph --cycles",
    "dependencies": "graph",
    "dependents": "impact",
    "dups": "duplicates",
    "grep": "references",
    "info": "summary",
    "kill": "cancel",
    "lint": "findings",
    "loc": _LINES_OF_CODE_COMMAND,
    "log": "work log",
    "logs": "work log",
    "ls": "files",
    "metrics": "query metrics",
    "prune": "gc",
    "sarif": "export sarif",
    "scan": "run",
    "search": "references",
    "show": "inspect",
    "sloc": _LINES_OF_CODE_COMMAND,
    "stats": "summary",
    "stop": "cancel",
    "symbols": "query symbols",
    "tail": "follow",
    "tree": "files",
    "usages": "references",
    "watch": "follow",
}
"""Names of commands in other programs, each with the command of codebatch that does the same."""


class LazyCommandGroup(CommandGroup):
    """The group of the commands in SECTIONS. A command is imported when it is called."""

    other_words = EQUIVALENT_COMMANDS

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. If there are none, show help."""
        return super().parse_args(ctx, args or ["--help"])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for section in COMMANDS_BY_SECTION.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for section in COMMANDS_BY_SECTION.values():
            if cmd_name in section:
                module, _, attribute = section[cmd_name][0].partition(":")
                command = getattr(importlib.import_module(f"codebatch.cli.{module}"), attribute)
                assert isinstance(command, click.Command)
                return command
        return None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete command names without importing the commands. Old names are not suggested."""
        from click.shell_completion import CompletionItem

        current = {
            name: text
            for title, section in COMMANDS_BY_SECTION.items()
            if title != OLD_NAMES_SECTION
            for name, (_, text) in section.items()
        }
        items = [CompletionItem(name, help=text) for name, text in current.items() if name.startswith(incomplete)]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        options = [parameter for parameter in self.get_params(ctx) if not _UNLISTED_OPTIONS & {*parameter.opts}]
        rows = [help_row(ctx, parameter) for parameter in options if isinstance(parameter, click.Option)]
        with formatter.section(OWN_OPTIONS_TITLE):
            formatter.write_dl([row for row in rows if row is not None])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in COMMANDS_BY_SECTION.items():
            rows = [(name, text) for name, (_, text) in section.items() if name in _LISTED_COMMANDS]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


@click.group(
    cls=LazyCommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="All commands: codebatch help commands. Topics: codebatch help.",
)
@click.version_option(
    __version__,
    "-V",
    "--version",
    prog_name="codebatch",
    message="%(prog)s %(version)s",
    cls=HelpfulOption,
    is_global=True,
    help="Print version",
)
@group_with_common_options
def cli() -> None:
    """Analyse code in parallel, with cached results, and run resumable task lists."""


def run_command_line(arguments: Sequence[str]) -> NoReturn:
    """Run the command line and exit the process with the command's exit status."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _handle_interrupt)
        sys.unraisablehook = _repeat_ignored_interrupt
    try:
        set_up_streams()
        status = run_to_exit_status(cli, arguments)
    except KeyboardInterrupt:  # A second interrupt arrived while the first was reported.
        status = EXIT_INTERRUPTED
    # The process ends here, so only memory is left to free. The kernel frees it faster than Python.
    os._exit(status)


def _handle_interrupt(*_: object) -> None:
    raise Interrupted


def _repeat_ignored_interrupt(ignored: sys.UnraisableHookArgs) -> None:
    """Send Ctrl-C again if Python ignored its exception, as in `__del__` and in callbacks of the import system."""
    if not isinstance(ignored.exc_value, Interrupted):
        sys.__unraisablehook__(ignored)
        return
    import threading

    # Not now: the exception would be raised in this function, and be ignored again.
    threading.Timer(_REPEAT_SECONDS, os.kill, (os.getpid(), signal.SIGINT)).start()
