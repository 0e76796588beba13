"""`summary`: files and lines of each language."""

from __future__ import annotations

from tests.support.command_line import CommandLine, write

FILES = {
    "a.py": '"""A shop.\n\nOf tea.\n"""\n\nprice = 1  # euro\n# a comment\n',
    "b.py": "x = 1\ny = 2\n",
    "c.js": "/* a\n\n b */\nf();\n",
    "README.md": "# Shop\n\nTea.\n",
    "logo.bin": "\0\0",
}
_TWENTY_TWO = "py js c go rs java sh ts vim zig css html dart nim rb php lua sql kt swift scala cs"


def _run(codebatch: CommandLine, *options: str) -> None:
    for name, text in FILES.items():
        write(codebatch.directory / "tree" / name, text)
    codebatch("run", "tree", "-q", *options)


def test_summary_counts_the_lines_of_code_apart_from_data(codebatch: CommandLine) -> None:
    _run(codebatch)
    assert codebatch("summary").lines[1:7] == [
        "language             files  code  comment  blank",
        "python                   2     3        5      1",
        "javascript               1     1        3      0",
        "total of code            3     4        8      1",
        "markdown                 1     2        0      1",
        "total of data, text      1     2        0      1",
    ]


def test_summary_json_has_line_counts_of_text_files_by_language(codebatch: CommandLine) -> None:
    _run(codebatch)
    answer = codebatch("summary", "--json").json
    assert answer["lines"] == {
        "javascript": {"files": 1, "code": 1, "comment": 3, "blank": 0, "is_data": False},
        "markdown": {"files": 1, "code": 2, "comment": 0, "blank": 1, "is_data": True},
        "python": {"files": 2, "code": 3, "comment": 5, "blank": 1, "is_data": False},
    }
    assert answer["languages"] == {"binary": 1, "javascript": 1, "markdown": 1, "python": 2}


def test_summary_without_line_counts_shows_only_file_counts(codebatch: CommandLine) -> None:
    _run(codebatch, "--pipeline", "parse")
    assert codebatch("summary", "--json").json["lines"] is None
    assert codebatch("summary").lines[1] == "languages    python 2, binary 1, javascript 1, markdown 1"


def test_summary_of_one_task_has_no_line_counts(codebatch: CommandLine) -> None:
    _run(codebatch)
    assert codebatch("summary", "--task", "analyze", "--json").json["lines"] is None
    assert not any(line.startswith("language") for line in codebatch("summary", "--task", "analyze").lines)


def test_summary_adds_up_languages_beyond_the_limit(codebatch: CommandLine) -> None:
    for extension in _TWENTY_TWO.split():
        write(codebatch.directory / "tree" / f"a.{extension}", "a\n" if extension == "cs" else "a\n" * 3)
    codebatch("run", "tree", "-q")
    lines = codebatch("summary").lines
    at = next(at for at, line in enumerate(lines) if line.startswith("2 more"))
    assert lines[at].split() == ["2", "more", "2", "4", "0", "0"]
    assert lines[at + 1].split() == ["total", "of", "code", "22", "64", "0", "0"]
