"""SPEC.md and related documents: cited sections exist, and tables match the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from starlette.routing import Route, WebSocketRoute

from codebatch.errors import CodebatchError
from codebatch.index.generations import IndexFile
from codebatch.model.documents import Document
from codebatch.model.outcome import Commit, HolderId
from codebatch.model.plan import Plan
from codebatch.model.work.application import ChangesApplication
from codebatch.protocol.launch import VARIABLES_KEPT, worker_environment
from codebatch.serve import socket_stream
from codebatch.serve.app import LiveApp
from codebatch.serve.bodies import BODY_TYPES
from codebatch.serve.guard import _HEADERS
from codebatch.store.batches.batch_directory import BatchFile
from codebatch.store.batches.holders import HolderFile
from codebatch.store.batches.store_directory import create_store, open_store
from codebatch.store.results.compaction import CompactedBatch
from codebatch.store.results.outputs import Manifest
from codebatch.store.results.untrusted import UntrustedFile
from codebatch.store.snapshots.snapshots import SnapshotDocument
from codebatch.system.files.files import RealFiles
from tests.specification import ROOT, SPEC, TASKS, list_sections, read_rows, read_section

SPECIFICATIONS = {"SPEC.md": SPEC, "TASKS.md": TASKS}
DOCUMENTS = (*SPECIFICATIONS.values(), ROOT / "tests" / "oracles" / "README.md")
CITED = re.compile(r'\b(SPEC|TASKS)\.md,?\s+(?:#\s+|//\s+)?((?:"[^"]+"(?:, | and )?)+)')
FOLDERS = ("codebatch", "workers", "tests", "bench", "schemas", ".ci", ".github")
KINDS = {".py", ".md", ".json", ".js", ".toml", ".scm", ".yml", ""}


def _texts() -> Iterator[tuple[Path, str]]:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in KINDS]
    for path in [*paths, *ROOT.glob("*.md"), ROOT / "pyproject.toml"]:
        if path.is_file() and "golden" not in path.parts:
            yield path, path.read_text(encoding="utf-8", errors="replace").replace('\\"', '"')


def test_every_cited_section_exists() -> None:
    known = {name: set(list_sections(path)) for name, path in SPECIFICATIONS.items()}
    cited = [
        (str(path.relative_to(ROOT)), f"{match[1]}.md", section)
        for path, text in _texts()
        for match in CITED.finditer(text)
        for section in re.findall(r'"([^"]+)"', match[2])
    ]
    assert len(cited) > 40
    assert [citation for citation in cited if citation[2] not in known[citation[1]]] == []


def test_worker_environment_is_documented() -> None:
    text = SPECIFICATIONS["TASKS.md"].read_text(encoding="utf-8")
    documented = re.search(r"A worker's environment has .*? No other", text, re.DOTALL)
    assert documented is not None
    environment = worker_environment(dict.fromkeys(VARIABLES_KEPT, ""), HolderId(""), 0)
    assert set(re.findall(r"[A-Z][A-Z0-9_]+", documented[0])) == environment.keys()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_document_lists_its_sections_and_cites_existing_sections(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    sections = list_sections(path)
    contents = re.search(r"^Contents(.*?)\n\n## ", text, re.MULTILINE | re.DOTALL)
    assert contents is not None
    listed = re.split(r"\n\d+\.\s|:\s|,\s+|\s+·\s+", contents[1].strip("\n: "))
    assert [" ".join(name.split()).removeprefix("1. ") for name in listed] == sections
    paragraphs = re.findall(r"^\*\*([^*]+?)[.:]?\*\*", text, re.MULTILINE)
    cited = {" ".join(name.split()) for name in re.findall(r'\("([A-Z][^"]+)"[,)]', text)}
    assert cited <= {*sections, *paragraphs}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_named_in_documents_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"\b((?:codebatch|codebatch_workers|tests|schemas|workers)/[\w/.]+\.(?:py|json|md))\b", text)
    assert [name for name in named if not any((ROOT / below / name).is_file() for below in ("", "workers"))] == []
    tests = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert set(re.findall(r"\((test_\w+\.py)\)", text)) <= tests


DOCUMENT_TYPES: dict[str, type[Document]] = {
    "snapshot.json": SnapshotDocument,
    "batch.json": BatchFile,
    "plan.json": Plan,
    "holder file": HolderFile,
    "commit file": Commit,
    "settled.json": CompactedBatch,
    "manifest.json": Manifest,
    "untrusted.json": UntrustedFile,
    "file in applied/": ChangesApplication,
    "index.json": IndexFile,
}


def test_document_table_matches_formats_and_members(tmp_path: Path) -> None:
    documented = {row[0]: (row[1], re.sub(r" [{(].*?[)}]", "", row[2])) for row in read_rows("Documents")}
    for name, type_ in DOCUMENT_TYPES.items():
        fields = msgspec.structs.fields(type_)
        assert documented[name] == (str(fields[0].default), ", ".join(field.name for field in fields)), name
    create_store(RealFiles(), tmp_path / "store")
    store = msgspec.json.decode((tmp_path / "store" / "store.json").read_bytes())
    assert documented["store.json"] == (str(store["format"]), ", ".join([*store][:-1]))
    assert {"document", *DOCUMENT_TYPES, "line of a journal", "line of events", "store.json"} == documented.keys()


def _rows_of_error_classes() -> list[list[str]]:
    """Return code, status and meaning of every error class with its own code, sorted by status."""
    kinds: list[type[CodebatchError]] = list(CodebatchError.__subclasses__())
    for kind in kinds:
        kinds += kind.__subclasses__()
    own = [kind for kind in kinds if "code" in vars(kind) and kind.__module__ == CodebatchError.__module__]
    return [
        [f"`{kind.code}`", str(kind.exit_status), " ".join((kind.__doc__ or "").split())]
        for kind in sorted(own, key=lambda kind: kind.exit_status)
    ]


def test_error_table_matches_the_classes() -> None:
    assert [row for row in read_rows("Exit statuses") if row[0].startswith("`")] == _rows_of_error_classes()
    statuses = {status for row in read_rows("Exit statuses") if len(row) == 2 for status in row[0].split(", ")}
    assert {row[1] for row in _rows_of_error_classes()} < statuses


def test_live_page_section_names_every_schema_header_and_close_code() -> None:
    text = " ".join(read_section("Live page").split())
    assert {*re.findall(r"schemas/(live-\w+)\.json", text)} == BODY_TYPES.keys()
    assert [f"{name}: {value}" for name, value in _HEADERS.items() if f"`{name}: {value}`" not in text] == []
    codes = {f"{value}" for value in vars(socket_stream).values() if isinstance(value, int) and 1000 < value < 1100}
    assert len(codes) == 4
    assert codes < {*re.findall(r"\b10\d\d\b", text.partition("Close codes: ")[2])}


def test_live_page_section_has_a_row_for_every_route(tmp_path: Path) -> None:
    """Except for the icon, which is empty, and for reports, whose paths are in an answer."""
    documented: set[tuple[str, str]] = set()
    for cell, _ in read_rows("Live page")[1:]:
        for path in re.findall(r"`([^`?]+)", cell):
            if path.startswith(("/", "…")):
                full = path.replace("…", "/api/v1/batches/ID").replace("ID", "{batch}").replace("NAME", "{name}")
                documented.add((cell.split()[0], full))
    create_store(RealFiles(), tmp_path / "store")
    app = LiveApp(open_store(RealFiles(), tmp_path / "store"), token="", port=1, allows_control=False)
    served = {("WebSocket", route.path) for route in app.routes if isinstance(route, WebSocketRoute)}
    for route in app.routes:
        served |= {(method, route.path) for method in (route.methods or ())} if isinstance(route, Route) else set()
    left_out = {"/favicon.ico", "/report/{nonce}"}
    assert {one for one in served if one[0] != "HEAD" and one[1] not in left_out} == documented


if __name__ == "__main__":
    print("| code | status | meaning |\n|---|---|---|")
    print("\n".join(f"| {' | '.join(row)} |" for row in _rows_of_error_classes()))
