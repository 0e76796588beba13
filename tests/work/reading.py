"""Task lists as tests write them, and the errors that reading them reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.errors import InvalidConfiguration
from codebatch.work.definition.settings import WorkOptions
from codebatch.work.definition.work_list import WorkList, read_work_files

NOTHING = WorkOptions()


def read(directory: Path, text: str, options: WorkOptions = NOTHING, **environ: str) -> WorkList:
    """Write a task list with some text and read it."""
    (directory / "work.toml").write_text(text, encoding="utf-8")
    return read_work_files([Path("work.toml")], overrides=options, here=directory, environ=environ)


def wrong(directory: Path, text: str, options: WorkOptions = NOTHING) -> list[tuple[str, str | None]]:
    """Return the messages and hints about a task list that cannot be used."""
    with pytest.raises(InvalidConfiguration) as raised:
        read(directory, text, options)
    assert [path.name for path in directory.iterdir()] == ["work.toml"]
    lines = raised.value.lines
    if len(lines) == 1:
        return [(lines[0], raised.value.hint)]
    assert raised.value.hint is None
    return [(line, None) for line in lines[1:]]
