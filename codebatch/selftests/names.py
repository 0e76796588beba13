"""The self-test `no-foreign-files`.

Every name in the store must be in SPEC.md "Store layout" and have the right file type.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, Union

from codebatch.model.shard import SHARD_ID_PATTERN
from codebatch.selftests.subject import GateFailure, SelftestSubject
from codebatch.store import layout
from codebatch.system.files.os_errors import wrap_read_errors

ExpectedFileType = Literal["file", "link", "anything"]
"""An expected file type.

A directory of type `anything` can be removed at any time, so its content is not checked.
"""

ExpectedNames = Mapping[str, Union[ExpectedFileType, "ExpectedNames"]]
"""The allowed names in a directory. A key is a regular expression that must match a whole name.

The value is the expected file type or, for a directory, the names that it may contain.
"""

_DIGEST_NAME = "[0-9a-f]{64}"
_HOLDER_NAME = "[0-9a-f]{32}"
_BATCH_NAME = r"batch-\d{8}-\d{6}-\d{6}-[0-9a-f]{6}"
_SNAPSHOT_NAME = "snap-[0-9a-f]{16}"
_SHARD_NAME = f"(?:{SHARD_ID_PATTERN})"
_TASK_NAME = "[a-z][a-z0-9_-]{0,63}"
# No process reads temporary files. If a process dies and leaves some behind, the next writer removes them.
_TEMPORARY_NAME = re.compile(r"\..*\.tmp\Z", re.DOTALL)

_BATCH_NAMES: ExpectedNames = {
    _BATCH_NAME: {
        re.escape(layout.BATCH_FILE): "file",
        re.escape(layout.PLAN_FILE): "file",
        re.escape(layout.SETTLED_FILE): "file",
        layout.HOLDERS: {rf"{_HOLDER_NAME}(\.cell)?": "file"},
        layout.JOURNAL: {rf"{_HOLDER_NAME}\.jsonl": "file"},
        re.escape(layout.WORK_FILE): "file",
        layout.QUESTIONS: {r"[a-z0-9-]+\.\d{1,9}\.r\d{1,9}\.\d{1,9}\.\d{1,9}\.json": "file"},
        layout.REQUESTS: {r"\d{6,9}\.json": "file"},
        layout.LOGS: {rf"{_SHARD_NAME}\.\d{{1,9}}\.r[1-9]\d{{0,8}}\.[1-9]\d{{0,8}}\.log": "file"},
        layout.LEASES: {rf"{_SHARD_NAME}\.\d{{1,9}}\.\d{{1,9}}|coordinator\.[1-9]\d{{0,8}}": "file"},
        layout.RESULTS: {rf"{_HOLDER_NAME}\.seg|{_DIGEST_NAME}\.shard": "file"},
        layout.OUTCOMES: {rf"{_SHARD_NAME}\.\d{{1,9}}\.{_TASK_NAME}\.r[1-9]\d{{0,8}}": "file"},
        layout.OUTPUTS: {
            _DIGEST_NAME: {
                re.escape(layout.MANIFEST_FILE): "file",
                _TASK_NAME: {rf"\d{{6,}}-{_SHARD_NAME}\.jsonl\.zst": "file"},
            }
        },
        layout.SCRATCH: {_HOLDER_NAME: "anything"},
    }
}
_INDEX_NAMES: ExpectedNames = {
    layout.TERMS: {_DIGEST_NAME: "file"},
    _BATCH_NAME: {r"[1-9]\d{0,8}": {rf"{re.escape(layout.INDEX_FILE)}|{layout.INDEX_PART_PATTERN.pattern}": "file"}},
}
_CACHE_NAMES = (
    f"{re.escape(layout.STAT_STAMP)}|{layout.OBJECTS_COLLECTED}"
    f"|{layout.STAT_CACHE_PATTERN.pattern}|{layout.RESULT_CACHE_PATTERN.pattern}"
)
_STORE_NAMES: ExpectedNames = {
    re.escape(layout.STORE_FILE): "file",
    re.escape(layout.UNTRUSTED_FILE): "file",
    layout.CREATED_HERE_FILE: "link",
    r"\.gitignore|CACHEDIR\.TAG": "file",
    layout.OBJECTS: {rf"{_DIGEST_NAME}\.(pack|idx|bad)|{_HOLDER_NAME}\.part": "file"},
    layout.SNAPSHOTS: {
        _SNAPSHOT_NAME: {f"{re.escape(layout.SNAPSHOT_FILE)}|{re.escape(layout.SNAPSHOT_INDEX)}": "file"},
    },
    layout.BATCHES: _BATCH_NAMES,
    layout.INDEXES: _INDEX_NAMES,
    layout.CACHE: {_CACHE_NAMES: "file"},
    layout.LOCKS: {f"{layout.STORE_LOCK}|{layout.BATCHES_LOCK}|{layout.UNTRUSTED_LOCK}": "file"},
    layout.PINS: {rf"{_SNAPSHOT_NAME}|{_BATCH_NAME}(@[A-Za-z0-9][A-Za-z0-9._-]{{0,63}})?": "file"},
}


def check_file_names(subject: SelftestSubject, checked: Counter[str]) -> Iterator[GateFailure]:
    """Check that every name in the store is part of its layout. Links are not followed."""
    return _check_directory(subject.store.root, "", _STORE_NAMES, checked)


def _check_directory(root: Path, place: str, names: ExpectedNames, checked: Counter[str]) -> Iterator[GateFailure]:
    try:
        with wrap_read_errors(root / place), os.scandir(root / place) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
    except FileNotFoundError:  # The directory was removed after its name was listed.
        return
    for entry in entries:
        checked["names"] += 1
        if _TEMPORARY_NAME.match(entry.name):
            continue
        where = f"{place}{entry.name}"
        allowed = next((names[pattern] for pattern in names if re.fullmatch(pattern, entry.name, re.ASCII)), None)
        if allowed is None:
            suggestion = f"move it away: {root / where}"
            yield GateFailure(message="not part of the store layout", location=where, suggestion=suggestion)
            continue
        kind = _file_type(entry)
        expected = allowed if allowed in ("file", "link") else "directory"
        if kind != expected:
            yield GateFailure(message=f"not a {expected}", location=where, expected=expected, actual=kind)
        elif isinstance(allowed, Mapping):
            yield from _check_directory(root, f"{where}/", allowed, checked)


def _file_type(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if entry.is_file(follow_symlinks=False) else "special file"
