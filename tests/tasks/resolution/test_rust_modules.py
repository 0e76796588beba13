"""Tests of files of Rust modules, placed by inline modules and `#[path]`. rustc's dep-info confirms the cases."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from codebatch.model.record import Edge
from codebatch_workers.tasks.dependencies import DependenciesTask
from tests.support.source_files import created, source
from tests.tasks.states import State, whole

_MANIFEST = {"Cargo.toml": "[package]\nname = 'p'\nversion = '0.1.0'\nedition = '2021'\n"}


def edges(files: Mapping[str, str]) -> set[str]:
    """Return source and target of each import that resolves within the tree."""
    every = [source(path, text) for path, text in {**_MANIFEST, **files}.items()]
    state = State(every, {task: created(task, Path()).run_file for task in ("parse", "symbols")})
    all_records = (record for records in whole(state, DependenciesTask).values() for record in records)
    return {
        f"{edge.path} -> {edge.target}"
        for edge in all_records
        if isinstance(edge, Edge) and edge.resolution != "external"
    }


@pytest.mark.parametrize(
    ("declaring", "content", "declared"),
    [
        ("src/lib.rs", "mod b;", "src/b.rs"),
        ("src/lib.rs", "mod b;", "src/b/mod.rs"),
        ("src/lib.rs", "mod a { pub mod b; }", "src/a/b.rs"),
        ("src/main.rs", "mod a { pub mod b; }", "src/a/b.rs"),
        ("src/lib.rs", "mod a { mod c { pub mod b; } }", "src/a/c/b/mod.rs"),
        ("src/lib.rs", "mod r#a { pub mod r#b; }", "src/a/b.rs"),
        ("src/lib.rs", '#[path = "q.rs"] mod b;', "src/q.rs"),
        ("src/lib.rs", '#[path = "deep/q.inc"] mod b;', "src/deep/q.inc"),
        ("src/lib.rs", '#[path = r"q.rs"] mod b;', "src/q.rs"),
        ("src/lib.rs", '#[path = r#"q.rs"#] mod b;', "src/q.rs"),
        ("src/lib.rs", '#[path = "q.rs"] // why\n/* so */ #[allow(x)]\npub(crate) mod b;', "src/q.rs"),
        ("src/lib.rs", '#[cfg_attr(unix, path = "q.rs")] mod b;', "src/q.rs"),
        ("src/lib.rs", '#[cfg_attr(all(unix, target_os = "linux"), path = "q.rs")] mod b;', "src/q.rs"),
        ("src/lib.rs", 'mod a { #[path = "q.rs"] mod b; }', "src/a/q.rs"),
        ("src/lib.rs", '#[path = "x"] mod a { mod b; }', "src/x/b.rs"),
        ("src/lib.rs", '#[path = "x"] mod a { #[path = "q.rs"] mod b; }', "src/x/q.rs"),
        ("src/lib.rs", 'mod a { #[path = "x"] mod c { mod b; } }', "src/a/x/b.rs"),
        ("src/lib.rs", 'include!("gen.rs");', "src/gen.rs"),
    ],
)
def test_declared_rust_module_is_found(declaring: str, content: str, declared: str) -> None:
    assert edges({declaring: content, declared: "pub struct S;"}) == {f"{declaring} -> {declared}"}


@pytest.mark.parametrize(
    ("content", "declared"),
    [
        ("mod b;", "src/m/b.rs"),
        ("mod a { mod b; }", "src/m/a/b.rs"),
        # The path attribute of a module that is not in an inline module is relative to the file's directory.
        ('#[path = "q.rs"] mod b;', "src/q.rs"),
        ('mod a { #[path = "q.rs"] mod b; }', "src/m/a/q.rs"),
        ('#[path = "x"] mod a { mod b; }', "src/x/b.rs"),
    ],
)
def test_module_file_declares_modules_in_a_directory_of_its_name(content: str, declared: str) -> None:
    files = {"src/lib.rs": "mod m;", "src/m.rs": content, declared: ""}
    assert edges(files) == {"src/lib.rs -> src/m.rs", f"src/m.rs -> {declared}"}


def test_module_named_by_a_path_attribute_acts_as_mod_rs() -> None:
    files = {
        "src/lib.rs": '#[path = "foo/bar.rs"] mod b;\nuse b::baz::deep::S;',
        "src/foo/bar.rs": "pub mod baz;\nuse super::X;\nuse crate::b::baz;",
        "src/foo/baz.rs": "pub mod deep;\nuse super::Y;",
        "src/foo/baz/deep.rs": "use super::super::Z;",
    }
    assert edges(files) == {
        "src/lib.rs -> src/foo/bar.rs", "src/lib.rs -> src/foo/baz/deep.rs",
        "src/foo/bar.rs -> src/foo/baz.rs", "src/foo/bar.rs -> src/lib.rs",
        "src/foo/baz.rs -> src/foo/baz/deep.rs", "src/foo/baz.rs -> src/foo/bar.rs",
        "src/foo/baz/deep.rs -> src/foo/bar.rs",
    }  # fmt: skip


def test_module_within_an_inline_module_resolves_super_to_its_file() -> None:
    files = {
        "src/lib.rs": "mod a { pub mod b; pub struct S; }\npub use self::a::b::T;\nuse crate::a::S;",
        "src/a/b.rs": "use super::S;\nuse crate::a::b::T;",
    }
    assert edges(files) == {
        "src/lib.rs -> src/a/b.rs", "src/lib.rs -> src/lib.rs", "src/a/b.rs -> src/lib.rs", "src/a/b.rs -> src/a/b.rs"
    }  # fmt: skip


def test_conditional_path_attributes_resolve_to_every_file() -> None:
    content = '#[cfg_attr(unix, path = "unix.rs")]\n#[cfg_attr(windows, path = "windows.rs")]\nmod imp;\nuse imp::f;'
    resolved = edges({"src/lib.rs": content, "src/unix.rs": "", "src/windows.rs": ""})
    assert resolved >= {"src/lib.rs -> src/unix.rs", "src/lib.rs -> src/windows.rs"}


def test_module_without_a_file_does_not_resolve_to_its_declaring_file() -> None:
    assert edges({"src/lib.rs": 'mod gone;\nmod a { mod gone; }\n#[path = "lib.rs"] mod itself;'}) == set()
