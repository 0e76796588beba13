"""Work files as tests write them, and what is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from codebatch.errors import InvalidConfiguration
from codebatch.work.definition.settings import WorkOptions
from codebatch.work.definition.work_list import WorkList, read_work_files

NOTHING = WorkOptions()


def read(directory: Path, text: str, options: WorkOptions = NOTHING, **environ: str) -> WorkList:
    """A work file of some text, read."""
    (directory / "work.toml").write_text(text, encoding="utf-8")
    return read_work_files([Path("work.toml")], overrides=options, here=directory, environ=environ)


def wrong(directory: Path, text: str, options: WorkOptions = NOTHING) -> list[tuple[str, str | None]]:
    """What is told of one that cannot be used: messages and hints."""
    with pytest.raises(InvalidConfiguration) as raised:
        read(directory, text, options)
    assert [path.name for path in directory.iterdir()] == ["work.toml"]
    lines = raised.value.lines
    if len(lines) == 1:
        return [(lines[0], raised.value.hint)]
    assert raised.value.hint is None
    return [(line, None) for line in lines[1:]]
