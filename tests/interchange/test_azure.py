"""Logging commands of Azure Pipelines stay on one line, and nothing in them ends a property."""

from __future__ import annotations

from codebatch.interchange.azure import issue_command


def test_special_characters_are_escaped() -> None:
    command = issue_command("50%\r\n##vso[x]a;b", {"sourcepath": "a;]%.py", "linenumber": 3})
    assert command == (
        "##vso[task.logissue type=error;sourcepath=a%3B%5D%AZP25.py;linenumber=3;]50%AZP25%0D%0A##vso[x%5Da%3Bb"
    )
