"""`--explain` reports what a command read, and does not change its answer."""

from __future__ import annotations

from codebatch.cli.framework.explain_answers import EXPLAINED_COMMANDS

from .conftest import Ran
from .test_help import command_of
from .test_interface import commands_alone


def test_only_reading_commands_have_the_explain_option() -> None:
    able = {
        name
        for name, words in commands_alone().items()
        if any("--explain" in param.opts for param in command_of(words).params)
    }
    assert able == EXPLAINED_COMMANDS, "add reading commands to _READS in codebatch/cli/framework/explain_answers.py"


def test_explain_option_reports_files_read_on_standard_error(ran: Ran) -> None:
    """The report is also printed with `-q`, and if the answer is an error."""
    words = ("query", "symbols", "--path", "main", "--json", "-q", "--store", str(ran.store))
    plain, explained = ran.codebatch(*words), ran.codebatch(*words, "--explain")
    assert explained.stdout == plain.stdout
    assert plain.notes == ""
    store, read, shards, records = explained.notes.splitlines()
    assert store == f"store: {ran.store}"
    assert read.startswith("read: 5 files of it, ")
    assert shards == ("shard files considered: 6; 5 answered from counts, 0 excluded by the index, 1 read")
    assert records.endswith(f" in 1 frame; {len(plain.records)} matched")
    by_language = ran.codebatch(*words, "--lang", "python", "--explain")
    assert by_language.notes.endswith(f" in 2 frames; {len(by_language.records)} matched\n"), (
        "records of files must not be read"
    )
    failed = ran.codebatch("inspect", "nope", "--store", str(ran.store), "--explain", status=2)
    assert failed.notes.startswith("store: ")
