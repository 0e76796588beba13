"""The files of the live page: their size, what they load, and that their parts fit together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import codebatch
from codebatch.model.work import event as events
from codebatch.model.work.event import event_name
from codebatch.scheduling.lifecycle import BatchState, CommandState

PACKAGE = Path(codebatch.__file__).parent
STATIC = PACKAGE / "serve" / "static"
FILES = {path.name: path.read_text("utf-8") for path in sorted(STATIC.iterdir())}
MODULES = {name: text for name, text in FILES.items() if name.endswith(".js")}
BYTES_MAX = 81_000

# The namespace of SVG is a name, which no browser loads. The other address is the server of the page.
ADDRESSES = {"http://www.w3.org/2000/svg", "ws://${location.host}/ws/batch/${encodeURIComponent(id"}
MARKUP_FROM_TEXT = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|srcdoc|createContextualFragment"
)
CODE_FROM_TEXT = re.compile(r"\beval\b|\bFunction\(|\bimport\(|javascript:|set(?:Timeout|Interval)\(\s*[\"'`]")
IMPORT = re.compile(r'^import \{ ([\w, ]+) \} from "\./([\w.]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?:const|function|class) (\w+)", re.MULTILINE)


def _variables(css: str) -> dict[str, str]:
    """Return the custom properties of a rule or a style sheet."""
    return dict(re.findall(r"(--[\w-]+): ([^;]+);", css))


def _keys(text: str, constant: str) -> set[str]:
    """Return the keys of an object literal that is a constant of a module."""
    match = re.search(rf"const {constant} = \{{\n(.*?)\n\}};", text, re.DOTALL)
    assert match is not None
    return set(re.findall(r"\b([A-Z_]+): [\[(]", match[1]))


def test_files_are_small() -> None:
    assert sum(path.stat().st_size for path in STATIC.iterdir()) <= BYTES_MAX


@pytest.mark.parametrize("pattern", [MARKUP_FROM_TEXT, CODE_FROM_TEXT], ids=["markup", "code"])
def test_no_text_becomes_markup_or_code(pattern: re.Pattern[str]) -> None:
    assert {name: match[0] for name, text in FILES.items() if (match := pattern.search(text))} == {}


def test_nothing_is_loaded_from_another_origin() -> None:
    found = {match for text in FILES.values() for match in re.findall(r"\w+://[^\s\"'`)]*", text)}
    assert found == ADDRESSES
    assert not any("@import" in text or "url(" in text for text in FILES.values())


def test_markup_has_no_inline_script_or_style() -> None:
    page = FILES["index.html"]
    assert re.findall(r"<script[^>]*>[^<]", page) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=", page) == []
    assert re.findall(r'(?:src|href)="([^"]*)"', page) == ["/static/style.css", "/static/app.js"]
    assert not any('.setAttribute("style"' in text for text in MODULES.values())


def test_every_import_resolves_and_is_used() -> None:
    for name, text in MODULES.items():
        assert text.count("\nimport ") == len(IMPORT.findall(text)), name
        for names, module in IMPORT.findall(text):
            exported = EXPORT.findall(MODULES[module])
            for imported in names.split(", "):
                assert imported in exported, (name, module, imported)
                assert len(re.findall(rf"\b{imported}\b", text)) > 1, (name, imported)


def test_every_module_is_loaded() -> None:
    loaded, waiting = set(), ["app.js"]
    while waiting:
        name = waiting.pop()
        loaded.add(name)
        waiting += [module for _, module in IMPORT.findall(MODULES[name]) if module not in loaded]
    assert loaded == set(MODULES)


def test_every_element_that_a_module_finds_exists() -> None:
    ids = set(re.findall(r'\bid="([\w-]+)"', FILES["index.html"]))
    found = {id_ for text in MODULES.values() for id_ in re.findall(r'\bfind\("([\w-]+)"\)', text)}
    assert found
    assert found <= ids


def test_every_button_has_the_function_of_a_key() -> None:
    keys = set(re.findall(r'(?:"(\S+?)"|\b(\w+)): \["[A-Z]', MODULES["app.js"]))
    shortcuts = set(re.findall(r'aria-keyshortcuts="(.)"', FILES["index.html"]))
    assert shortcuts <= {quoted or plain for quoted, plain in keys}
    assert shortcuts >= {"/", "b", "g", "r", "?"}


def test_every_colour_is_defined() -> None:
    css = FILES["style.css"]
    defined = _variables(css)
    used = set(re.findall(r"var\((--[\w-]+)\)", css))
    drawn = set(re.findall(r'fill\("(\w+)"|[A-Z]: "(\w+)"', MODULES["stream.js"]))
    assert len(drawn) > 5
    assert used | {f"--{direct or of_state}" for direct, of_state in drawn} <= set(defined)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_palette_is_that_of_the_report(scheme: str) -> None:
    separator = {"report": "@media screen", "live": "@media (prefers-color-scheme: dark)"}
    report = (PACKAGE / "report" / "style.css").read_text("utf-8").partition(separator["report"])
    live = FILES["style.css"].partition(separator["live"])
    part = 0 if scheme == "light" else 2
    report_colors, live_colors = _variables(report[part]), _variables(live[part])
    shared = set(report_colors) & set(live_colors)
    assert {"--page", "--ink", "--line", "--accent", "--error"} <= shared
    assert {name: live_colors[name] for name in shared} == {name: report_colors[name] for name in shared}


def test_every_state_has_a_glyph_and_a_word() -> None:
    states = {state.value for state in (*BatchState, *CommandState)} | {"DAMAGED"}
    assert _keys(MODULES["text.js"], "STATES") == states


def test_every_event_of_a_task_changes_its_row() -> None:
    names = {event_name(event) for event in events.AnyEvent.__args__ if issubclass(event, events.TaskEvent)}
    assert _keys(MODULES["state.js"], "TASK_CHANGES") == {name.removeprefix("BATCH_TASK_") for name in names}
