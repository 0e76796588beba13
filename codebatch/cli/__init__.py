"""The command line: parse, run one command, turn every end into a message and a status.

Commands are imported when they run: `codebatch --help` imports click and this module only.
"""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Sequence
from typing import NoReturn

import click

from codebatch import __version__
from codebatch.cli.ending import EXIT_INTERRUPTED, run_to_exit_status
from codebatch.cli.groups import Group, answering_group
from codebatch.cli.streams import set_up_streams
from codebatch.errors import Interrupted
from codebatch.system.quick_start import import_msgspec

SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Ask": {
        "summary": ("queries:summary", "Counts of what a batch found."),
        "findings": ("findings:findings", "What was found wrong, by rule, the most certain first, with its source."),
        "errors": ("queries:errors", "Error diagnostics and failures of a batch, with evidence."),
        "top": ("queries:top", "Most frequent kinds, codes, severities, languages or paths; greatest metrics."),
        "hotspots": ("hotspots:hotspots", "Where code is hard to change: complex, often changed, used by many."),
        "duplicates": ("copies:duplicates", "Copied code, the largest blocks first, side by side."),
        "inspect": ("inspecting:inspect", "A file on one screen, or all that is said of it."),
        "impact": ("dependencies:impact", "What depends on a file, transitively."),
        "graph": ("dependencies:graph", "Which file imports which; import cycles."),
        "references": ("references:references", "Where a name stands, and as what."),
        "refs": ("references:references", "The same as references."),
        "find": ("finding:find", "Where code is like a pattern, or a tree-sitter query matches."),
        "def": ("definitions:define", "Where a name is defined."),
        "callers": ("definitions:callers", "What calls a name."),
        "outline": ("definitions:outline", "What a file defines, in its order."),
        "query": ("queries:query", "Records of a batch, filtered."),
        "diff": ("comparing:diff", "Compare the findings of two batches or commits."),
        "regressions": ("comparing:regressions", "List new findings, raised severities and worsened metrics."),
        "improvements": ("comparing:improvements", "List fixed findings, lowered severities and improved metrics."),
        "check": ("check:check", "Fail if a change has regressions: the gate for CI."),
        "baseline": ("baseline:baseline", "Findings that are lived with, in a file: for CI without a store."),
        "report": ("report:report", "What a batch found, as one HTML page."),
        "export": ("export:export", "What was found, for GitHub, GitLab, reviewdog and others; tags for editors."),
        "sql": ("sql:sql", "What SQL answers over the records of a batch."),
        "ast": ("syntax:ast", "The syntax tree of a file."),
        "files": ("snapshots:files", "Files of a batch or snapshot; why a path is in or out."),
    },
    "Run": {
        "run": ("run:run", "Snapshot, plan, execute and summarise a tree; or continue a batch."),
        "resume": ("run:resume", "Continue a batch, and do again what failed in it."),
        "work": ("work:work", "Run lists of commands, whatever dies meanwhile; their logs; answers to them."),
        "follow": ("follow:follow", "What happens in a batch, as it happens, from anywhere, until it is over."),
        "events": ("follow:events", "What happened in a batch, event by event, for programs."),
        "trace": ("trace:trace", "What of a batch ran when, for viewers of traces (Perfetto)."),
        "ask": ("work_ask:ask", "Ask people something, from within a task."),
        "cancel": ("cancel:cancel", "End a batch from anywhere."),
        "import": ("importing:import_", "Take in what another program found, beside what was found here."),
        "status": ("status:status", "Progress and state of a batch."),
        "init": ("setup:init", "Make a store."),
        "config": ("setup:config", "Show the effective configuration."),
    },
    "Keep": {
        "gc": ("collection:gc", "Remove old batches, and whatever only they needed."),
        "pin": ("collection:pin", "Keep a batch or a snapshot until it is unpinned."),
        "unpin": ("collection:unpin", "Let a pinned batch or snapshot go with the others."),
        "index-build": ("index:index_build", "Make the index of a batch, by which questions read less."),
        "index": ("index:index", "Make the index of a batch."),
        "store-stats": ("collection:store_stats", "What the store holds, by part."),
        "diagnose": ("diagnosis:diagnose", "What of the store is damaged; mend it."),
        "verify": ("reuse:verify", "Execute a sample of a batch again, and compare."),
        "explain-miss": ("reuse:explain_miss", "Why results were executed and not taken over."),
        "gate": ("gates:gate", "Promises that the store, a batch and this program are held against."),
    },
    "Extend": {
        "rules": ("syntax:rules", "Rules of lint, one of them; trying out your own."),
        "task": ("trying:task", "Tasks of your own: writing one, trying it on a file, or on all twice."),
    },
    "Of itself": {
        "help": ("helping:help_", "A page on a topic, or how a command is called."),
        "version": ("helping:version", "Which version this is."),
        "completion": ("describing:completion", "Have a shell complete commands, options and values."),
        "api": ("describing:api", "Every command, option, error and answer, for programs."),
        "explain": ("describing:explain", "What a reading command reads, and from where."),
    },
    "Machine room": {
        "snapshot": ("snapshots:snapshot", "Freeze a directory as a snapshot; list and show snapshots."),
        "batch": ("batches:batch", "Make a batch without running it; list batches; where outputs lie."),
        "run-shard": ("run:run_shard", "Run one task of the shards whose id begins with a prefix."),
        "shards": ("batches:shards", "Shards of a batch for one task."),
        "tasks": ("batches:tasks", "Tasks of a batch and how far they are."),
        "pipelines": ("batches:pipelines", "List pipelines."),
        "pipeline": ("batches:pipeline", "Tasks of a pipeline."),
        "cat-object": ("objects:cat_object", "The bytes of an object of the store."),
    },
    "Machine room, by the names of CodeBatch 1": {
        "snapshot-list": ("snapshots:snapshot_list", "snapshot list"),
        "snapshot-show": ("snapshots:snapshot_show", "snapshot show"),
        "batch-list": ("batches:batch_list", "batch list"),
        "batch-show": ("batches:batch_show", "batch show"),
        "gate-list": ("gates:gate_list", "gate list"),
        "gate-run": ("gates:gate_run", "gate run"),
        "gate-bundle": ("gates:gate_bundle", "gate bundle"),
        "gate-explain": ("gates:gate_explain", "gate explain"),
    },
}

