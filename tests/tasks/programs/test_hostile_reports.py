"""Reports of programs: any table and any output give records in files of the call, or a failure of a file."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.interchange.reports import SAMPLE_CHARACTERS_MAX
from codebatch.model.command_table import CallTotals, CommandConfig, CommandTable
from codebatch.model.program_call import ProgramEnd, ProgramFailed
from codebatch.model.record import Diagnostic, Omission, Record
from codebatch_workers.api.protocols import FileFailure, TaskEnvironment
from codebatch_workers.programs.command_calls import EVIDENCE_CHARACTERS_MAX
from codebatch_workers.programs.report_records import NAME_CHARACTERS_MAX
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.command import FileCommandTask, create_file_task
from tests.support.source_files import source

Answer = Callable[[Sequence[bytes], bytes], ProgramEnd]

POINTERS = {"items": "/r", "path": "/p", "line": "/l", "column": "/c", "message": "/m", "code": "/k"}
JSON = {"format": "json", **POINTERS}
FORMATS: list[object] = [
    "sarif", "checkstyle", "rdjson", "rdjsonl", "jsonl", "gcc", "exit", JSON,
    {**POINTERS, "format": "json-lines", "items": ""},
    {"format": "pattern", "pattern": r"(?P<path>.+?):(?P<line>\d+):(?P<column>\d+): (?P<message>.*)"},
]  # fmt: skip

GCC = "{}:{}:{}: error: text [C1]\n"
SARIF = (
    b'{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": ""}}, "results": [{"message": {"text": "x"}, '
    b'"locations": [{"physicalLocation": {"artifactLocation": {"uri": "URI"}, "region": {"startLine": 99999999}}}]}]}]}'
)
OUTPUTS = [
    b"",
    b"\n\n",
    b"garbage",
    b"\0" * 5000,
    b"\xff\xfe",
    b"\xff\xfe\0\xd8",
    b'{"r": [{"p": "a.txt", "l": 1',
    b'{"r": [{"p": "a.txt", "l": 1, "m": "\\ud800"}]}',
    b'{"r": [{"p": ["a.txt"], "l": {}, "m": []}, {"p": "a.txt", "l": "x", "c": null, "m": 1, "k": false}]}',
    b'{"r": [{"p": "../../etc/passwd", "l": 1, "m": "x"}, {"p": "a.txt", "l": 1e300, "c": -1e300, "m": ""}]}',
    b"[" * 100_000,
    b"<" * 10_000,
    b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><checkstyle><file name="a.txt"><error message="&e;"/>',
    b'<checkstyle><file name="a.txt"><error line="-1" column="99999999999999999999" message="x"/></file>',
    b'<checkstyle><file name="/etc/passwd"><error line="1" message="x"/></file></checkstyle>',
    SARIF.replace(b"URI", b"file:///etc/passwd"),
    SARIF.replace(b"URI", b"a.txt"),
    b'{"version": "2.1.0", "runs": [{"results": [{"message": {"text": "' + b"x" * 100_000 + b'"}}]}]}',
    b'{"path": "a.txt", "line": 1, "message": "x"}\n{"path": "b.txt"',
    GCC.format("a.txt", 0, 0).encode() + GCC.format("a.txt", 10**9, 1).encode() + b"a.txt:1:%b: x\n" % (b"9" * 40),
    GCC.format("../../etc/passwd", 1, 1).encode() + GCC.format("/etc/passwd", 1, 1).encode() + b"a\0.txt:1:1: \0\n",
    GCC.format("DIRECTORY/a.txt", 1, 1).encode() + b"DIRECTORY/b.txt:2:9: in DIRECTORY/a.txt and DIRECTORY\n",
    GCC.format("file://DIRECTORY/b.txt", 2, 3).encode() + b"\xff\xfe.txt:1:1: \xff\n" + b"a.txt:1:1: x\r\n",
]  # fmt: skip

FILES = [
    source("a.txt", "x\n"),
    source("b.txt", "\ufeffa\U00010400\u00e9b\r\n\u00e9\n".encode()),
    source("d/-c.txt", b""),
    source(b"\xff\xfe.txt", "a"),
    source("\\xff\\xfe.txt", "b"),
    source("n" * 250 + ".txt", "c"),
    source("line\nbreak.txt", "d"),
    source("{files}", "e"),
]


class StaticProgram:
    """A program whose output is fixed. `calls` are the arguments of its calls."""

    def __init__(self, table: CommandTable, project: str, answer: Answer) -> None:
        self.table = table
        self.project = project
        self.calls: list[list[bytes]] = []
        self._answer = answer

    def run(self, arguments: Sequence[bytes], directory: bytes, home: bytes, report: bytes | None) -> ProgramEnd:
        """Return the answer. `DIRECTORY` in its outputs is replaced by the directory of the call."""
        assert os.path.isdir(home)
        assert report is None or not os.path.exists(report)
        self.calls.append(list(arguments))
        end = self._answer(arguments, directory)
        place = directory.rstrip(b"/")
        return ProgramEnd(
            end.exit_status,
            end.output.replace(b"DIRECTORY", place),
            end.error_output.replace(b"DIRECTORY", place),
        )


def make_task(
    scratch: Path, answer: Answer, config: CommandConfig | None = None, **settings_of_table: object
) -> tuple[FileCommandTask, StaticProgram]:
    """Return a task `check` over all files, and its program."""
    table = {"command": ["check", "{files}"], "records": "gcc", **settings_of_table}
    program = StaticProgram(msgspec.convert(table, CommandTable), str(scratch), answer)
    return (
        create_file_task(
            TaskEnvironment(config=config or CommandConfig(), scratch=scratch, name="check", program=program)
        ),
        program,
    )


def complete(task: FileCommandTask, files: Sequence[SourceFile] = FILES) -> list[list[Record] | FileFailure]:
    return task.complete(files, [[] for _ in files])


def check_result(file: SourceFile, result: list[Record] | FileFailure, scratch: Path) -> None:
    """Check that a result has records of existing places in the file, or a reason without paths of this machine."""
    if isinstance(result, FileFailure):
        assert 0 < len(result.evidence) <= EVIDENCE_CHARACTERS_MAX
        assert str(scratch) not in result.evidence
        assert "Traceback" not in result.evidence
        return
    ends = [*file.line_starts[1:], len(file.utf8) + 1]
    for omission in (record for record in result if isinstance(record, Omission)):
        assert (omission.path, omission.path_b64, omission.task) == (*file.path_fields, "check")
        assert omission.count >= 1
        assert 0 < len(omission.sample) <= SAMPLE_CHARACTERS_MAX + 1
        assert str(scratch) not in omission.sample
        msgspec.json.encode(omission)
    for record in result:
        if isinstance(record, Omission):
            continue
        assert isinstance(record, Diagnostic)
        assert (record.path, record.path_b64) == file.path_fields
        assert 1 <= record.line <= record.end_line <= len(ends)
        assert (record.line, record.column) <= (record.end_line, record.end_column)
        assert 1 <= record.column <= ends[record.line - 1] - file.line_starts[record.line - 1] + 1
        assert str(scratch) not in record.message
        assert len(record.code) <= NAME_CHARACTERS_MAX
        msgspec.json.encode(record)
    assert result == sorted(set(result), key=result.index)


@settings(max_examples=150)
@given(
    records=st.sampled_from(FORMATS),
    output=st.sampled_from(OUTPUTS) | st.binary(max_size=300),
    error_output=st.sampled_from([b"", b"no DIRECTORY/a.txt\n", b"\0\xff" * 3000]),
    status=st.sampled_from([0, 0, 0, 1, 2, 126, 255, -int(signal.SIGSEGV), -40]),
    exit_ok=st.sampled_from([[0], [0, 1], [1]]),
    chunk=st.sampled_from([None, 1, 3]),
)
def test_any_output_gives_records_of_the_files_or_failures(
    records: object, output: bytes, error_output: bytes, status: int, exit_ok: list[int], chunk: int | None
) -> None:
    with TemporaryDirectory() as directory:
        scratch = Path(os.path.realpath(directory)) / "scratch"
        scratch.mkdir()
        argument = "{file}" if records == "exit" else "{files}"
        end = ProgramEnd(status, output, error_output)
        task, program = make_task(
            scratch, lambda *_: end, records=records, exit_ok=exit_ok, chunk=chunk, command=["check", argument]
        )
        results = complete(task)
        assert len(results) == len(FILES)
        for file, result in zip(FILES, results, strict=True):
            check_result(file, result, scratch)
        is_readable = 0 <= status <= 125 if records == "exit" else status in exit_ok
        assert is_readable or all(isinstance(result, FileFailure) for result in results)
        assert sum(map(len, program.calls)) >= len(FILES)
        assert CallTotals(files=len(FILES)).files == msgspec.json.decode(task.take_report(), type=CallTotals).files
        assert os.listdir(scratch) == []
        assert os.listdir(directory) == ["scratch"]


@pytest.mark.parametrize("status", [-int(signal.SIGSEGV), -40, 3, 255])
def test_only_the_guilty_file_fails(tmp_path: Path, status: int) -> None:
    """One of 50 files ends the program. Its call is repeated for each file alone."""
    files = [source(f"f{number}.txt", "x\n") for number in range(50)]

    def answer(arguments: Sequence[bytes], _: bytes) -> ProgramEnd:
        output = b"".join(b"%b:1:1: bad\n" % name for name in arguments)
        return ProgramEnd(status if b"f7.txt" in arguments else 0, output, b"detail")

    task, program = make_task(tmp_path, answer, chunk=25)
    results = complete(task, files)
    (failure,) = [result for result in results if isinstance(result, FileFailure)]
    assert results[7] is failure
    assert failure.evidence.startswith("detail\ncheck: ")
    assert [len(result) for result in results if not isinstance(result, FileFailure)] == [1] * 49
    assert [len(call) for call in program.calls] == [25, *[1] * 25, 25]


def test_each_overdue_file_fails_with_the_reason_timeout(tmp_path: Path) -> None:
    def answer(_: Sequence[bytes], __: bytes) -> ProgramEnd:
        raise ProgramFailed("it did not end within 1 seconds", b"log", is_overdue=True)

    task, _ = make_task(tmp_path, answer)
    results = complete(task, FILES[:2])
    assert [(result.reason, result.evidence) for result in results if isinstance(result, FileFailure)] == [
        ("timeout", "log\ncheck: it did not end within 1 seconds")
    ] * 2


@pytest.mark.parametrize(
    ("overdue", "crashing", "calls", "failed"),
    [
        (range(9), (), [9, 1, 1, 7], range(9)),
        ((2, 3), (), [9, *[1] * 4, 5], (2, 3)),
        ((2, 3, 8), (), [9, *[1] * 4, 5], range(2, 9)),
        ((2, 4, 6), (), [9, *[1] * 9], (2, 4, 6)),
        ((2, 3), (7,), [9, *[1] * 4, 5, *[1] * 5], (2, 3, 7)),
        ((), range(9), [9, *[1] * 9], range(9)),
    ],
)
def test_program_that_is_always_overdue_is_not_called_for_each_file(
    tmp_path: Path, overdue: Sequence[int], crashing: Sequence[int], calls: list[int], failed: Sequence[int]
) -> None:
    def answer(arguments: Sequence[bytes], _: bytes) -> ProgramEnd:
        numbers = {int(name[1:-4]) for name in arguments}
        if numbers.intersection(overdue):
            raise ProgramFailed("it did not end within 1 seconds", is_overdue=True)
        return ProgramEnd(9 if numbers.intersection(crashing) else 0, b"", b"")

    task, program = make_task(tmp_path, answer)
    results = complete(task, [source(f"f{number}.txt", "x\n") for number in range(9)])
    assert [len(call) for call in program.calls] == calls
    assert [number for number, result in enumerate(results) if isinstance(result, FileFailure)] == list(failed)


def test_reason_is_kept_if_the_standard_error_is_long(tmp_path: Path) -> None:
    task, _ = make_task(tmp_path, lambda *_: ProgramEnd(9, b"", b"\0" * 4000))
    (result,) = complete(task, FILES[:1])
    assert isinstance(result, FileFailure)
    assert result.evidence.endswith("\0\ncheck: it ended with status 9")
    assert len(result.evidence) == EVIDENCE_CHARACTERS_MAX


def test_long_codes_and_tools_are_shortened(tmp_path: Path) -> None:
    finding = {"p": "a.txt", "l": 1, "m": "x", "k": "k" * 5000, "t": "t" * 5000}
    output = msgspec.json.encode({"r": [finding]})
    task, _ = make_task(tmp_path, lambda *_: ProgramEnd(0, output, b""), records={**JSON, "tool": "/t"})
    (records,) = complete(task, FILES[:1])
    assert isinstance(records, list)
    (record,) = records
    assert isinstance(record, Diagnostic)
    assert (record.code, record.tool) == ("k" * 999 + "…", "t" * 999 + "…")


def test_messages_name_no_directory_of_the_call(tmp_path: Path) -> None:
    output = b"a.txt:1:1: DIRECTORY/a.txt in DIRECTORY, DIRECTORY/../home/.cache and DIRECTORY/../report\n"
    task, _ = make_task(tmp_path, lambda *_: ProgramEnd(0, output, b""))
    (records,) = complete(task, FILES[:1])
    assert isinstance(records, list)
    assert [record.message for record in records if isinstance(record, Diagnostic)] == [
        "a.txt in ., ../home/.cache and ../report"
    ]
    home = b"a.txt:1:1: HOME/.cache, REPORT\n"

    def answer(_: Sequence[bytes], directory: bytes) -> ProgramEnd:
        base = directory.rstrip(b"/").removesuffix(b"/tree")
        return ProgramEnd(0, home.replace(b"HOME", base + b"/home").replace(b"REPORT", base + b"/report"), b"")

    task, _ = make_task(tmp_path, answer)
    (records,) = complete(task, FILES[:1])
    assert isinstance(records, list)
    assert [record.message for record in records if isinstance(record, Diagnostic)] == ["~/.cache, report"]


@pytest.mark.parametrize("is_last", [False, True])
def test_scratch_that_a_program_removed_is_created_again(tmp_path: Path, is_last: bool) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def answer(arguments: Sequence[bytes], _: bytes) -> ProgramEnd:
        if is_last == (b"b.txt" in arguments):
            shutil.rmtree(scratch)
        return ProgramEnd(0, b"%b:1:1: bad\n" % arguments[0], b"")

    task, _ = make_task(scratch, answer, chunk=1)
    assert [len(result) for result in complete(task, FILES[:2]) if isinstance(result, list)] == [1, 1]


def test_files_in_a_linked_directory_are_neither_checked_nor_written(tmp_path: Path) -> None:
    """The project has newer files there, which the program sees through the link."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.txt").write_text("of the user")
    (tmp_path / "scratch").mkdir()
    seen: list[str] = []

    def answer(_: Sequence[bytes], directory: bytes) -> ProgramEnd:
        tree = Path(os.fsdecode(directory))
        seen.extend(sorted(os.listdir(tree / "lib")))
        return ProgramEnd(0, b"lib/a.txt:1:1: bad\nlibrary.txt:1:1: bad\n", b"")

    table = {"command": ["check", "{files}"], "records": "gcc", "link": ["lib/"]}
    program = StaticProgram(msgspec.convert(table, CommandTable), str(tmp_path), answer)
    environment = TaskEnvironment(config=CommandConfig(), scratch=tmp_path / "scratch", name="check", program=program)
    files = [source(path, "x\n") for path in ("lib/a.txt", "lib/b.txt", "library.txt")]
    results = complete(create_file_task(environment), files)
    assert omitted(results) == [("library.txt", "findings", 1, "lib/a.txt:1")]
    assert [type(record) for result in results if isinstance(result, list) for record in result] == [
        Diagnostic,
        Omission,
    ]
    assert program.calls == [[b"library.txt"]]
    assert seen == ["a.txt"]
    assert (tmp_path / "lib" / "a.txt").read_text() == "of the user"


