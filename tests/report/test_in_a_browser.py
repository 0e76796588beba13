"""A report in a real browser: hostile trees are shown as text, no network is used, keys work, nothing overflows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codebatch.report.limits import ReportLimits
from codebatch.report.page import encode_page
from codebatch.report.tree import cut_tree
from tests.support.browser import CHROMIUM, Page, browse
from tests.support.command_line import CommandLine, write

from .made import contents, file

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium to look at a page with"),
]

ALERT = "</script><script>alert(1)</script>"
BODY = "def {name}(a):\n" + "".join(f"    if a > {n}:\n        return a * {n}  # {ALERT}\n" for n in range(12))
STEEP = "def steep(a):\n    if a:\n        for b in a:\n            while b:\n                b = b and a\n"


def make_hostile(root: Path) -> Path:
    """Create a tree whose names and contents contain markup and control characters."""
    for place, name in enumerate(
        [
            "<script>alert(1)<",
            "<!--",
            "javascript:alert(1)",
            "a\u2028b",
            "a\nb\x1b[31m",
            "\u202eevil",
            "'\"",
        ]
    ):
        write(root / name / f"<img src=x onerror=alert({place})>.py", BODY.format(name=f"f{place}") + STEEP)
    write(root / "broken.py", f"def {ALERT}\nassert f(), 1\n")
    write(root / "tests" / "test_it.py", BODY.format(name="test_it"))
    write(root / "one" / "a.py", "from two import b\n" + STEEP)
    write(root / "one" / "__init__.py", "")
    write(root / "two" / "b.py", "from one import a\nraise = 1\n")
    write(root / "two" / "__init__.py", "")
    return root


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("report")
    codebatch = CommandLine(root)
    project = make_hostile(root / "project <b>&amp;")
    codebatch("run", project, "--store", "store")
    write(project / "one" / "a.py", f"from two import b, c  # {ALERT}\n" + STEEP.replace("b and a", "b and a or f"))
    codebatch("run", project, "--store", "store")
    codebatch("report", "latest~1", "latest", "--store", "store", "-o", "report.html")
    return root / "report.html"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browse(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 400, 1600])
def test_page_renders_without_console_errors_requests_or_overflow(
    report: Path, page: Page, width: int, scheme: str
) -> None:
    page.open(report, width=width, scheme=scheme)
    page.ask("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert (page.complaints, page.requested) == ([], [report.as_uri()])
    assert page.ask("document.documentElement.scrollWidth") == width
    assert page.ask("document.documentElement.dataset.theme") == scheme
    drawn = page.ask(
        "['.tile', '.dot', '.cell', '.severity', '.matrix .back', '.side', '.name', '.since .severity', '.steps']"
        ".map((each) => document.querySelectorAll(each).length)"
    )
    assert all(drawn), drawn


@pytest.mark.parametrize("width", [320, 420, 600, 1600])
def test_labels_of_the_plot_are_apart_from_each_other(page: Page, tmp_path: Path, width: int) -> None:
    """The files are many, and close to each other. Their names have wide and narrow letters."""
    names = ("WorkflowWindow.py", "illi.py", "serializers.py", "MMMMWWWW.py", "test_utils_of_models.py", "__init__.py")
    files = [
        file(f"package_{n % 41}/{n % 7}/{n}_{names[n % 6]}", code=1 + n * n % 977, cognitive=1 + n * n % 211)
        for n in range(2000)
    ]
    changes = {each.key: 1 + number * number % 83 for number, each in enumerate(files)}
    (tmp_path / "report.html").write_bytes(encode_page(contents(cut_tree(files, ReportLimits(), changes))))
    page.open(tmp_path / "report.html", width=width)
    boxes = page.ask(
        "[...document.querySelectorAll('#hotspots text.label')].map((each) => each.getBoundingClientRect())"
        ".map(({ left, right, top, bottom }) => [left, right, top + 2, bottom - 2])"
    )
    assert 2 <= len(boxes) <= min(14, width / 70)
    for place, (left, right, top, bottom) in enumerate(boxes):
        assert 0 <= left <= right <= width
        for other in boxes[:place]:
            assert right < other[0] or other[1] < left or bottom < other[2] or other[3] < top


def test_text_from_the_source_tree_is_escaped(report: Path, page: Page) -> None:
    page.open(report)
    page.ask("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.ask("document.querySelectorAll('script').length") == 2
    assert page.ask("document.querySelectorAll('img, b, iframe, object, link, a:not([href^=\"#\"])').length") == 0
    assert (
        page.ask(
            "[...document.querySelectorAll('*')].some((each) => each.getAttributeNames()"
            ".some((name) => name.startsWith('on') || name === 'style'))"
        )
        is False
    )
    text = page.ask("document.body.innerText")
    assert "project <b>&amp;" in text
    assert "<img src=x onerror=alert(" in text
    assert "</script><script>alert(1)</script>" in text
    assert not {"\x1b", "\u2028", "\u202e"} & set(text)
    assert {r"a\u2028b", r"a\nb\x1b[31m", r"\u202eevil"} <= set(
        page.ask("[...document.querySelectorAll('#hotspots .path')].flatMap((each) => each.textContent.split('/'))")
    )


def test_tree_map_is_navigated_by_keys(report: Path, page: Page) -> None:
    page.open(report)
    page.ask("document.querySelector('#tree g[tabindex=\"0\"]').focus()")
    here = "document.querySelector('#tree [aria-current]').textContent"
    root = page.ask(here)
    first = page.ask("document.activeElement.getAttribute('aria-label')")
    page.press("ArrowRight")
    assert page.ask("document.activeElement.getAttribute('aria-label')") != first
    facts = page.ask("document.querySelector('#tree .facts').textContent")
    page.press("Enter")
    assert page.ask(here) != root
    assert page.ask("document.querySelector('#tree').contains(document.activeElement)")
    page.press("Escape")
    assert page.ask(here) == root
    assert "lines of code" in facts


def test_key_press_sorts_tables_and_switches_the_theme(report: Path, page: Page) -> None:
    page.open(report)
    column = "[...document.querySelectorAll('#functions tbody tr td:nth-child(2)')].map((each) => +each.textContent)"
    assert page.ask(column) == sorted(page.ask(column), reverse=True)
    page.ask("document.querySelector('#functions thead th:nth-child(2) button').focus()")
    page.press("Enter")
    assert page.ask(column) == sorted(page.ask(column))
    assert page.ask("document.querySelector('#functions th[aria-sort]').getAttribute('aria-sort')") == "ascending"
    page.ask("document.querySelector('.theme').focus()")
    page.press("Enter")
    assert page.ask("document.documentElement.dataset.theme") == "dark"


def test_switch_includes_test_files(report: Path, page: Page) -> None:
    page.open(report)
    rows = "[...document.querySelectorAll('#functions tbody .path')].map((each) => each.textContent)"
    assert page.ask(rows)
    assert not any("test_it.py" in path for path in page.ask(rows))
    page.ask("document.querySelector('.switches input').click()")
    assert any("test_it.py" in path for path in page.ask(rows))
    assert page.ask(
        "[...document.querySelectorAll('#hotspots .path')].some((e) => e.textContent.includes('test_it.py'))"
    )
    page.ask("document.querySelector('.switches input').click()")
    assert not any("test_it.py" in path for path in page.ask(rows))
    links = "[...document.querySelectorAll('a.tile, .cards a')].map((each) => each.getAttribute('href'))"
    assert all(page.ask(f"!!document.querySelector('{link}')") for link in page.ask(links))


def test_incomplete_report_marks_every_empty_list_as_so_far(page: Page, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_bytes(encode_page(contents(incomplete="3% of the batch is done")))
    page.open(tmp_path / "report.html")
    assert page.ask("document.querySelector('[role=alert]').textContent").startswith(
        "Incomplete: 3% of the batch is done"
    )
    texts = page.ask("[...document.querySelectorAll('.none, .tile dt')].map((each) => each.textContent)")
    assert len(texts) > 8
    assert [text for text in texts if "so far" not in text] == []


def test_page_can_be_printed(report: Path, page: Page) -> None:
    page.open(report, scheme="dark")
    assert page.print().startswith(b"%PDF")
    assert page.complaints == []