_LINES_OF_CODE = 'sql "select lang, sum(code) from files group by lang"'

MEANT = {
    "analyze": "run",
    "analyse": "run",
    "churn": "hotspots --files --by churn",
    "clean": "gc",
    "cloc": _LINES_OF_CODE,
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
    "loc": _LINES_OF_CODE,
    "log": "work log",
    "logs": "work log",
    "ls": "files",
    "metrics": "query metrics",
    "prune": "gc",
    "sarif": "export sarif",
    "scan": "run",
    "search": "references",
    "show": "inspect",
    "sloc": _LINES_OF_CODE,
    "stats": "summary",
    "stop": "cancel",
    "symbols": "query symbols",
    "tail": "follow",
    "tree": "files",
    "usages": "references",
    "watch": "follow",
}
"""Words of other programs, and what we have for them."""


class LazyGroup(Group):
    """The commands of SECTIONS, each imported from its module when it is called."""

    other_words = MEANT

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a word, help is what was asked for."""
        return super().parse_args(ctx, args or ["--help"])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for section in SECTIONS.values() for name in section]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for section in SECTIONS.values():
            if cmd_name in section:
                import_msgspec()
                module, _, attribute = section[cmd_name][0].partition(":")
                command = getattr(importlib.import_module(f"codebatch.cli.{module}"), attribute)
                assert isinstance(command, click.Command)
                return command
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, (_, text) in section.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Exit status: 0 done, 1 an example of a rule is wrong, a file is told otherwise the second time, or a gate "
    "or a check fails, 2 wrong usage, 3 the batch or the answer is incomplete, 4 the store or disk, 5 nothing to do, "
    "70 a bug, 129, 130 and 143 stopped by a signal. An answer that is not the whole one says so on standard error; "
    "with --json it is {complete, percent, batch_id, stale, paths, records}, and summary has `complete` false.",
)
@click.version_option(__version__, "-V", "--version", prog_name="codebatch", message="%(prog)s %(version)s")
@answering_group
def cli() -> None:
    """Run tasks over a codebase in parallel, keep what they say, and ask about it.

    \b
    codebatch run .             freeze, analyse and summarise the current directory
    codebatch findings          what is wrong, likely bugs first
    codebatch hotspots          what is hard to change
    codebatch inspect FILE      what is worth knowing of one file
    codebatch impact FILE       what depends on a file
    codebatch work run          run the commands of work.toml
    codebatch help              pages on questions, rules, data, CI and more
    """


def run_command_line(arguments: Sequence[str]) -> NoReturn:
    """Run a command, and end the process with its status."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        set_up_streams()
        status = run_to_exit_status(cli, arguments)
    except KeyboardInterrupt:  # Another one, while the first was told of.
        status = EXIT_INTERRUPTED
    # Nothing is left to do but to free memory, which the kernel does faster.
    os._exit(status)


def _interrupt(*_: object) -> None:
    raise Interrupted
