"""Tests of masking: secret values never pass, wherever the chunks of the output end, and all other bytes stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.model.work.command import Command, CommandId, EnvFile, EnvLayer
from codebatch.system.files.files import RealFiles
from codebatch_workers.commands.context import make_process_start
from codebatch_workers.commands.log import AttemptLogWriter
from codebatch_workers.commands.masking import MASK, SecretMasker
from tests.cli.work.test_work import line
from tests.support.command_line import CommandLine, write
from tests.support.disk import Disk
from tests.work.test_environment import MATERIALS

__all__ = ["line"]

VALUES = st.lists(st.text("abc", min_size=4, max_size=8), min_size=1, max_size=3)


def make_masker(*values: str) -> SecretMasker:
    masker = SecretMasker()
    masker.add_variables({f"{number}_TOKEN": value for number, value in enumerate(values)})
    return masker


def mask_naively(data: bytes, values: list[str]) -> bytes:
    """Return masked data: mark each byte of each occurrence, then replace each run of overlapping occurrences."""
    spans = sorted(
        (start, start + len(value))
        for value in {each.encode() for each in values}
        for start in range(len(data))
        if data.startswith(value, start)
    )
    masked, end = bytearray(), 0
    for start, stop in spans:
        if start >= end:
            masked += data[end:start] + MASK
        end = max(end, stop)
    return bytes(masked + data[end:])


@given(VALUES, st.lists(st.text("abcd", max_size=6).map(str.encode), max_size=10))
def test_mask_does_not_depend_on_chunks(values: list[str], chunks: list[bytes]) -> None:
    masker = make_masker(*values)
    masked = b"".join(map(masker.feed, chunks)) + masker.flush()
    assert masked == mask_naively(b"".join(chunks), values)


@pytest.mark.parametrize(
    ("values", "data", "masked"),
    [
        (["abab"], "xababab", "x***"),  # Occurrences of one value overlap.
        (["abcd", "cdef"], "xabcdefx", "x***x"),
        (["abcd"], "abcdabcd", "******"),
        (["abcdefgh", "bcde"], "abcdef", "a***f"),  # One value lies in the beginning of another one.
        (["abcdefgh", "bcde"], "abcdefgh", "***"),
    ],
)
def test_overlapping_values_get_one_mask_in_chunks_of_any_size(values: list[str], data: str, masked: str) -> None:
    for size in (1, 3, len(data)):
        masker = make_masker(*values)
        chunks = (data[start : start + size].encode() for start in range(0, len(data), size))
        assert b"".join(map(masker.feed, chunks)) + masker.flush() == masked.encode()


def test_end_of_the_output_that_looks_like_a_value_is_kept() -> None:
    files, root = RealFiles(Disk().calls()), Path("/s")
    files.make_directory(root)
    log = AttemptLogWriter(files, root / "log", root, 1000, masker=make_masker("secret"))
    log.report("secret")
    log.write(b"a sec")
    assert (log.output_end, log.notes) == (b"codebatch: ***\na sec", ("***",))
    log.write(b"b secre")
    log.close()
    assert files.read(root / "log") == b"codebatch: ***\na secb secre"


def test_values_that_reach_a_clean_command_under_another_name_are_masked(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A_KEY=of-file\n")
    masker = SecretMasker()
    layer = EnvLayer(files=(EnvFile(path=".env"),))
    env = {"URL": "${A_KEY}${B_KEY}", "C_KEY": "of-command", "A_KEY": "overridden"}
    command = Command(id=CommandId("a"), run=("true",), env=env, env_under=(layer,), clean_env=True)
    make_process_start(
        command, command.run, MATERIALS, batch="b", round_=1, root=tmp_path,
        base_environment={"B_KEY": "of-caller"}, mark="", tree_variables={}, masker=masker,
    )  # fmt: skip
    assert masker.mask_text("of-file of-caller of-command overridden other") == "*** *** *** *** other"


@pytest.mark.parametrize("end", range(1, 40))
def test_value_is_masked_across_every_border(end: int) -> None:
    masker = make_masker("hunter2-hunter2-hunter")
    data = b"\0\xffhunter2-hunter2-hunter\r\nhunter2-\xfe"
    assert masker.feed(data[:end]) + masker.feed(data[end:]) + masker.flush() == b"\0\xff***\r\nhunter2-\xfe"


def test_only_the_beginning_of_a_value_is_held_back() -> None:
    masker = make_masker("secret")
    assert masker.feed(b"password: ") == b"password: "
    assert masker.feed(b"sec") == b""
    assert masker.feed(b"ond") == b"second"


def test_each_line_of_a_key_is_masked() -> None:
    masker = make_masker("-----BEGIN-----\r\nMIIEvQ\n=\n")
    assert masker.feed(b"> MIIEvQ\r\n> =\r\n-----BEGIN-----\n") == b"> ***\r\n> =\r\n***\n"


def test_variables_are_secret_by_name_or_mark() -> None:
    masker = SecretMasker(("URL",))
    names = ("API_TOKEN", "api_key", "DB_PASSWORD", "SECRET", "URL", "STAGE", "TOKENS")
    masker.add_variables({name: f"<{name}>" for name in names})
    assert masker.mask_text(" ".join(f"<{name}>" for name in names)) == "*** *** *** *** *** <STAGE> <TOKENS>"


def test_short_values_are_reported_once() -> None:
    masker = SecretMasker()
    masker.add_variables({"A_KEY": "abc", "B_KEY": "", "C_KEY": "abcd"})
    assert (masker.take_short_names(), masker.take_short_names()) == (["A_KEY"], [])
    assert masker.mask_text("abc abcd") == "abc ***"


@pytest.mark.parametrize("size", range(1, 30))
def test_log_has_no_part_of_a_value_beside_its_cuts(size: int) -> None:
    files, root = RealFiles(Disk().calls()), Path("/s")
    files.make_directory(root)
    files.make_directory(root / "scratch")
    log = AttemptLogWriter(files, root / "log", root / "scratch", 64, masker=make_masker("tr0ub4dor&3"), end_bytes=32)
    data = b"x tr0ub4dor&3 y\n" * 20
    for start in range(0, len(data), size):
        log.write(data[start : start + size])
    kept = log.output_end
    log.close()
    for text in (kept, files.read(root / "log")):
        assert b"*" in text
        assert not any(part in text for part in (b"tr0", b"ub4", b"or&"))


def test_values_are_masked_in_everything_that_a_batch_stores(line: CommandLine) -> None:
    script = (
        'printf \'s3cr\'; sleep 0.3; echo "3t-word of $X_TOKEN"; printf "use $X_TOKEN?" > $CODEBATCH_QUESTION; '
        "echo $URL; exit 3"
    )
    write(line.directory / ".env", "X_TOKEN=s3cr3t-word\nURL=s3cr3t-place\nY_KEY=abc\n")
    notify = "{ command = 'cat >> told', events = ['BATCH_TASK_BLOCKED', 'BATCH_TASK_FAILED', 'BATCH_PARTIAL'] }"
    settings = f"env_file = '.env'\nsecret = ['URL']\nnotify = {notify}\n"
    tasks = f"[tasks.ask]\nrun = {json.dumps(script)}\n[tasks.fail]\nrun = 'echo $X_TOKEN; exit 1'\n"
    write(line.directory / "work.toml", settings + tasks)
    line("work", "run", status=3)
    files = [path for path in line.directory.rglob("*") if path.is_file() and path.name not in (".env", "work.toml")]
    stored = {path: path.read_bytes() for path in files}
    assert [path for path, data in stored.items() if b"s3cr3t" in data] == []
    assert "*** of ***" in line("work", "log", "ask").text
    assert "the value of Y_KEY has fewer than 4 characters and is not masked" in line("work", "log", "fail").text
    assert b"use ***?" in stored[line.directory / "told"]
