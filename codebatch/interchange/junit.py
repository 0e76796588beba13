"""JUnit XML, the format of test reports, as Jenkins defines it (junit-10.xsd of jenkinsci/xunit-plugin).

Each finding is a failed test. A further test is about completeness, so that no report is empty: it has an error if
results are missing.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

from codebatch.interchange.checkstyle import xml_attribute, xml_text
from codebatch.interchange.findings import Export, ExportedFinding, ExportedFindings, sort_by_location
from codebatch.interchange.locations import path_text

_Outcome = Literal["passed", "failure", "error", "skipped"]


class _Test(NamedTuple):
    class_name: str
    name: str
    outcome: _Outcome
    outcome_type: str
    message: str


def export_junit(exported: ExportedFindings) -> Export:
    """Return a JUnit document. The findings are sorted by file and location, one on each line.

    Skipped tests are allowed findings, and missing results that the user accepts.
    """
    missing = exported.incomplete
    outcome: _Outcome = "passed" if not missing else "skipped" if exported.is_accepted else "error"
    completeness = _Test("codebatch", "results are complete", outcome, "incomplete", missing)
    tests = [completeness, *map(_finding_test, sort_by_location(exported.findings))]
    names: Counter[str] = Counter()
    lines = []
    for test in tests:
        unique = test.name
        while unique in names:  # GitLab shows only one of several tests with the same name.
            names[test.name] += 1
            unique = f"{test.name} ({names[test.name]})"
        names[unique] = 1
        lines.append(_test_element(test, unique))
    counts = Counter(test.outcome for test in tests)
    totals = f'tests="{len(tests)}" failures="{counts["failure"]}" errors="{counts["error"]}"'
    head = f'<testsuites>\n<testsuite name="codebatch" {totals} skipped="{counts["skipped"]}">'
    document = ('<?xml version="1.0" encoding="UTF-8"?>', head, *lines, "</testsuite>\n</testsuites>\n")
    return Export(data="\n".join(document).encode(), count=len(exported.findings))


def _finding_test(exported: ExportedFinding) -> _Test:
    about = exported.diagnostic
    place = f":{about.line}:{about.column}" if about.line >= 1 else ""
    code = "" if about.code in about.message else f"{about.code} "
    name = f"{path_text(exported.path)}{place}: {code}{about.message}"
    outcome: _Outcome = "skipped" if exported.is_allowed else "failure"
    return _Test(f"{about.tool}.{about.code}", name, outcome, about.severity, about.message)


def _test_element(test: _Test, name: str) -> str:
    head = f"<testcase{xml_attribute('classname', test.class_name)}{xml_attribute('name', name)}"
    if test.outcome == "passed":
        return f"{head}/>"
    # Some services show only the message, others only the text.
    attributes = xml_attribute("message", test.message) + xml_attribute("type", test.outcome_type)
    text = xml_text(f"{test.outcome_type}: {test.message}")
    return f"{head}><{test.outcome}{attributes}>{text}</{test.outcome}></testcase>"
