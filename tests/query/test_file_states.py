"""Counts of files by their parse state, and of the files that were not parsed by class or language."""

from __future__ import annotations

from collections import Counter

from codebatch.query.sources.parsed_files import FileStates, ParsedFile, file_states


def _file(parse: str, class_: str = "source", lang: str = "python") -> ParsedFile:
    return ParsedFile(path="f", parse=parse, class_=class_, lang=lang)


def test_files_are_counted_by_parse_state() -> None:
    files = [
        *[_file("ok")] * 7,
        *[_file("partial")] * 2,
        *[_file("errors")] * 3,
        *[_file("ok", "text")] * 4,
        *[_file("ok", "text", "markdown")] * 5,
        *[_file("skipped", "binary", "")] * 6,
        _file("skipped", "minified", "javascript"),
        *[_file("unsupported", lang="cobol")] * 2,
        _file("unsupported", "text", "cobol"),
    ]
    unparsed = Counter({"binary": 6, "minified": 1, "cobol": 3})
    assert file_states(files) == FileStates(partial=2, broken=3, plain=4, unparsed=unparsed)
    assert file_states([]) == FileStates(partial=0, broken=0, plain=0, unparsed=Counter())