def test_configuration_files_of_a_planted_plan_stay_in_the_tree(tmp_path: Path) -> None:
    """Contexts come from plans, and plans can come from others."""
    (tmp_path / "scratch").mkdir()
    (tmp_path / "lib").mkdir()
    planted = [
        (b"../../evil", "0" * 64, True), (b"/evil", "0" * 64, True), (b"a/../../../evil", "0" * 64, True),
        (b"lib/evil", "0" * 64, True), (b"nul\0", "0" * 64, True), (b"good", "0" * 64, False),
    ]  # fmt: skip
    seen: list[str] = []

    def answer(_: Sequence[bytes], directory: bytes) -> ProgramEnd:
        seen.extend(sorted(os.listdir(os.fsdecode(directory))))
        return ProgramEnd(0, b"", b"")

    table = {"command": ["check", "{files}"], "records": "gcc", "link": ["lib"], "config_files": ["*"]}
    program = StaticProgram(msgspec.convert(table, CommandTable), str(tmp_path), answer)
    environment = TaskEnvironment(
        config=CommandConfig(),
        scratch=tmp_path / "scratch",
        name="check",
        program=program,
        read_object=lambda _: b"content",
    )
    context = {"config-files-check": msgspec.msgpack.encode(planted)}
    assert complete(create_file_task(environment), [source("a.txt", "x", context)]) == [[]]
    assert seen == ["a.txt", "good", "lib"]
    assert list(tmp_path.rglob("*evil*")) == []


