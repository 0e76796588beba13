"""The description of the command line that codebatch itself gives is right."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import shutil
from pathlib import Path

import click
import pytest

from codebatch.cli import cli
from codebatch.cli.framework.exit import run_to_exit_status
from codebatch.cli.framework.explain_answers import EXPLAINED_COMMANDS, explain_command
from codebatch.cli.reference.interface import ANSWER_TYPES
from codebatch.system.files.counted_files import CountedFiles
from tests.support.command_line import CommandLine

from .conftest import Ran
from .test_help import command_of, every_command

GOLDEN = Path(__file__).parents[1] / "golden"
ANSWERS_WITHOUT_COMMAND = {
    "apply-branch", "batch-outputs", "changes-by", "error", "files-snapshot", "files-why", "graph-cycles", "graph-dot",
    "impact-symbol", "impact-tests", "inspect-explain", "inspect-line", "inspect-symbol", "join-missing", "run-dry-run",
    "run-part", "verify-trust", "work-dry-run", "work-status",
}  # fmt: skip
COMMANDS_WITHOUT_SCHEMA = {"ast"}
"""The answer of these commands is a syntax tree, without members of codebatch."""
MORE_WORDS = {
    "ast": "src/main.py --batch latest",
    "callers": "Main",
    "def": "Main",
    "diff": "latest latest",
    "export": "sarif",
    "implementations": "Main",
    "improvements": "latest latest",
    "regressions": "latest latest",
    "outline": "src/main.py",
    "find": "-l python --pattern f()",
    "cat-object": hashlib.sha256(b"export interface Point { x: number }\n").hexdigest(),
    "impact": "src/main.py",
    "inspect": "src/main.py",
    "references": "Main",
    "report": "-o -",
    "rules-show": "F401",
    "shards": "--task lint",
    "snapshot-show": "--files",
    "sql": "from/**/files/**/order/**/by/**/path",
    "work-attempts": "fails",
    "work-log": "fails",
}


def commands_alone() -> dict[str, tuple[str, ...]]:
    """Return the words of every command that is not a group, by the name of its answer. Aliases are left out."""
    words_by_command: dict[int, tuple[str, ...]] = {}
    for words in every_command():
        command = command_of(words)
        if not isinstance(command, click.Group):
            words_by_command[id(command)] = max(
                words,
                words_by_command.get(id(command), ()),
                key=lambda words_of_name: (len(words_of_name), len("".join(words_of_name))),
            )
    return {answer_of(words): words for words in words_by_command.values()}


def answer_of(words: tuple[str, ...]) -> str:
    """Return the name of a command's answer. Self-tests keep the names that CodeBatch 1 gave them."""
    return "-".join(("gate", *words[1:]) if words[0] == "selftest" else words)


def test_every_command_has_an_answer_with_a_schema() -> None:
    assert commands_alone().keys() == (ANSWER_TYPES.keys() - ANSWERS_WITHOUT_COMMAND) | COMMANDS_WITHOUT_SCHEMA


def test_api_describes_the_whole_command_line_deterministically(codebatch: CommandLine) -> None:
    answer = codebatch("api", "--json")
    assert CommandLine(codebatch.directory, {"PYTHONHASHSEED": "7"})("--json", "api").stdout == answer.stdout
    assert list(codebatch.directory.iterdir()) == []
    described = answer.json
    commands = {answer_of(tuple(each["name"].split())): each for each in described["commands"]}
    assert commands.keys() == commands_alone().keys()
    everywhere = {name for option in described["options"] for name in option["names"]}
    for name, words in commands_alone().items():
        shown = {each for option in commands[name]["options"] for each in option["names"]}
        options = [param for param in command_of(words).params if isinstance(param, click.Option)]
        assert shown | everywhere >= {each for option in options for each in option.opts}, name
        assert commands[name]["answer"] == (None if name in COMMANDS_WITHOUT_SCHEMA else f"codebatch.{name}/1")
    assert commands["batch-show"]["aliases"] == ["batch-show"]
    assert commands["gate-run"]["name"] == "selftest run"
    assert set(commands["gate-run"]["aliases"]) == {"gate run", "gate-run"}
    assert {"symbol", "failure"} <= described["kinds"].keys()
    assert {"code": "nothing_to_do", "exit": 5} in [
        {key: error[key] for key in ("code", "exit")} for error in described["errors"]
    ]
    assert {f"codebatch.{name}/1" for name in ANSWER_TYPES} == described["schemas"].keys()


