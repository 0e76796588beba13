"""README and the pages of `codebatch help`: every command in them is run and prints what they show.

In a block of `console`, each line that begins with `$ ` is a command. It runs in the tree of tests/cli/shop.py. The
lines below it, if any, are its output, without regard to the alignment of columns. `…` stands for any text, or alone on
a line for any number of lines. A block whose info string names a file is that file. A block of `python` without a name
is run. A block of `console` without `$ ` installs codebatch, which CI tests.
"""

from __future__ import annotations

import re
import shutil
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
    """A code block of a document: its language, its file name if it is a file, and its text."""

    language: str
    file: str
    text: str


def blocks_of(text: str) -> list[Block]:
    """Return all code blocks of a document in order."""
    return [Block(*groups) for groups in _BLOCK.findall(text)]


def commands_of(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a block with the lines of its expected output."""
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
    """Return a pattern that matches the expected lines with any alignment of columns."""
    lines = [
        r"(?:.*\n)*?" if line == "…" else r".*".join(map(re.escape, _narrow(line).split("…"))) + r"\n" for line in shown
    ]
    return "".join(lines)


def run_in(here: CommandLine, command: str) -> str:
    """Run a line of shell, which must succeed, and return its output."""
    ended = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"( {command} ) 2>&1"],
        cwd=here.directory,
        env=here.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=False,
    )
    output = ended.stdout.decode()
    assert ended.returncode == 0, f"$ {command}\n{output}"
    assert "Traceback" not in output
    return output


@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_every_documented_command_prints_the_documented_output(codebatch: CommandLine, document: Path) -> None:
    if document.stem == "linters" and shutil.which("shellcheck") is None:
        pytest.skip("WARNING: shellcheck is not installed, so the commands of `codebatch help linters` are not run")
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
                output = run_in(here, command)
                narrowed = "".join(f"{_narrow(line)}\n" for line in output.splitlines())
                assert not shown or re.fullmatch(pattern_of(shown), narrowed), f"$ {command}\n{output}"


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
    assert "fetch-depth: 0" in job


def test_every_page_is_a_help_topic() -> None:
    assert {path.stem for path in PAGES.iterdir()} == set(HELP_TOPICS)


@pytest.mark.parametrize("columns", [20, 72, 200])
@pytest.mark.parametrize("topic", HELP_TOPICS)
def test_page_fits_any_terminal_width_and_omits_no_word(topic: str, columns: int) -> None:
    """Code and words that are longer than the width of the terminal are exempt."""
    text = (PAGES / f"{topic}.md").read_text(encoding="utf-8")
    lines = list(page_lines(text, columns))
    prose = [line for line in lines if not line.startswith("    ")]
    assert [line for line in prose if len(line) > columns and " " in line.strip()] == []
    words = re.findall(r"[\w.]+", " ".join(lines).lower())
    assert [word for word in re.findall(r"[\w.]+", _BLOCK.sub(r"\3", text).lower()) if word not in words] == []


def _narrow(line: str) -> str:
    """Return a line without the spaces that align its columns."""
    return re.sub(r" +", " ", line).strip()