AB = FILES[:2]
Omitted = tuple[str, str, int, str]


def omitted(results: Sequence[list[Record] | FileFailure]) -> list[Omitted]:
    """Return the path, part, count and sample of each omission."""
    return [
        (str(record.path), record.part, record.count, record.sample)
        for result in results
        if isinstance(result, list)
        for record in result
        if isinstance(record, Omission)
    ]


@pytest.mark.parametrize(
    ("output", "error_output", "expected"),
    [
        (b"a.txt:1:1: x\n", b"b.txt is odd\n", []),
        (b"a.txt:1: x\nFound 1 error in 1 file (checked 2 source files)\n", b"", []),
        (b"wrong\nb.txt(3) bad\n", b"", [("a.txt", "lines", 1, "wrong"), ("b.txt", "lines", 1, "b.txt(3) bad")]),
        (b"./b.txt 3\n'b.txt', 4\n", b"", [("b.txt", "lines", 2, "./b.txt 3")]),
        (b"DIRECTORY/b.txt is bad\n", b"", [("b.txt", "lines", 1, "b.txt is bad")]),
        (b"x\n" * 150, b"", [("a.txt", "lines", 150, "x")]),
        (b"a.txt:9: x\n", b"", [("a.txt", "findings", 1, "a.txt:9")]),
        (b"A.txt:1: x\n/b.txt:1: x\n", b"", [("a.txt", "findings", 2, "A.txt:1")]),
        (b"", b"b.txt:1: bad\n/usr/x.py:3: DeprecationWarning\n", [("b.txt", "lines", 1, "on standard error: bad")]),
        (b"a.txt:1: x\n", b"a.txt:1: y\na.txt:1: z\n", [("a.txt", "lines", 2, "on standard error: y")]),
        (b"  \n", b"reading 2 files\n", []),
    ],
)  # fmt: skip
def test_output_that_is_in_no_finding_is_counted(
    tmp_path: Path, output: bytes, error_output: bytes, expected: list[Omitted]
) -> None:
    task, _ = make_task(tmp_path, lambda *_: ProgramEnd(0, output, error_output))
    assert omitted(complete(task, AB)) == expected


