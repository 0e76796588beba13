"""Caps, hours and times of a task list on the command line."""

from __future__ import annotations

from functools import partial

import pytest

from tests.cli.terminal import on_a_terminal
from tests.cli.work.test_work import count, line, make_list, states, status
from tests.support.command_line import CommandLine, wait_until

__all__ = ["line"]

PAID = """run = "echo >>calls; echo '{\\"cost\\": 0.5}'"
result = { cost = "/cost" }
each = { values = ["1", "2", "3", "4"] }"""


def test_cap_on_cost_stops_the_list_until_a_person_raises_it(line: CommandLine) -> None:
    make_list(line, {"paid": PAID, "free": 'run = "true"'}, 'cost_max = 1\ncost_unit = "USD"')
    ended = line("work", "run", status=3, has_answer=True)
    assert "cost 1 USD, cost_max of the list is reached: 1 of 1 USD" in ended.text
    assert "codebatch work set cost-max=2" in ended.notes
    assert count(line, "calls") == 2
    assert states(line)["free"] == "DONE"
    (cap,) = status(line)["caps"]
    assert (cap["scope"], cap["cap"], cap["limit"], cap["used"]) == ("", "cost_max", 1, 1)
    batch = status(line)["batch_id"]
    line("resume", "--batch", batch, status=3, has_answer=True)
    assert count(line, "calls") == 2
    changed = line("work", "set", "cost-max=1.5", "--batch", batch)
    assert changed.text.startswith("set cost-max 1.5; 3 of 5 done (60%)")
    assert "is not running; resume it with" in changed.notes
    line("resume", "--batch", batch, status=3, has_answer=True)
    assert count(line, "calls") == 3
    assert b'"caps":[{"scope":"","cap":"cost_max","limit":1.5,"used":1.5}]' in line("events", "--json").stdout