def test_no_command_option_or_answer_was_removed(codebatch: CommandLine) -> None:
    """Each line of the golden file has the name of a command (`*` for all), its answer and its options."""
    described = codebatch("api", "--json").json
    existing = {"*": ("-", {name for option in described["options"] for name in option["names"]})}
    for command in described["commands"]:
        own = {name for option in command["options"] for name in option["names"]}
        existing |= dict.fromkeys((command["name"], *command["aliases"]), (command["answer"] or "-", own))
    removed: list[str] = []
    for line in (GOLDEN / "command-line.txt").read_text(encoding="utf-8").splitlines():
        words, answer, *options = line.split()
        name = words.replace("_", " ")
        if name not in existing or answer != existing[name][0] or not {*options} <= existing[name][1]:
            removed.append(line)
    assert removed == []


@pytest.fixture(scope="module")
def work_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a batch of two commands, one that fails and one that asks a question."""
    root = tmp_path_factory.mktemp("worked")
    tasks = "[tasks.fails]\nrun = 'echo said; false'\n[tasks.asks]\nrun = 'echo why >$CODEBATCH_QUESTION; exit 1'\n"
    (root / "tasks.toml").write_text(tasks)
    CommandLine(root)("work", "run", "-f", "tasks.toml", "--store", "store", status=3)
    return root / "store"


@pytest.mark.parametrize("is_merged", [True, False], ids=["merged", "not merged"])
@pytest.mark.parametrize("name", sorted(EXPLAINED_COMMANDS))
def test_reading_command_reads_only_the_files_that_explain_lists(
    ran: Ran, work_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_merged: bool
) -> None:
    store = whole = work_store if name.startswith("work-") else ran.store
    if not is_merged:
        store = tmp_path / "store"
        shutil.copytree(whole, store, symlinks=True)
        for outputs in store.glob("batches/*/outputs/*"):
            outputs.rename(tmp_path / "away")
    counted: list[CountedFiles] = []

    def make() -> CountedFiles:
        counted.append(CountedFiles())
        return counted[0]

    monkeypatch.setattr("codebatch.cli.framework.context.CountedFiles", make)
    monkeypatch.chdir(work_store.parent if name.startswith("work-") else ran.project)
    words = [*commands_alone()[name], *MORE_WORDS.get(name, "").split(), "--store", str(store), "--explain"]
    assert run_to_exit_status(cli, words) == 0
    patterns = [path for source in explain_command(name).reads for path in source.paths]
    read = {str(path.relative_to(store)) for path in counted[0].paths}
    assert read
    assert [path for path in read if not any(fnmatch.fnmatch(path, pattern) for pattern in patterns)] == []


def test_explain_rejects_other_than_reading_commands(codebatch: CommandLine) -> None:
    assert codebatch("explain", "query", "outputs").stdout == codebatch("explain", "query-outputs").stdout
    assert codebatch("explain", "sumary", status=2).notes.endswith("hint: did you mean 'summary'?\n")
    assert codebatch("explain", "gc", "--json", status=2).error["hint"].startswith("one of: ast, ")
    assert json.loads(codebatch("explain", "top", "--json").stdout)["answer"] == "codebatch.top/1"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_each_shell(codebatch: CommandLine, shell: str) -> None:
    script = codebatch("completion", shell).text
    assert f"_CODEBATCH_COMPLETE={shell}_complete" in script
    assert codebatch("completion", shell, "--json").json["script"].splitlines() == script.splitlines()


def test_partial_command_is_completed(codebatch: CommandLine) -> None:
    variables = {"_CODEBATCH_COMPLETE": "bash_complete", "COMP_WORDS": "codebatch sta", "COMP_CWORD": "1"}
    ended = CommandLine(codebatch.directory, variables)()
    assert (ended.stdout, ended.stderr) == (b"plain,status\n", b"")


def test_completion_offers_commands_with_summary_but_no_old_names(codebatch: CommandLine) -> None:
    variables = {"_CODEBATCH_COMPLETE": "fish_complete", "COMP_WORDS": "codebatch sel", "COMP_CWORD": "sel"}
    text = CommandLine(codebatch.directory, variables)().text
    assert text == "plain,selftest\tRun self-tests on the store, a batch and this installation\n"
    variables |= {"COMP_WORDS": "codebatch gate", "COMP_CWORD": "gate"}
    assert CommandLine(codebatch.directory, variables)().text.strip() == ""