@pytest.mark.parametrize(
    ("records", "output", "error_output", "evidence"),
    [
        ("gcc", b"ERROR in a.txt line 3\n", b"", "its output has no finding: 'ERROR in a.txt line 3'"),
        ("gcc", b"Found 1 error in 1 file (checked 1 source file)\n", b"", "its output has no finding: 'Found 1"),
        ("gcc", b"\n", b"a.txt:1: bad\n", "a.txt:1: bad\ncheck: it ended with status 1, and only its standard error"),
        (FORMATS[-1], b"ERROR\n", b"", "its output has no finding: 'ERROR'"),
        (FORMATS[-2], b"{}\n", b"", "its report cannot be read: a finding has no text at /m"),
        ({**POINTERS, "format": "json-lines"}, b'{"x": 1}\n', b"", "its output has no finding: '{\"x\":1}'"),
        ("sarif", b'{"version": "2.1.0", "runs": [{}]}', b"", "its output has no finding: 'a run of  without"),
        ("checkstyle", b"<checkstyle><bad/></checkstyle>", b"", "its output has no finding: '<bad>'"),
        (JSON, b"fine: {}", b"", "its report cannot be read: JSON is malformed"),
    ],
)  # fmt: skip
def test_failed_program_without_a_readable_finding_is_a_failure(
    tmp_path: Path, records: object, output: bytes, error_output: bytes, evidence: str
) -> None:
    task, program = make_task(tmp_path, lambda *_: ProgramEnd(1, output, error_output), records=records, exit_ok=[0, 1])
    results = complete(task, AB)
    assert len(program.calls) == 3
    for result in results:
        assert isinstance(result, FileFailure)
        assert evidence in result.evidence


