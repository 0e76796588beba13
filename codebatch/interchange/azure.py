"""Issues of a job in Azure Pipelines, as logging commands.

Source: https://learn.microsoft.com/azure/devops/pipelines/scripts/logging-commands (LogIssue, "Formatting commands").
"""

from __future__ import annotations

import re
from collections.abc import Mapping

ISSUES_MAX = 10
"""Maximum number of errors of one step that Azure Pipelines shows (`_maxIssueCount` of its agent)."""
_ESCAPES: Mapping[str, str] = {"%": "%AZP25", "\r": "%0D", "\n": "%0A", ";": "%3B", "]": "%5D"}
_SPECIAL_CHARACTER = re.compile("[%\r\n;\\]]")


def issue_command(message: str, properties: Mapping[str, object]) -> str:
    """Return the logging command that adds an error to a job, on one line. `properties` can have `sourcepath` etc."""
    texts = (f"{name}={_escape(str(value))};" for name, value in {"type": "error", **properties}.items())
    return f"##vso[task.logissue {''.join(texts)}]{_escape(message)}"


def _escape(text: str) -> str:
    return _SPECIAL_CHARACTER.sub(lambda match: _ESCAPES[match[0]], text)
