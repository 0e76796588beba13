"""What is installed, as read from `*.dist-info`, against importlib.metadata."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from codebatch.plugins import distributions
from codebatch.plugins.distributions import EntryPoint, Installed

GROUP = "codebatch.tasks"


def _said(group: str) -> tuple[list[tuple[str, str]], dict[str, str | None]]:
    found = Installed()
    names = {distribution.metadata["Name"] for distribution in metadata.distributions()}
    declared = sorted((each.name, each.value) for each in found.entry_points(group))
    return declared, {name: found.version(name) for name in names if name}


def _expected(group: str) -> tuple[list[tuple[str, str]], dict[str, str | None]]:
    names = {distribution.metadata["Name"] for distribution in metadata.distributions()}
    declared = sorted((each.name, each.value) for each in metadata.entry_points(group=group))
    return declared, {name: metadata.version(name) for name in names if name}


@pytest.mark.parametrize("group", [GROUP, "console_scripts", "pytest11", "nobody.declares.this"])
def test_what_is_installed_here_is_what_importlib_says(group: str) -> None:
    assert _said(group) == _expected(group)


def _distribution(
    directory: Path, name: str, version: str | None, *, tasks: Sequence[str] = (), ending: str = ".dist-info"
) -> Path:
    place = directory / f"{name}-{version or 1}{ending}"
    place.mkdir(parents=True)
    headers = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        *([f"Version: {version}"] if version else []),
        "",
        "Version: no",
    ]
    (place / ("METADATA" if ending == ".dist-info" else "PKG-INFO")).write_text("\n".join(headers))
    (place / "entry_points.txt").write_text("\n".join(["[other]", "x = y", "", f"[{GROUP}]", "# none", "", *tasks]))
    return place


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two directories, alone on Python's path."""
    found = [tmp_path / "first", tmp_path / "second"]
    for place in found:
        place.mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "nowhere"), *map(str, found)])
    return found


def test_the_first_of_a_name_counts_however_it_is_written(places: list[Path]) -> None:
    _distribution(places[1], "Some.Thing", "1.0", tasks=["a = m:A", "b=m.n : B [extra]"])
    assert Installed().version("some-thing") == "1.0"
    _distribution(places[0], "some_thing", "2.0", tasks=["a = m:C"])
    assert [Installed().version(name) for name in ("some-thing", "SOME_thing", "some")] == ["2.0", "2.0", None]
    assert _said(GROUP) == _expected(GROUP) == ([("a", "m:C")], {"Some.Thing": "2.0", "some_thing": "2.0"})


@pytest.mark.parametrize("ending", [".egg-info", ".dist-info"])
def test_of_another_kind_importlib_is_asked(places: list[Path], ending: str) -> None:
    _distribution(places[0], "other", "3.0", tasks=["a = m:A"], ending=ending)
    _distribution(places[1], "plain", "1.0", tasks=["b = m:B"])
    assert _said(GROUP) == _expected(GROUP)
    assert Installed().version("other") == "3.0"


def test_so_it_is_where_a_finder_or_an_archive_is_on_the_path(
    places: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _distribution(places[0], "plain", "1.0")
    archive = places[0] / "more.zip"
    archive.write_bytes(b"")
    assert distributions._is_plain()
    with monkeypatch.context() as context:
        context.setattr(sys, "path", [*sys.path, str(archive)])
        assert not distributions._is_plain()
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, PathFinder])
    assert not distributions._is_plain()
    assert Installed().version("plain") == "1.0"


def test_what_is_no_metadata_has_no_version(places: list[Path]) -> None:
    _distribution(places[0], "without", None)
    assert Installed().version("without") == metadata.distribution("without").metadata["Version"]


def test_an_entry_point_loads_what_it_names() -> None:
    assert EntryPoint("x", "pathlib : Path [a]").load() is Path
    assert EntryPoint("x", "pathlib:Path.home").load() == Path.home
    assert EntryPoint("x", "pathlib").load() is sys.modules["pathlib"]
    for wrong in ("", ":x", "[y]"):
        with pytest.raises(ValueError, match="is not a module"):
            EntryPoint("x", wrong).load()
    with pytest.raises(ImportError):
        EntryPoint("x", "no_such_module_at_all:x").load()