@pytest.mark.parametrize(
    ("records", "output", "error_output"),
    [
        ("gcc", b"", b""),
        ("gcc", b"b.txt:1: x\nERROR\n", b""),
        ("gcc", b"elsewhere:1: x\n", b""),
        (JSON, b'{"r": []}', b"1 warning"),
        ("sarif", b'{"version": "2.1.0", "runs": [{"results": []}]}', b"1 warning"),
        ("rdjsonl", b"", b"1 warning"),
    ],
)
def test_failed_program_with_a_readable_report_is_no_failure(
    tmp_path: Path, records: object, output: bytes, error_output: bytes
) -> None:
    task, _ = make_task(tmp_path, lambda *_: ProgramEnd(1, output, error_output), records=records, exit_ok=[1])
    assert not any(isinstance(result, FileFailure) for result in complete(task, AB))


def test_unknown_values_of_findings_are_counted(tmp_path: Path) -> None:
    findings = [{"p": "a.txt", "l": 1, "m": "x", "s": word} for word in ("bad", "worse", "error", "")]
    output = msgspec.json.encode({"r": [*findings, {"p": "b.txt", "l": "1-2", "m": "x"}]})
    task, _ = make_task(tmp_path, lambda *_: ProgramEnd(0, output, b""), records={**JSON, "severity": "/s"})
    assert omitted(complete(task, AB)) == [
        ("a.txt", "values", 2, "severity 'bad'"),
        ("b.txt", "values", 1, "line '1-2'"),
    ]


