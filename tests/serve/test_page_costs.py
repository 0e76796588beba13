"""The costs of tasks on the live page in a real browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.serve.server_process import serve
from tests.serve.serving import LiveStore
from tests.serve.test_page_in_a_browser import check_quiet, url_of
from tests.support.browser import CHROMIUM, Page
from tests.support.command_line import CommandLine, wait_until, write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]

PAID_LIST = """
cost_max = 9
cost_unit = "USD"
max_parallel = 4
[defaults]
backoff_seconds = 0.01
[tasks.hidden]
run = "while ! test -e go; do sleep 0.05; done; echo '{\\"cost\\": 0.125}'"
result = { cost = "/cost" }
[tasks.paid]
run = "echo '{\\"cost\\": 0.0625}'; test {try} -ge 2"
result = { cost = "/cost" }
retries = 1
[tasks.odd]
run = "echo no cost"
result = { cost = "/cost" }
[tasks.free]
run = "true"
"""


def filter_tasks(page: Page, text: str) -> None:
    """Show only the tasks whose name contains a text."""
    page.ask(f"document.querySelector('#filter').value = {json.dumps(text)}")
    page.ask("document.querySelector('#filter').dispatchEvent(new Event('input'))")


def wait_for_last_status(page: Page) -> None:
    """Wait until the page, which asks for the status every five seconds while there is news, has stopped to ask."""
    count = -1
    while count != (count := sum(url.endswith("?") for url in page.requested)):
        page.ask("new Promise((resolve) => setTimeout(resolve, 5500))")


def test_page_shows_what_tasks_and_attempts_cost(own_page: Page, tmp_path: Path) -> None:
    """A task that ends while its row is not visible has its cost as soon as its row is visible."""
    page, codebatch = own_page, CommandLine(tmp_path)
    write(tmp_path / "work.toml", PAID_LIST)
    running = codebatch.start("work", "run", "--store", "store", "-q")

    def task_costs() -> dict[str, str]:
        return dict(
            page.ask(
                "[...document.querySelectorAll('#table .row:not(.head)')].filter((row) => !row.hidden)"
                ".map((row) => ['.id', '.cost'].map((part) => row.querySelector(part).innerText))"
            )
        )

    try:
        wait_until(lambda: any(tmp_path.glob("store/batches/*/events/*")), "the run begins")
        with serve(tmp_path / "store") as server:
            page.open(url_of(server))
            numbers = "document.querySelector('#numbers').innerText"
            page.wait_until(f"{numbers}.includes('3 of 4') && {numbers}.includes('cost 0.125 USD')")
            page.wait_until(f"{numbers}.includes('cost unknown for 1 attempt')")
            page.wait_until("document.querySelector('#table').innerText.includes('0.125 USD')")
            assert task_costs() == {"hidden": "", "paid": "0.125 USD", "odd": "", "free": ""}
            places = "[...document.querySelectorAll('#table .row.head > *')].map((each) => each.offsetTop)"
            assert len(set(page.ask(places))) == 1, "the column is in the same line"
            # The attempts of a task.
            page.ask(
                "[...document.querySelectorAll('#table .row .id')].find((each) => each.innerText === 'paid').click()"
            )
            page.wait_until("document.querySelectorAll('#panel tbody tr').length === 2")
            assert page.ask("document.querySelector('#panel thead').innerText").split() == [
                "Attempt", "Started", "Time", "Memory", "Cost", "Ended",
            ]  # fmt: skip
            costs = "[...document.querySelectorAll('#panel tbody tr')].map((row) => row.cells[4].innerText)"
            assert page.ask(costs) == ["0.0625 USD"] * 2
            page.press("Escape")
            # A task that ends while its row is hidden.
            filter_tasks(page, "no such task")
            page.wait_until("document.querySelectorAll('#table .row:not(.head):not([hidden])').length === 0")
            write(tmp_path / "go", "")
            page.wait_until("document.querySelector('#state').innerText.includes('completed')")
            page.wait_until(f"{numbers}.includes('cost 0.25 USD')")
            wait_for_last_status(page)
            filter_tasks(page, "")
            page.wait_until("document.querySelectorAll('#table .row:not(.head):not([hidden])').length === 4")
            page.wait_until("document.querySelector('#table .row:not(.head) .cost').innerText === '0.125 USD'")
            assert task_costs() == {"hidden": "0.125 USD", "paid": "0.125 USD", "odd": "", "free": ""}
            check_quiet(page, server)
    finally:
        write(tmp_path / "go", "")
        running.communicate()


def test_page_of_tasks_without_costs_has_no_column_for_them(own_page: Page, live_store: LiveStore) -> None:
    page = own_page
    with serve(live_store.root) as server:
        page.open(url_of(server, live_store.work))
        page.wait_until("document.querySelector('#connection').innerText === 'live'")
        page.wait_until("document.querySelectorAll('#table .row').length > 8")
        assert "Cost" not in page.ask("document.querySelector('#table').innerText")
        assert "cost" not in page.ask("document.querySelector('#numbers').innerText")
