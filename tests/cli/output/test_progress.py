"""Progress on standard error: one line on a terminal, plain lines elsewhere, and never on standard output."""

from __future__ import annotations

import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.cli.framework.context import CommandContext
from codebatch.cli.output import progress
from codebatch.cli.output.eta import SAMPLES_MAX, PaceEstimator
from codebatch.cli.output.progress import (
    ProgressDisplay,
    ProgressStage,
    advance_stage,
    live_progress_line,
    plain_progress_line,
)
from codebatch.cli.run.run import RunListener
from codebatch.coordinator.analysis.progress_counter import RunProgress
from codebatch.operations.runs.collection import CollectionResult
from tests.cli.terminal import on_a_terminal
from tests.support.command_line import CommandLine, make_many

ESCAPE = "\x1b["
MARKS = "#-"


@pytest.fixture
def codebatch(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """The command line in a directory with a tree that takes a moment to analyse."""
    codebatch = CommandLine(tmp_path_factory.mktemp("progress"))
    make_many(codebatch.directory / "many", 60)
    return codebatch


class Terminal(io.StringIO):
    """A terminal that sets the clock when it is written to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.seconds = 0.0
        monkeypatch.setattr(progress, "running_ns", lambda: int(self.seconds * 1e9))


def test_terminal_shows_one_progress_line_and_erases_it_at_the_end(codebatch: CommandLine) -> None:
    """Other output is on separate lines, and standard output is one document."""
    make_many(codebatch.directory / "many", 900)
    shown, stdout = on_a_terminal(codebatch, "run", "many", "--json", "-j", "1", shown="stderr", columns=60)
    assert json.loads(stdout)["files"] == 900
    *drawn, last = shown.split("\r\x1b[K")
    assert last.startswith("next: ")
    assert last.count("\n") == 1
    counts = [match for line in drawn if (match := re.match(r"running  \D*([\d,]+) of ([\d,]+) results", line))]
    done = [int(match[1].replace(",", "")) for match in counts]
    assert done == sorted(done)
    assert len({match[2] for match in counts}) == 1, "the total changed during the run"
    lines = [line for line in shown.replace("\r\x1b[K", "\r\n").split("\r\n") if re.match(r"\w+  ", line)]
    assert max(map(len, lines)) < 60


def test_progress_line_is_erased_before_other_output(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal(monkeypatch)
    display = ProgressDisplay(stream, is_live=True)
    display.show_stage(ProgressStage("reading", 1, 2))
    display.draw()
    with display.without_progress_line():
        stream.write("a note\n")
    display.close()
    display.draw()
    assert re.fullmatch(r"\r\x1b\[Kreading  [^\r]+\r\x1b\[Ka note\n", stream.getvalue())


STAGES = st.builds(
    ProgressStage,
    st.sampled_from(["reading", "running"]),
    st.integers(0, 50),
    st.just(50),
    share=st.none() | st.floats(0, 1),
)


@given(st.lists(STAGES, min_size=1))
def test_progress_never_moves_back_within_a_phase(stages: list[ProgressStage]) -> None:
    shown = [stages[0]]
    for stage in stages[1:]:
        shown.append(advance_stage(shown[-1], stage))
    for before, after, stage in zip(shown, shown[1:], stages[1:], strict=False):
        assert after.phase == stage.phase
        assert stage.done <= after.done <= after.planned == 50
        if before.phase == after.phase:
            assert before.done <= after.done
            assert stage.share is None or after.done_share >= max(stage.share, before.share or 0.0)
        else:
            assert after == stage


def test_retried_command_does_not_move_the_progress_bar_back() -> None:
    shown = ProgressStage("running", 5, 9, "tasks", "a 1s", is_even=False, remaining_text="1-2 m left")
    again = ProgressStage("running", 4, 9, "tasks", "b 1s", is_even=False, remaining_text="2-3 m left")
    assert advance_stage(shown, again) == ProgressStage(
        "running", 5, 9, "tasks", "b 1s", is_even=False, remaining_text="2-3 m left"
    )


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([0.1], None),
        ([0.0, 0.1], None),
        ([0.0, 0.1, 0.2], 8.0),
        ([0.5, 0.6, 0.7], 3.0),
        ([0.0, 0.4, 0.5], None),
        ([0.0, 0.1, 0.4], None),
        ([0.0, 0.19, 0.3], 14 / 3),
        ([0.0, 0.1, 0.2, 0.4, 0.6], 8 / 3),
        ([0.0, 0.0, 0.2], None),
        ([0.0, 0.1, 0.2, 0.2, 0.2], None),
        ([0.0, 0.5, 1.0], 0.0),
    ],
)
def test_remaining_time_is_known_once_both_halves_had_the_same_pace(
    shares: list[float], expected: float | None
) -> None:
    """The pace is that of the current phase, without results from older batches."""
    pace = PaceEstimator()
    for second, share in enumerate(shares):
        pace.add_sample(100.0 + second, share)
    remaining = pace.remaining_seconds(100.0 + len(shares) - 1)
    assert remaining == (None if expected is None else pytest.approx(expected))


def test_remaining_time_is_unknown_after_progress_stops() -> None:
    pace = PaceEstimator()
    for second in range(5):
        pace.add_sample(second, second / 10)
    assert pace.remaining_seconds(4) == pytest.approx(6.0)
    assert pace.remaining_seconds(7) is None


def test_pace_of_a_long_phase_needs_few_samples() -> None:
    pace = PaceEstimator()
    for tick in range(20_000):
        pace.add_sample(tick / 10, tick / 40_000)
    assert pace.remaining_seconds(1999.9) == pytest.approx(2000, rel=0.02)
    assert len(pace) <= SAMPLES_MAX


def test_plain_progress_lines_show_the_remaining_time_of_the_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal(monkeypatch)
    display = ProgressDisplay(stream, is_live=False)
    for seconds, done in ((0.0, 50), (5.0, 55), (10.0, 60), (15.0, 67), (20.0, 67)):
        stream.seconds = seconds
        display.show_stage(ProgressStage("running", done, 100, "results", more=f"{done * 9:,} records"))
        if not seconds % 10:
            display.draw()
    display.show_stage(ProgressStage("merging"))
    display.draw()
    assert stream.getvalue().splitlines() == [
        "running: 50 of 100 results, 450 records",
        "running: 60 of 100 results, 540 records, about 40 s left",
        "running: 67 of 100 results, 603 records, about 39 s left",
    ]


def test_plain_progress_line_is_not_repeated_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal(monkeypatch)
    display = ProgressDisplay(stream, is_live=False)
    for detail in ("starts at 22:00:00", "starts at 22:00:00", "a 1s", "starts at 22:00:00"):
        display.show_stage(ProgressStage("running", 0, 1, "tasks", detail=detail, is_even=False))
        display.draw()
    assert [line.split(", ")[1] for line in stream.getvalue().splitlines()] == [
        "starts at 22:00:00", "a 1s", "starts at 22:00:00",
    ]  # fmt: skip


def test_uneven_work_shows_no_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal(monkeypatch)
    display = ProgressDisplay(stream, is_live=False)
    for seconds in (0.0, 5.0, 10.0):
        stream.seconds = seconds
        display.show_stage(ProgressStage("running", int(seconds), 100, "results", is_even=False))
    display.draw()
    assert stream.getvalue() == "running: 10 of 100 results\n"


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (100, "reading  ###############---------------  500 of 1,000 files  2 s  about 3 s left  7 failed"),
        (70, "reading  ####-----  500 of 1,000 files  2 s  about 3 s left  7 failed"),
        (50, "reading  500 of 1,000 files  2 s  about 3 s left"),
        (30, "reading  500 of 1,000 files"),
        (20, "reading  50%  2 s"),
        (6, "readi"),
    ],
)
def test_progress_line_fits_a_narrow_terminal(columns: int, expected: str) -> None:
    stage = ProgressStage("reading", 500, 1000, more="7 failed")
    assert live_progress_line(stage, 2.4, "about 3 s left", columns, MARKS) == expected


def test_phase_without_counts_shows_its_elapsed_time() -> None:
    assert live_progress_line(ProgressStage("merging"), 2.4, "", 80, MARKS) == "merging  2 s"


def test_dumb_terminal_gets_plain_lines(codebatch: CommandLine) -> None:
    shown, _ = on_a_terminal(codebatch, "run", "many", shown="stderr", TERM="dumb")
    assert ESCAPE not in shown
    assert "next: codebatch findings" in shown


def test_quiet_shows_no_progress_on_a_terminal(codebatch: CommandLine) -> None:
    shown, stdout = on_a_terminal(codebatch, "run", "many", "-q", shown="stderr")
    assert stdout.startswith("60 files in ")
    assert shown == ""


def test_pipe_gets_plain_lines(codebatch: CommandLine) -> None:
    ended = codebatch("run", "many", "--json")
    assert ended.json["files"] == 60
    assert ESCAPE not in ended.notes
    assert [line.split()[0] for line in ended.notes.splitlines()] == ["created", "files", "next:"]


def test_narrow_terminal_shows_remaining_instead_of_elapsed_time() -> None:
    stage = ProgressStage("following", 2, 4, "tasks", "1 running", is_even=False, remaining_text="12-19 m left")
    assert live_progress_line(stage, 83, stage.remaining_text, 40, "#-") == "following  2 of 4 tasks  12-19 m left"
    assert "83 s" in live_progress_line(stage, 83, stage.remaining_text, 80, "#-")


def test_detail_of_a_stage_is_shown_if_all_other_texts_fit() -> None:
    stage = ProgressStage("following", 2, 4, "results", "1 failed", detail="lint src/application.py (12s)")
    assert live_progress_line(stage, 8, "", 72, "#-").endswith("8 s  1 failed  lint src/application.py (12s)")
    assert live_progress_line(stage, 8, "", 70, "#-").endswith("8 s  1 failed")
    assert plain_progress_line(stage, "") == "following: 2 of 4 results, 1 failed, lint src/application.py (12s)"


class RecordingDisplay(ProgressDisplay):
    """A display that records its stages."""

    def __init__(self) -> None:
        super().__init__(io.StringIO(), is_live=False)
        self.stages: list[ProgressStage] = []

    def show_stage(self, stage: ProgressStage) -> None:
        self.stages.append(stage)


@pytest.mark.parametrize(
    ("done", "records", "failures", "stage"),
    [
        ({"parse": 0, "lint": 0, "graph": 0}, 0, 0, ProgressStage("running", 0, 21, "results", share=0.0)),
        (
            {"parse": 10, "lint": 4, "graph": 0},
            1234,
            2,
            ProgressStage("running", 14, 21, "results", "1,234 records, 2 failed", share=14 / 21),
        ),
        (
            {"parse": 10, "lint": 10, "graph": 0},
            5,
            0,
            ProgressStage("running", 20, 21, "results", "5 records, graph", is_even=False, share=20 / 21),
        ),
    ],
)
def test_run_progress_is_one_count_and_lists_the_last_tasks(
    done: dict[str, int], records: int, failures: int, stage: ProgressStage
) -> None:
    """Records are shown once there are any. The pace of files does not predict the time of the last tasks."""
    display = RecordingDisplay()
    answering = CommandContext(store_path=None, as_json=False, quiet=False, command="run", display=display)
    count = sum(done.values())
    progress = RunProgress(
        planned={"parse": 10, "lint": 10, "graph": 1},
        done=done,
        results_planned=21,
        results_done=count,
        work_done=count / 21,
        reused=0,
        records=records,
        failures=failures,
        workers=2,
    )
    RunListener(answering).update(progress)
    assert display.stages == [stage]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "collected 1 snapshot: 0 B: s\n"),
        (4, "collected 4 batches, 1 snapshot: 0 B: b0, b1, b2, b3, s\n"),
        (6, "collected 6 batches, 1 snapshot: 0 B: b0, b1, b2, b3, b4 and 2 more\n"),
    ],
)
def test_note_on_a_collection_names_the_first_removed_batches(
    capsys: pytest.CaptureFixture[str], count: int, expected: str
) -> None:
    collected = CollectionResult(
        batches=tuple(f"b{number}" for number in range(count)),
        snapshots=("s",),
        settled=(),
        packs=0,
        packs_rewritten=0,
        objects=0,
        relinked=0,
        relinked_bytes=0,
        freed_bytes=0,
    )
    answering = CommandContext(
        store_path=None,
        as_json=False,
        quiet=False,
        command="run",
        display=ProgressDisplay(io.StringIO(), is_live=False),
    )
    RunListener(answering).collected(collected)
    assert capsys.readouterr().err == expected