@pytest.mark.parametrize(
    ("ignore", "line", "is_ignored"),
    [
        ("Checked *", "Checked a.txt", True),
        ("Checked *", "  Checked ", False),
        ("*", "anything", True),
        ("*a.txt", "Checked a.txt", True),
        ("C*a*t", "Checked a.txt", True),
        ("C*a*a*t", "Checked a.txt", False),
        ("Checked a?txt", "Checked a.txt", False),
        ("Checked", "Checked a.txt", False),
        ("[a]*", "[a] a.txt", True),
        ("a.tx*xt", "a.txt", False),
    ],
)
@pytest.mark.parametrize("status", [0, 1])
def test_ignored_lines_are_neither_counted_nor_failures(
    tmp_path: Path, ignore: str, line: str, is_ignored: bool, status: int
) -> None:
    end = ProgramEnd(status, line.encode(), b"")
    task, _ = make_task(tmp_path, lambda *_: end, exit_ok=[0, 1], ignore=[ignore])
    results = complete(task, AB)
    assert (results == [[], []]) == is_ignored
    assert any(isinstance(result, FileFailure) for result in results) == (status == 1 and not is_ignored)


def test_ignored_message_without_a_file_is_not_counted(tmp_path: Path) -> None:
    output = (
        b'{"m": "2 warnings emitted"}\n{"m": "linking failed"}\n{"p": "a.txt", "l": 1, "m": "2 warnings emitted"}\n'
    )
    task, _ = make_task(
        tmp_path,
        lambda *_: ProgramEnd(0, output, b""),
        records={**POINTERS, "format": "json-lines", "items": ""},
        ignore=["* warnings emitted"],
    )
    results = complete(task, AB)
    assert omitted(results) == [("a.txt", "findings", 1, "linking failed")]
