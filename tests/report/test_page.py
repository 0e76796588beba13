"""The page of a report: text of a tree stays text, the policy allows only the page's own parts, colors are readable."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch.report.limits import ReportLimits
from codebatch.report.page import encode_data, encode_page
from codebatch.report.tree import cut_tree

from .made import contents, file

HOSTILE = ["</script><script>alert(1)</script>", "<!--<script>", "]]>", "{{script}}", "\u2028\u2029", "&lt;", "\0\x1b"]


class _Elements(HTMLParser):
    """The tags of a page, and the contents of its scripts and styles."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.contents_of_tags: list[tuple[str, str]] = []
        self.policy = ""
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        about = dict(attrs)
        if about.get("http-equiv") == "Content-Security-Policy":
            self.policy = about["content"] or ""

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] in ("script", "style") and data.strip():
            self.contents_of_tags.append((self.tags[-1], data))


@given(st.text() | st.sampled_from(HOSTILE))
def test_encoded_data_round_trips_and_contains_no_markup(text: str) -> None:
    encoded = encode_data(contents(title=text))
    assert json.loads(encoded)["title"] == text
    assert not re.search("[<>&\u2028\u2029]", encoded.decode())


@pytest.mark.parametrize("text", HOSTILE)
def test_text_does_not_affect_the_elements_of_the_page(text: str) -> None:
    hostile, plain = (
        _Elements(encode_page(contents(cut_tree([file(f"{name}/a.py")], ReportLimits(), None), name)))
        for name in (text, "plain")
    )
    assert hostile.tags == plain.tags
    assert [part for part in hostile.contents_of_tags if not part[1].startswith('{"')] == [
        part for part in plain.contents_of_tags if not part[1].startswith('{"')
    ]


def test_security_policy_allows_only_the_script_and_style_of_the_page() -> None:
    page = _Elements(encode_page(contents()))
    (_, style), (_, data), (_, script) = page.contents_of_tags
    assert json.loads(data)["title"] == "made"
    digests = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (script, style)]
    assert page.policy == (
        f"default-src 'none'; script-src 'sha256-{digests[0]}'; style-src 'sha256-{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def test_script_creates_no_markup_or_address_from_text() -> None:
    script = _Elements(encode_page(contents())).contents_of_tags[-1][1]
    made = r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|fetch\(|XMLHttpRequest|import\("
    assert re.findall(made, script) == []
    assert set(re.findall(r"\b(?:href|src|action)\b: *([^ ]+)", script)) == {"`#${id}`"}


def _luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colors as WCAG 2.2 defines it."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_contrast_is_sufficient_and_steps_differ_in_lightness(scheme: str) -> None:
    style = _Elements(encode_page(contents())).contents_of_tags[0][1]
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w{6})", part)) for part in style.split("data-theme")[:2])
    colors = light if scheme == "light" else {**light, **dark}
    pairs = [(ink, ground) for ink in ("ink", "muted") for ground in ("page", "raised", "sunken")]
    pairs += [(ink, ground) for ink in ("accent", "error", "warning", "info", "hint") for ground in ("page", "raised")]
    pairs += [(f"t{step}", f"s{step}") for step in range(6)] + [("b-ink", f"b{step}") for step in (1, 2, 3)]
    pairs += [("cycle-ink", "cycle"), ("cycle-soft-ink", "cycle-soft"), ("mark-ink", "mark"), ("accent-ink", "accent")]
    assert {pair: round(ratio, 2) for pair in pairs if (ratio := _contrast(*map(colors.__getitem__, pair))) < 4.5} == {}
    # The steps must be distinguishable without hues.
    steps = [_luminance(colors[f"s{step}"]) for step in range(6)]
    assert steps == sorted(steps, reverse=scheme == "light")
    assert all(_contrast(colors[f"s{step}"], colors[f"s{step + 1}"]) > 1.15 for step in range(5))
