"""Errors that are raised in several places: each makes its text from its fields, so the text is the same everywhere."""

from __future__ import annotations

import pytest

from codebatch.errors import (
    CodebatchError,
    CorruptFile,
    InternalError,
    NotInStore,
    StoreCorrupt,
    UnreadablePath,
    UnsupportedFileSystem,
    make_error,
)

ERRORS_BY_TEXT = {
    "no batch 'x' in this store": NotInStore("batch", "x"),
    "/s/plan.json is missing": CorruptFile("/s/plan.json", "is missing", hint="run it anew"),
    "cannot read a/b: Permission denied": UnreadablePath("a/b", "Permission denied"),
    "the file system of /s cannot make hard links, which the store needs": UnsupportedFileSystem(
        "/s", "make hard links"
    ),
    "the file system of /s cannot lock files, which the store needs: No": UnsupportedFileSystem(
        "/s", "lock files", "No"
    ),
}


@pytest.mark.parametrize("text", ERRORS_BY_TEXT)
def test_error_text_is_made_from_its_fields(text: str) -> None:
    assert str(ERRORS_BY_TEXT[text]) == ERRORS_BY_TEXT[text].message == text


def test_error_hint_describes_the_remedy() -> None:
    hints = [error.hint for error in ERRORS_BY_TEXT.values()]
    local = "put the store on a local disk with --store PATH"
    assert hints == ["see: codebatch batch list", "run it anew", None, local, local]


def test_error_of_another_process_retains_class_text_and_hint() -> None:
    original: CodebatchError = CorruptFile("/s/plan.json", "is missing", hint="run it anew")
    rebuilt = make_error(original.code, original.message, original.hint)
    assert (type(rebuilt), rebuilt.message, rebuilt.hint, rebuilt.exit_status) == (
        StoreCorrupt,
        original.message,
        original.hint,
        4,
    )
    assert isinstance(make_error("what is this", "text", None), InternalError)
