"""Help, versions, and the format of errors."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import click
import pytest

from codebatch import __version__
from codebatch.cli import COMMANDS_BY_SECTION, EQUIVALENT_COMMANDS, LOW_LEVEL_SECTION, OLD_NAMES_SECTION, cli
from codebatch.cli.framework.commands import command_summary
from codebatch.cli.framework.exit import run_to_exit_status
from codebatch.cli.output.markdown import HELP_TOPICS
from codebatch.errors import CodebatchError
from tests.cli.terminal import on_a_terminal
from tests.support.command_line import CommandLine

from .conftest import Ran


def every_command() -> list[tuple[str, ...]]:
    """Return the words of every command and group."""
    words_of_commands: list[tuple[str, ...]] = []
    remaining: list[tuple[tuple[str, ...], click.Command]] = [((), cli)]
    while remaining:
        words, command = remaining.pop()
        words_of_commands.append(words)
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                below = command.get_command(click.Context(command), name)
                assert below is not None
                remaining.append(((*words, name), below))
    return sorted(words_of_commands)


def command_of(words: tuple[str, ...]) -> click.Command:
    """Return the command with these words."""
    command: click.Command = cli
    for word in words:
        assert isinstance(command, click.Group)
        below = command.get_command(click.Context(command), word)
        assert below is not None
        command = below
    return command


@pytest.mark.parametrize("words", every_command(), ids=" ".join)
def test_help_explains_the_command_and_every_option(
    tmp_path_factory: pytest.TempPathFactory, words: tuple[str, ...]
) -> None:
    command = command_of(words)
    assert command.help
    options = [param for param in command.params if isinstance(param, click.Option)]
    assert [option.name for option in options if not option.help] == []
    names = {name for option in options for name in option.opts}
    assert {"--store", "--json", "--quiet", "--verbose", "--no-color", "--color"} <= names
    shown = CommandLine(tmp_path_factory.getbasetemp())(*words, "--help")
    assert shown.stderr == b""
    not_listed = set() if words else {"--no-color", "-V", "--version"}
    assert names - set(re.findall(r"(?<![\w-])--?\w[\w-]*", shown.text)) <= not_listed


def test_main_help_fits_one_screen(codebatch: CommandLine) -> None:
    lines = CommandLine(codebatch.directory, {"COLUMNS": "80"})("--help").lines
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    commands = [line.split()[0] for line in lines[: lines.index("Options:")] if re.match(r"  [a-z-]+  ", line)]
    assert {"run", "findings", "work", "gc"} <= {*commands}
    assert len(commands) <= 25
    assert not {*commands} & {*COMMANDS_BY_SECTION[LOW_LEVEL_SECTION], *COMMANDS_BY_SECTION[OLD_NAMES_SECTION]}
    assert "  All commands: codebatch help commands. Topics: codebatch help." in lines


def test_help_pages_list_all_commands_and_common_options(codebatch: CommandLine) -> None:
    page = codebatch("help", "commands").text
    listed = [tuple(words.split()) for words in re.findall(r"^\| ([a-z][a-z -]*?) +\| ", page, re.MULTILINE)]
    of_alias = {words for words in every_command() if words[:1] == ("gate",) and len(words) == 2}
    assert sorted({*listed} - {("command",)}) == sorted({*every_command()} - {()} - of_alias)
    assert "| gate-run      | Same as selftest run |" in page.splitlines()
    page = codebatch("help", "options").text
    assert all(f" {name}" in page for name in ("--store", "--no-color", "--batch", "--limit", "--take-over"))
    assert "Case is ignored." in page


def test_command_list_and_command_help_have_the_same_summary() -> None:
    for section in COMMANDS_BY_SECTION.values():
        for name, (_, text) in section.items():
            assert text.startswith("Same as ") or command_summary(command_of((name,))) == text


def test_help_lists_common_options_last_and_briefly(codebatch: CommandLine) -> None:
    own, common = codebatch("findings", "--help").text.split("Common options:")
    assert "--severity" in own
    assert "--batch" not in own
    assert [line.split()[0] for line in common.splitlines() if line.startswith("  -")][-7:] == [
        "--store", "--color", "--json", "-q,", "-v,", "--no-color", "-h,",
    ]  # fmt: skip
    assert "Case is ignored" not in common


def test_short_help_option_equals_the_long_option(codebatch: CommandLine) -> None:
    assert codebatch("-h").stdout == codebatch("--help").stdout


def test_invocation_without_command_prints_help(codebatch: CommandLine) -> None:
    assert codebatch().stdout == codebatch("--help").stdout


@pytest.mark.parametrize("command", ["snapshot list", "snapshot show", "batch list", "batch show"])
def test_command_names_of_codebatch_1_are_aliases(ran: Ran, command: str) -> None:
    old = command.replace(" ", "-")
    for more in ((), ("--json",)):
        options = ("--store", "store", *more)
        assert ran.codebatch(old, *options).stdout == ran.codebatch(*command.split(), *options).stdout != b""
    assert f"| {old.ljust(13)} | Same as {command} |" in ran.codebatch("help", "commands").lines


@pytest.mark.parametrize("wrong", ["snapshot . --id mine", "batch init --id mine", "snapshot . --metadata {}"])
def test_removed_option_of_codebatch_1_gets_a_hint(codebatch: CommandLine, wrong: str) -> None:
    error = codebatch(*wrong.split(), "--json", status=2).error
    assert error["code"] == "usage"
    assert "CodeBatch 1" in error["message"]
    assert "codebatch run PATH --name NAME" in error["hint"]


def test_version_is_printed(codebatch: CommandLine) -> None:
    assert codebatch("--version").text == codebatch("-V").text == f"codebatch {__version__}\n" == "codebatch 2.0.0\n"
    assert codebatch("version").text.startswith("codebatch 2.0.0 (Python ")
    assert codebatch("version", "--json").json["version"] == __version__


def test_help_accepts_topics_and_commands(codebatch: CommandLine) -> None:
    assert codebatch("help", "batch", "list").text == codebatch("batch", "list", "--help").text
    topics = [topic["topic"] for topic in codebatch("help", "--json").json["topics"]]
    assert topics == [*HELP_TOPICS, "commands", "options"]
    page = codebatch("help", "ci").text
    assert page.startswith("# Continuous integration\n")
    assert codebatch("help", "ci", "--json").json["text"] == page
    assert codebatch("help", "lanuages", "--json", status=2).error["hint"] == "did you mean 'languages'?"
    assert codebatch("help", "batch", "lst", "--json", status=2).error["hint"] == "did you mean 'list'?"
    assert codebatch("help", "run", "x", "--json", status=2).error["hint"] == "see: codebatch run --help"


def test_low_level_commands_and_old_names_are_listed_last() -> None:
    titles = list(COMMANDS_BY_SECTION)
    assert titles[:5] == ["Analyse", "Query", "Change files", "Task lists", "Maintain"]
    assert titles[-2:] == [LOW_LEVEL_SECTION, OLD_NAMES_SECTION]
    low_level = {"run-shard", "shards", "batch", "pipelines", "pipeline", "tasks", "cat-object"}
    assert low_level <= COMMANDS_BY_SECTION[LOW_LEVEL_SECTION].keys()


def test_help_does_not_import_heavy_modules(codebatch: CommandLine) -> None:
    imported = CommandLine(codebatch.directory, {"PYTHONPROFILEIMPORTTIME": "1"})("--help").notes
    assert "codebatch.cli" in imported
    for heavy in ("msgspec", "zstandard", "lmdb", "psutil", "tree_sitter", "codebatch_workers"):
        assert f" {heavy}\n" not in imported, heavy


@pytest.mark.parametrize(
    ("mistyped", "meant"),
    [
        ("snapshto .", "snapshot"),
        ("batch lits", "list"),
        ("query output", "outputs"),
        ("sumary", "summary"),
        ("lint", "findings"),
        ("snap", "snapshot"),
        ("dups", "duplicates"),
        ("watch", "follow"),
        ("stats", "summary"),
        ("tree", "files"),
    ],
)
def test_mistyped_command_gets_a_suggestion(codebatch: CommandLine, mistyped: str, meant: str) -> None:
    ended = codebatch(*mistyped.split(), status=2)
    assert ended.notes.splitlines()[0].endswith(f"did you mean {meant!r}?")
    assert meant in codebatch(*mistyped.split(), "--json", status=2).error["message"]


def test_suggestion_for_loc_is_a_working_sql_statement(ran: Ran) -> None:
    error = ran.codebatch("loc", "--json", status=2).error["message"]
    words = shlex.split(error.partition("did you mean '")[2].removesuffix("'?"))
    assert words[0] == "sql"
    rows = ran.codebatch(*words, "--store", ran.store, "--json").json["rows"]
    assert {row["lang"] for row in rows} > {"python", "c"}


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("help cycles", "did you mean 'graph --cycles'?"),
        ("help dups", "did you mean 'duplicates'?"),
        ("help lanuages", "did you mean 'languages'?"),
        ("hotspots --sort x", "did you mean '--by'?"),
        ("query symbols --order x", "did you mean '--sort'?"),
        ("findings --limmit 3", "did you mean '--limit'?"),
        ("files --lagn python", "did you mean '--lang'?"),
        ("graph --lang python", "see: codebatch graph --help"),
        ("findings --sort x", "see: codebatch findings --help"),
        ("findings --frobnicate", "see: codebatch findings --help"),
    ],
)
def test_synonyms_of_commands_and_options_get_a_suggestion(codebatch: CommandLine, words: str, hint: str) -> None:
    assert codebatch(*words.split(), "--json", status=2).error["hint"] == hint


def test_long_list_of_names_is_wrapped_between_names_on_a_terminal(codebatch: CommandLine) -> None:
    shown, _ = on_a_terminal(codebatch, "explain", "NAME", shown="stderr", columns=60, status=2)
    first, *hint = shown.splitlines()
    assert first == "error: 'NAME' is not a command that only reads the store"
    assert hint[0].startswith("hint: one of: ast, batch-list, ")
    assert len(hint) > 5
    assert all(line.startswith("      ") for line in hint[1:])
    assert max(map(len, hint)) <= 60
    assert " ".join(line.strip() for line in hint) == codebatch("explain", "NAME", status=2).notes.splitlines()[1]


def test_dissimilar_command_gets_no_suggestion(codebatch: CommandLine) -> None:
    assert codebatch("frobnicate", status=2).notes.splitlines()[0] == "error: no such command 'frobnicate'"
    commands = {name for section in COMMANDS_BY_SECTION.values() for name in section}
    assert {line.split()[0] for line in EQUIVALENT_COMMANDS.values()} <= commands
    assert not commands & EQUIVALENT_COMMANDS.keys()


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("references x --role cal", "call"),
        ("query diagnostics --severity eror", "error"),
        ("top --by sevrity", "severity"),
        ("query symbols -o jsno", "json"),
        ("completion bsh", "bash"),
    ],
)
def test_mistyped_value_gets_a_suggestion(ran: Ran, wrong: str, meant: str) -> None:
    error = ran.codebatch(*wrong.split(), "--store", "store", "--json", status=2).error
    assert error["hint"] == f"did you mean {meant!r}?"


@pytest.mark.parametrize(
    "wrong",
    [
        "frobnicate",
        "status --nope",
        "status extra",
        "run -j 0 .",
        "run -j many .",
        "run --file-seconds 0 .",
        "run --file-seconds nan .",
        "run . --pipeline nope",
        "run . --task nope",
        "run nowhere",
        "run --batch latest .",
        "run --batch latest --again",
        "run-shard --shard a",
        "run-shard --task parse",
        "pipeline",
        "pipeline nope",
        "shards",
        "shards --task parse --status odd",
        "top --by colour",
        "top --limit 0",
        "query outputs --kind nope",
        "query outputs --where=",
        "query outputs --where 9**9**9",
        "query diagnostics --severity nope",
        "query outputs --task nope",
        "inspect",
        "inspect nowhere.py",
        "inspect src/main.py --kinds nope",
        "inspect src/main.py --kinds=",
        "errors --limit x",
        "files --batch latest --snapshot latest",
        "files --include *.py",
        "files --why src/main.py --batch latest",
        "snapshot nowhere",
        "snapshot show nope",
        "batch show latest --batch latest",
        "snapshot",
        "batch",
        "query",
        "batch init --pipeline nope",
    ],
)
def test_usage_error_exits_with_2_and_prints_the_cause(ran: Ran, wrong: str) -> None:
    words = wrong.split()
    ended = CommandLine(ran.codebatch.directory, {"CODEBATCH_STORE": str(ran.store)})(*words, status=2)
    if wrong in ("batch", "query", "snapshot"):
        assert ended.notes.startswith("Usage: ")
        return
    assert ended.notes.startswith("error: "), ended.notes
    hints = [line for line in ended.notes.splitlines()[1:] if not line.startswith("hint: ")]
    assert hints == []


def test_json_error_has_the_same_message_and_a_code(ran: Ran) -> None:
    for wrong, code in (("status --nope", "usage"), ("frobnicate", "usage"), ("pipeline nope", "invalid_input")):
        plain, as_json = (ran.codebatch(*wrong.split(), *more, status=2) for more in ((), ("--json",)))
        assert plain.notes.splitlines()[0] == f"error: {as_json.error['message']}"
        assert as_json.error["code"] == code


@pytest.mark.parametrize("form", ["-o json", "-ojson", "-qo json", "--output json", "--output=json"])
def test_error_is_json_if_the_answer_would_be_json(ran: Ran, form: str) -> None:
    wrong = ("query", "symbols", "--where", "nme == 'a'", "--store", "store")
    assert ran.codebatch(*wrong, *form.split(), status=2).error["hint"] == "did you mean 'name'?"
    assert ran.codebatch(*wrong, "-o", "jsonl", status=2).notes.startswith("error: ")


@pytest.mark.parametrize(
    ("environment", "lacking"),
    [({}, "COMP_WORDS"), ({"COMP_WORDS": "codebatch"}, "COMP_CWORD"), ({"COMP_WORDS": "", "COMP_CWORD": "x"}, "CWORD")],
)
def test_completion_without_its_variables_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], environment: dict[str, str], lacking: str
) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ, **environment, "_CODEBATCH_COMPLETE": "bash_complete"})
    assert run_to_exit_status(cli, []) == 2
    assert lacking in capsys.readouterr().err


def test_rejected_run_creates_no_store(codebatch: CommandLine) -> None:
    (codebatch.directory / "a.py").write_text("x = 1\n")
    for wrong in ("run nowhere", "run . --pipeline nope", "run . --task nope"):
        codebatch(*wrong.split(), status=2)
        assert not (codebatch.directory / ".codebatch").exists(), wrong


def test_hint_names_the_given_store(ran: Ran) -> None:
    ended = ran.codebatch("status", "--batch", "nope", "--store", "store", status=2)
    assert ended.notes.splitlines()[1] == "hint: see: codebatch batch list --store store"
    assert ran.codebatch.shell(ended.notes.splitlines()[1].removeprefix("hint: see: ")).stdout
    ended = ran.codebatch("run", ran.project, "--store", ran.store, cwd=ran.project)
    assert ended.notes.splitlines()[-1] == f"next: codebatch findings --store {ran.store}"


def test_bug_exits_with_70_and_writes_the_traceback_to_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    @click.command()
    @click.option("--json", is_flag=True)
    def broken(json: bool) -> None:
        raise RuntimeError("\x1b[31mboom")

    assert run_to_exit_status(broken, []) == 70
    (report,) = tmp_path.glob("codebatch-bug-*.txt")
    assert "in broken" in report.read_text()
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [
        "error: internal error: RuntimeError: \\x1b[31mboom",
        f"hint: please report this bug; the traceback is in {report}",
    ]
    assert run_to_exit_status(broken, ["--json"]) == 70
    error = json.loads(capsys.readouterr().err)["error"]
    assert (error["code"], error["exit"]) == ("internal", 70)


def test_os_error_of_a_call_on_a_descriptor_is_no_bug(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (tmp_path / "file").open("w") as file:

        @click.command()
        def refused() -> None:
            os.listdir(file.fileno())

        assert run_to_exit_status(refused, []) == 4
    assert capsys.readouterr().err == "error: the disk: Not a directory\n"


def test_json_error_is_valid_with_ascii_standard_error(tmp_path: Path) -> None:
    codebatch = CommandLine(tmp_path, {"PYTHONIOENCODING": "ascii"})
    message = codebatch("ast", "Gr\xfc\xdfe.py", "--json", status=2).error["message"]
    assert message == "Gr\xfc\xdfe.py: No such file or directory"


def test_every_error_class_has_a_unique_code_and_an_exit_status() -> None:
    classes: list[type[CodebatchError]] = [CodebatchError]
    for one in classes:
        classes += one.__subclasses__()
    # Subclasses that only rephrase an error inherit its code.
    codes = [one.code for one in classes if one is not CodebatchError and "code" in one.__dict__]
    assert len(codes) == len(set(codes)) > 15
    assert {one.exit_status for one in classes} <= {1, 2, 3, 4, 5, 70, 130}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jobz = 2\n", "did you mean 'jobs'"),
        ("[shard]\nfiles_mni = 3\n", "did you mean 'files_min'"),
        ("[store]\nkep = 3\n", "setting 'store.kep'"),
        ("[shard]\nzzz = 3\n", "one of: files_average, "),
        ("pipeline = 'ful'\n", "did you mean 'full'"),
        ("[tasks.lint]\nof = []\n", "did you mean 'off'"),
        ("[tasks.lnt]\noff = []\n", "did you mean 'lint'"),
        ("jobs = 0\n", "at least 1"),
        ("jobs = 'many'\n", "jobs"),
        ("jobs = \n", "is not valid TOML"),
        ("[shard]\nfiles_min = 'x'\n", "files_min"),
        ("pipeline = 'nope'\n", "unknown pipeline"),
        ("[tasks.lint]\nnope = 1\n", "nope"),
        ("[tasks.nope]\nx = 1\n", "nope"),
        ("[tasks.lint]\noff = 'F401'\n", "Expected `array`"),
        ("[tasks.lint]\noff = [401]\n", "Expected `str`, got `int`"),
        ("[tasks.lint]\non = ['todo-coment']\n", "did you mean 'todo-comment'"),
        ("[tasks.lint]\noff = ['F401', 'X999']\n", "unknown rule 'X999'"),
    ],
)
def test_invalid_configuration_is_rejected_before_a_store_is_created(
    codebatch: CommandLine, text: str, message: str
) -> None:
    (codebatch.directory / "a.py").write_text("x = 1\n")
    (codebatch.directory / "codebatch.toml").write_text(text)
    ended = codebatch("run", "a.py", "--json", status=2)
    assert message in ended.error["message"] + str(ended.error["hint"])
    assert ended.error["code"] in ("invalid_configuration", "invalid_input")
    assert not (codebatch.directory / ".codebatch").exists()


def test_config_show_output_is_a_valid_configuration(codebatch: CommandLine) -> None:
    text = (
        "exclude = ['a', 'b c']\njobs = 3\nmemory_mb_max = 500\n[shard]\nfiles_min = 8\n[tasks.lint]\noff = ['F401']\n"
    )
    (codebatch.directory / "codebatch.toml").write_text(text)
    shown = codebatch("config", "show", "--json").json
    (codebatch.directory / "codebatch.toml").write_text(codebatch("config", "show").text)
    again = codebatch("config", "show", "--json").json
    assert {name: row["value"] for name, row in again.items()} == {name: row["value"] for name, row in shown.items()}
    assert again["tasks"]["value"] == {"lint": {"off": ["F401"]}}


def test_config_show_reports_the_origin_of_each_setting(codebatch: CommandLine) -> None:
    (codebatch.directory / "pyproject.toml").write_text("[tool.codebatch]\njobs = 1\nmemory_mb_max = 500\n")
    shown = codebatch("config", "show", "--json").json
    assert shown["jobs"] == {"value": 1, "origin": str(codebatch.directory / "pyproject.toml")}
    assert shown["pipeline"] == {"value": "full", "origin": "default"}
    below = codebatch.directory / "below"
    below.mkdir()
    assert codebatch("config", "show", "--json", cwd=below).json == shown