def test_cap_on_attempts_counts_retries(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "echo >>calls; exit 1"\nretries = 9\nbackoff_seconds = 0'}, "attempts_max = 3")
    assert "attempts_max of the list is reached: 3 of 3" in line("work", "run", status=3, has_answer=True).text
    assert count(line, "calls") == 3


def test_quota_message_of_a_success_is_a_rate_limit(line: CommandLine) -> None:
    keys = "wait_if = { pattern = 'in (?P<seconds>[0-9.]+) s', exits = [0] }\nwaits_max = 1"
    make_list(line, {"a": f'run = "echo >>calls; echo in 0.1 s"\n{keys}'})
    line("work", "run", status=3, has_answer=True)
    assert count(line, "calls") == 2


def test_time_of_the_start_is_shown_and_refused_in_the_past(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "echo >>calls"'})
    assert "is in the past" in line("work", "run", "--at", "2020-01-01T00:00:00Z", status=2).notes
    line("work", "run", "--at", "2099-01-01T00:00:00Z", "--detach")
    assert "starts at 2099-01-01 " in line("status").text
    line("cancel")
    assert count(line, "calls") == 0


def test_run_that_cannot_start_tasks_says_so_once(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "echo >>calls"'})
    process = line.start("work", "run", "--at", "2099-01-01T00:00:00Z")
    assert process.stderr is not None
    shown = [process.stderr.readline().decode() for _ in range(3)]
    line("cancel")
    notes = "".join(shown) + line.finish(process, status=3).notes
    assert notes.count("no task runs yet: starts at 2099-01-01 ") == 1


def test_delivery_of_notifications_is_shown_instead_of_tasks(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "true"'}, 'notify = { command = "sleep 2" }')
    shown, _ = on_a_terminal(line, "work", "run", shown="stderr")
    assert "delivering notifications" in shown
    assert "running" not in shown.partition("delivering notifications")[2]


def test_time_left_includes_the_rate_limit_of_a_task_without_a_pool(line: CommandLine) -> None:
    run = "test -e go || { echo retry after 600 seconds; exit 1; }"
    make_list(line, {"a": f"run = '{run}'\nwait_if = 'after (?P<seconds>[0-9]+)'\nexpected_seconds = 1"})
    line("work", "run", "--detach")
    wait_until(lambda: b'"BATCH_PROGRESS"' in line("events", "--json").stdout, "the time left is estimated")
    low, _, high = status(line)["eta_seconds"]
    assert 400 < low <= high < 700
    line("cancel")


def test_met_cap_asks_once_for_each_value(line: CommandLine) -> None:
    make_list(line, {"paid": PAID}, 'attempts_max = 1\non_cap = "ask"\nmax_parallel = 1')
    line("work", "run", status=3, has_answer=True)
    batch = status(line)["batch_id"]
    (question,) = line("work", "questions", "--json").json
    assert (question["task"], question["kind"], question["cap_limit"]) == ("paid/2", "cap", 1)
    assert "attempts_max of the list is reached: 1 of 1. Answer with a value above 1, or stop" in question["text"]
    line("resume", "--batch", batch, status=3, has_answer=True)
    assert count(line, "calls") == 1
    for wrong in ("1", "2.5", "yes"):
        assert "answer with a higher value, or: stop" in line("work", "answer", "paid/2", wrong, status=2).notes
    line("work", "answer", "paid/2", "2", "--batch", batch)
    line("resume", "--batch", batch, status=3, has_answer=True)
    assert count(line, "calls") == 2
    line("work", "set", "attempts-max=3", "--batch", batch)
    assert line("work", "questions", "--json").json == []
    line("resume", "--batch", batch, status=3, has_answer=True)
    line("work", "answer", "paid/4", "stop", "--batch", batch)
    line("resume", "--batch", batch, status=3, has_answer=True)
    assert (count(line, "calls"), states(line)["paid/4"]) == (3, "PENDING")
    assert line("events", "--json").stdout.count(b'"BATCH_TASK_BLOCKED"') == 3


def test_answer_to_a_cap_must_be_above_what_was_used(line: CommandLine) -> None:
    run = """echo '{\\"cost\\": 1.2345678}'"""
    make_list(
        line,
        {"a": f'run = "{run}"\nresult = {{ cost = "/cost" }}', "b": f'run = "{run}"\nresult = {{ cost = "/cost" }}'},
        'cost_max = 0.5\non_cap = "ask"\nmax_parallel = 1',
    )
    line("work", "run", "-q", status=3, has_answer=True)
    (question,) = line("work", "questions", "--json").json
    assert "is reached: 1.234568 of 0.5. Answer with a value above 1.234568, or stop" in question["text"]
    assert question["cap_used"] == 1.234568
    assert "above 1.234568" in line("events").text
    for used in ("1", "1.23456", "1.234568"):
        refused = line("work", "answer", "b", used, "--batch", "latest", status=2).notes
        assert f"'{used}' is not a number above 1.234568, which is already used" in refused
    line("work", "answer", "b", "1.2346", "--resume", "--batch", "latest")


def test_batch_that_waits_for_answers_continues_after_the_answer_to_a_cap(line: CommandLine) -> None:
    make_list(line, {"paid": PAID}, 'cost_max = 1\non_cap = "ask"\non_blocked = "wait"\nmax_parallel = 1')
    process = line.start("work", "run")
    wait_until((line.directory / "calls").exists, "the first task starts")
    wait_until(lambda: bool(line("work", "questions", "--json").json), "the cap asks")
    assert status(line)["status"] == "RUNNING"
    line("work", "answer", "paid/3", "9")
    notes = line.finish(process).notes
    assert notes.count("waits for an answer") == notes.count("paid/3 waits for an answer") == 1
    assert (status(line)["status"], count(line, "calls")) == ("COMPLETED", 4)


def test_batch_whose_runner_waits_for_an_answer_is_running(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "touch began"', "b": 'run = "codebatch ask Go? || exit 75"'}, 'on_blocked = "wait"')
    process = line.start("work", "run")
    wait_until((line.directory / "began").exists, "the first task starts")
    wait_until(lambda: bool(line("work", "questions", "--json").json), "the task asks")
    shown = status(line)
    assert (shown["status"], shown["ended_at"], shown["counts"]) == ("RUNNING", None, {"DONE": 1, "BLOCKED": 1})
    line("cancel")
    line.finish(process, status=3)
    assert status(line)["status"] == "CANCELLED"


def test_cost_that_is_unknown_counts_only_if_the_command_may_have_cost_something(line: CommandLine) -> None:
    tasks = {
        "idle": """run = "echo never"\nwhen = "exit 1"\nresult = { cost = "/cost" }""",
        "paid": """run = "echo '{\\"cost\\": 0.5}'"\nresult = { cost = "/cost" }""",
        "odd": """run = "echo '{\\"cost\\": -9}'"\nresult = { cost = "/cost" }""",
        "last": """run = "echo '{\\"cost\\": 0.5}'"\nresult = { cost = "/cost" }""",
    }
    make_list(line, tasks, "cost_max = 1\nmax_parallel = 1")
    line("work", "run", "-q", status=3, has_answer=True)
    assert states(line) == {"idle": "DONE", "paid": "DONE", "odd": "DONE", "last": "PENDING"}
    assert status(line)["cost"] == 0.5


def test_cap_that_is_set_later_counts_all_tasks_that_report_a_cost(line: CommandLine) -> None:
    pooled = """run = "until test -e go; do sleep 0.05; done; echo '{\\"cost\\": 0.5}'"\nresult = { cost = "/cost" }"""
    make_list(
        line,
        {"in": f"{pooled}\npools = {{ small = 1 }}", "out": f"{PAID}\nneeds = ['in']"},
        "[pools]\nsmall = { size = 1, cost_max = 9 }",
    )
    process = line.start("work", "run", "-q")
    wait_until(lambda: states_or_none(line) == "RUNNING", "the task runs")
    line("work", "set", "cost-max=1")
    (line.directory / "go").touch()
    line.finish(process, status=3)
    assert count(line, "calls") == 1


def states_or_none(line: CommandLine) -> str:
    ended = line.ends("status", "--json")
    return str(ended.json["tasks"][0]["state"]) if ended.status == 0 else ""


@pytest.mark.parametrize(
    ("listed", "pools", "refused"),
    [
        (
            "22:00-08:00",
            {"a": "08:00-22:00"},
            "`hours` of the list (22:00-08:00) and `hours` of pool 'a' (08:00-22:00)",
        ),
        ("22:00-08:00", {"a": "07:59-08:00"}, ""),
        ("22:00-02:00", {"a": "01:59-22:00"}, ""),
        ("", {"a": "22:00-02:00", "b": "02:00-22:00"}, "pool 'a' (22:00-02:00) and `hours` of pool 'b' (02:00-22:00)"),
        ("01:00-03:00", {"a": "02:00-04:00", "b": "03:00-02:00"}, "do not overlap"),
        ("", {"a": "22:00-02:00"}, ""),
    ],
)
def test_hours_without_a_common_minute_are_refused(
    line: CommandLine, listed: str, pools: dict[str, str], refused: str
) -> None:
    sizes = "\n".join(f'{pool} = {{ size = 1, hours = "{hours}" }}' for pool, hours in pools.items())
    used = ", ".join(f"{pool} = 1" for pool in pools)
    keys = f'hours = "{listed}"\n' if listed else ""
    make_list(line, {"t": f'run = "true"\npools = {{ {used} }}', "free": "run = 'true'"}, f"{keys}[pools]\n{sizes}")
    ended = line.ends("work", "run", "--dry-run")
    assert (ended.status, refused in ended.notes) == (2 if refused else 0, True)
    assert "'free'" not in ended.notes


def test_hint_of_a_cap_can_be_typed_and_is_above_the_use(line: CommandLine) -> None:
    keys = """run = "echo '{\\"cost\\": 5}'; exit 1"\nresult = { cost = "/cost" }\nretries = 5\nbackoff_seconds = 0"""
    make_list(line, {"a": f"{keys}\ncost_max = 1"})
    notes = line("work", "run", "-q", status=3, has_answer=True).notes
    assert "codebatch work set a cost-max=6 --batch " in notes
    line("work", "set", "a", "cost-max=6", "--batch", "latest")


def test_tasks_behind_a_deadline_are_not_held_by_failures(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "true"'}, 'deadline = "2020-01-01T00:00:00Z"')
    line("work", "run", "-q", status=3, has_answer=True)
    assert "no new tasks are started: the deadline has passed: 2020-01-01" in line("status").text
    assert "failures" not in line("status").text


def test_time_zone_that_is_not_installed_is_an_error_without_a_traceback(line: CommandLine) -> None:
    make_list(line, {"a": 'run = "true"'}, 'hours = "00:00-23:59"\nzone = "Europe/Berlin"')
    line("work", "run", "-q", "--at", "2099-01-01T00:00:00Z", "--detach")
    line.environment["PYTHONTZPATH"] = "/none"
    ended = line.ends("status")
    if ended.status:  # Otherwise the package tzdata is installed.
        assert (ended.status, "install the package tzdata" in ended.notes) == (2, True)
    line("cancel", status=ended.status)


def test_changed_caps_and_other_held_tasks_are_named_plainly(line: CommandLine) -> None:
    tasks = dict.fromkeys(("a", "b", "c"), 'run = "true"')
    make_list(line, tasks, 'attempts_max = 1\non_cap = "ask"\nmax_parallel = 1')
    line("work", "run", "-q", status=3, has_answer=True)
    refused = line("work", "answer", "c", "3", "--batch", "latest", status=2).notes
    assert refused.splitlines()[-1] == "hint: waiting tasks: b"
    line("work", "set", "attempts-max=2", "--batch", "latest")
    line("resume", "-q", status=3, has_answer=True)
    assert "caps.attempts_max = 2" in line("events").text


def test_each_raised_cap_that_is_met_again_is_asked_and_announced(line: CommandLine) -> None:
    make_list(line, {"paid": PAID}, 'attempts_max = 1\non_cap = "ask"\non_blocked = "wait"\nmax_parallel = 1')
    process = line.start("work", "run")
    wait_until((line.directory / "calls").exists, "the first task starts")
    for number in (2, 3, 4):
        task = f"paid/{number}"
        wait_until(partial(_is_asked, line, task), f"the cap asks for {task}")
        line("work", "answer", task, str(number))
    notes = line.finish(process).notes
    assert [notes.count(f"paid/{number} waits for an answer") for number in (2, 3, 4)] == [1, 1, 1]
    assert line("events", "--json").stdout.count(b'"BATCH_TASK_BLOCKED"') == 3


def _is_asked(line: CommandLine, task: str) -> bool:
    return task in line("work", "questions").text


@pytest.mark.parametrize("cost", ["1e308", "1e16", "9" * 400])
def test_huge_cost_is_unreadable(line: CommandLine, cost: str) -> None:
    run = f"""echo '{{\\"cost\\": {cost}}}'"""
    keys = f'run = "{run}"\nresult = {{ cost = "/cost" }}'
    make_list(line, {"a": keys, "b": keys})
    line("work", "run", "-q")
    assert status(line)["cost"] is None


@pytest.mark.parametrize("text", ["1_000", "٣", " 3 ", "3,5", "abc", "9" * 300])
def test_answer_to_a_cap_is_a_plain_number(line: CommandLine, text: str) -> None:
    make_list(line, {"paid": PAID}, 'attempts_max = 1\non_cap = "ask"\nmax_parallel = 1')
    line("work", "run", "-q", status=3, has_answer=True)
    refused = line("work", "answer", "paid/2", text, "--batch", "latest", status=2).notes
    assert "is not a whole number above 1, which is already used, and at most 9,007,199,254,740,992" in refused


@pytest.mark.parametrize(("key", "what"), [("hours", "hours such as"), ("zone", "a time zone such as")])
def test_empty_hours_are_refused(line: CommandLine, key: str, what: str) -> None:
    make_list(line, {"paid": PAID}, f'{key} = ""')
    assert what in line("work", "run", status=2).notes
