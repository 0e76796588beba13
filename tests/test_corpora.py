"""A corpus that cannot be downloaded fails the test and is named, because a test on real code must not be skipped."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import corpora


@pytest.mark.parametrize(
    ("tool", "fetch"),
    [
        ("pip", lambda: corpora.sdist("codebatch-no-such-distribution", "1")),
        ("npm", lambda: corpora.npm("@codebatch-no-such-scope/package", "1.0.0")),
        ("apt-get", lambda: corpora.debian("codebatch-no-such-package")),
    ],
)
@pytest.mark.corpus
def test_missing_corpus_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, fetch: Callable[[], Path]
) -> None:
    if tool != "pip" and shutil.which(tool) is None:
        pytest.skip(f"this needs {tool}")
    monkeypatch.setenv("CODEBATCH_TEST_CORPORA", str(tmp_path))
    with pytest.raises(corpora.CorpusNotHad, match="codebatch-no-such-"):
        fetch()


def test_available_corpus_is_returned_during_another_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEBATCH_TEST_CORPORA", str(tmp_path))
    monkeypatch.setattr("tests.support.corpora.fcntl.flock", lambda *_: pytest.fail("the call waits for the lock"))
    (tmp_path / "a-1").mkdir()
    assert corpora.sdist("a", "1") == tmp_path / "a-1"
