"""README and the pages of `codebatch help`: every command line in them is run, and says what they show.

In a block of `console` each line that begins with `$ ` is a command, run in the tree of tests/cli/shop.py; the lines
below it, if any, are what a person is shown, however its columns are aligned. `…` stands for any text, alone on a line
for any number of lines. A block whose info string names a file is that file; one of `python` without a name is run. A
block of `console` without `$ ` sets codebatch up, which CI does.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from codebatch.cli.output.markdown import HELP_TOPICS, page_lines
from tests.cli.shop import make_shop
from tests.support.command_line import CommandLine, write

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "codebatch" / "help"
DOCUMENTS = [ROOT / "README.md", *(PAGES / f"{topic}.md" for topic in HELP_TOPICS)]
BEFORE_A_RUN = {"README.md", "first-run.md"}
PAGE_LINES_MAX = 116
README_LINES_MAX = 130
PROMPT = "$ "
GIT = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false")

_BLOCK = re.compile(r"^```(\w+) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#:]+)\)")
_COMMAND = re.compile(r"`codebatch (?:help )?([a-z][a-z-]*)")


class Block(NamedTuple):
    """A block of code of a document: its language, the file that it is, and its text."""

    language: str
    file: str
    text: str


def blocks_of(text: str) -> list[Block]:
    """All of a document, in its order."""
    return [Block(*found) for found in _BLOCK.findall(text)]


def commands_of(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command of a block with the lines that it is to say."""
    command, shown = "", list[str]()
    for line in block.text.splitlines():
        if line.startswith(PROMPT):
            if command:
                yield command, shown
            command, shown = line.removeprefix(PROMPT), []
        else:
            shown.append(line)
    if command:
        yield command, shown


def pattern_of(shown: list[str]) -> str:
    """What matches the lines that are shown, but for how their columns are aligned."""
    lines = [
        r"(?:.*\n)*?" if line == "…" else r".*".join(map(re.escape, _narrow(line).split("…"))) + r"\n" for line in shown
    ]
    return "".join(lines)


def run_in(here: CommandLine, command: str) -> str:
    """What a person is shown who types a line of shell, which is to end well."""
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"( {command} ) 2>&1"],
        cwd=here.directory,
        env=here.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=False,
    )
    said = ended.stdout.decode()
    assert ended.returncode == 0, f"$ {command}\n{said}"
    assert "Traceback" not in said
    return said


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_every_documented_command_prints_the_documented_output(codebatch: CommandLine, document: Path) -> None:
    shop = make_shop(codebatch.directory / "shop")
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "open the shop")):
        subprocess.run([*GIT, *arguments], cwd=shop, check=True)
    here = CommandLine(shop, {"TMPDIR": str(codebatch.directory)})
    if document.name not in BEFORE_A_RUN:
        here("run", ".", "-q")
    for block in blocks_of(document.read_text(encoding="utf-8")):
        if block.file:
            write(shop / block.file, block.text)
        elif block.language == "python":
            subprocess.run([sys.executable, "-c", block.text], cwd=shop, check=True, stdout=subprocess.DEVNULL)
        elif block.language == "console":
            for command, shown in commands_of(block):
                said = run_in(here, command)
                narrowed = "".join(f"{_narrow(line)}\n" for line in said.splitlines())
                assert not shown or re.fullmatch(pattern_of(shown), narrowed), f"$ {command}\n{said}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_documents_are_short_and_their_links_and_commands_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert text.count("\n") <= (README_LINES_MAX if document.name == "README.md" else PAGE_LINES_MAX)
    assert [link for link in _LINK.findall(text) if not (document.parent / link).exists()] == []
    from codebatch.cli import COMMANDS_BY_SECTION
    from codebatch.cli.reference.help import ALL_TOPICS

    known = {name for section in COMMANDS_BY_SECTION.values() for name in section} | set(ALL_TOPICS)
    assert [word for word in _COMMAND.findall(text) if word not in known] == []


def test_readme_shows_steps_of_the_documented_ci_job() -> None:
    steps, job = (
        next(block.text for block in blocks_of(path.read_text(encoding="utf-8")) if block.language == "yaml")
        for path in (ROOT / "README.md", PAGES / "ci.md")
    )
    assert steps
    assert job.endswith(steps)
    assert "fetch-depth: 2" in job


def test_every_page_is_a_help_topic() -> None:
    assert {path.stem for path in PAGES.iterdir()} == set(HELP_TOPICS)


@pytest.mark.parametrize("columns", [20, 72, 200])
@pytest.mark.parametrize("topic", HELP_TOPICS)
def test_page_fits_any_terminal_width_and_omits_no_word(topic: str, columns: int) -> None:
    """But for code, and for words that are longer than the terminal is wide."""
    text = (PAGES / f"{topic}.md").read_text(encoding="utf-8")
    lines = list(page_lines(text, columns))
    prose = [line for line in lines if not line.startswith("    ")]
    assert [line for line in prose if len(line) > columns and " " in line.strip()] == []
    words = re.findall(r"[\w.]+", " ".join(lines).lower())
    assert [word for word in re.findall(r"[\w.]+", _BLOCK.sub(r"\3", text).lower()) if word not in words] == []


def _narrow(line: str) -> str:
    """A line without the spaces that align it."""
    return re.sub(r" +", " ", line).strip()
