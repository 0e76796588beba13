"""The commands `init` and `config`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from codebatch.cli.answers.schemas import InitAnswer, SettingRow
from codebatch.cli.framework.commands import command
from codebatch.cli.framework.context import CommandContext, SourcePath, with_common_options
from codebatch.cli.framework.groups import CommandGroup, group_with_common_options
from codebatch.errors import InvalidInput
from codebatch.model.task import JsonValue
from codebatch.operations.project.stores import StoreLocator
from codebatch.store import layout
from codebatch.store.batches.store_directory import create_store, holds_only_a_store
from codebatch.system.files.files import RealFiles


@command()
@click.argument("path", required=False, type=SourcePath())
@with_common_options
def init(context: CommandContext, path: Path | None) -> None:
    """Create a store.

    If PATH is the directory of a project, the store is created at PATH/.codebatch, otherwise at PATH.

    Without PATH, the store is created at the location in --store or CODEBATCH_STORE. Without these, it is created as
    .codebatch at the top of the git work tree, or in the current directory.
    """
    place = context.store_place
    if path is not None and context.store_path is not None:
        raise InvalidInput("two stores were given", hint="give one store, as PATH or with --store")
    is_project = path is not None and _is_project_directory(path)
    if path is not None and is_project:
        path = path / layout.STORE_DIRECTORY
    named = path or place.named
    chosen = named or place.new_store_path(is_asked=True)
    is_named = named is not None and not is_project
    place_note = place.new_store_note if named is None else ""
    store, is_new = create_store(context.files or RealFiles(), chosen, is_named=is_named)
    context.print(
        InitAnswer(store=str(store.root), id=store.id, created=is_new),
        context.unless_quiet([f"{'initialized' if is_new else 'already a store:'} {store.root}"]),
    )
    if is_new and place_note:
        context.note(place_note)
    if is_new:
        is_found = named is None or StoreLocator().store_root() == store.root
        context.note("next: codebatch run ." + ("" if is_found else f" --store {shlex.quote(str(chosen))}"))


def _is_project_directory(path: Path) -> bool:
    """Return whether the store for a path is created below the path instead of at it.

    This is so if the path is the current directory, or a directory that contains files but no store.
    """
    is_store = (path / layout.STORE_FILE).exists() and (path / layout.OBJECTS).is_dir()
    if is_store or not path.is_dir():
        return False
    return path.samefile(Path.cwd()) or not holds_only_a_store(path)


@click.group(cls=CommandGroup)
@group_with_common_options
def config() -> None:
    """Show the effective configuration."""


@config.command()
@with_common_options
def show(context: CommandContext) -> None:
    """Show every setting, its value and its origin."""
    from codebatch.coordinator.processes.limits import default_memory_bytes
    from codebatch.operations.project.configuration import load_configuration

    loaded = load_configuration(Path.cwd())
    if loaded.unread_note:
        context.note(loaded.unread_note)
    rows = loaded.setting_rows(default_memory_bytes(loaded.jobs))
    context.print(
        {name: SettingRow(value=value, origin=origin) for name, value, origin in rows},
        [f"{line}  # {origin}" for name, value, origin in rows for line in _toml_lines(name, value)],
        name="",
    )


def _toml_lines(name: str, value: JsonValue) -> Iterator[str]:
    """Yield the lines of a setting in the syntax of codebatch.toml."""
    if isinstance(value, dict) and value:
        for key, below in value.items():
            yield from _toml_lines(f"{name}.{key}", below)
    else:
        yield f"{name} = {msgspec.json.encode(value).decode()}"
