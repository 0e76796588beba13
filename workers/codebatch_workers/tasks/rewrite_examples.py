"""The check of a rewrite by its example: `bad` must become exactly `good`, and `good` must stay as it is."""

from __future__ import annotations

from collections.abc import Sequence

from codebatch_workers.syntax.patterns.finders import PatternError, TooManySteps
from codebatch_workers.syntax.patterns.rewriting import LeftOutMatch, RewriteRule, compile_rewrite, rewrite_content
from codebatch_workers.syntax.source import SourceFile

_SHOWN_CHARACTERS_MAX = 200


def check_rewrite(pattern: str, rewrite: str, language: str, bad: str, good: str) -> None:
    """Raise ValueError if a rewrite is invalid, or does not turn `bad` into `good`."""
    try:
        rule = compile_rewrite(pattern, rewrite, language)
    except PatternError as error:
        raise ValueError(f"{error}; {error.hint}") from error
    rewritten, left_out = _rewrite_example(rule, bad)
    if left_out:
        raise ValueError(f"`bad` is not rewritten: {left_out[0].reason}")
    if rewritten == bad:
        raise ValueError("the pattern does not match in `bad`, or the new code is the same")
    if rewritten != good:
        raise ValueError(f"`bad` does not become `good`, but {_shown(rewritten)}")
    again, _ = _rewrite_example(rule, good)
    if again != good:
        raise ValueError(f"`good` is rewritten again, into {_shown(again)}")


def _rewrite_example(rule: RewriteRule, text: str) -> tuple[str, Sequence[LeftOutMatch]]:
    # An example has no file name, so an attribute sets its language.
    contexts = {"attributes": b"language=" + rule.finder.language.encode()}
    file = SourceFile(b"example", text.encode(), executable=False, contexts=contexts)
    try:
        content, left_out = rewrite_content(file, [rule])
    except TooManySteps as error:
        raise ValueError("the pattern matches in too many ways") from error
    return content.decode(), left_out


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARACTERS_MAX else f"{text[:_SHOWN_CHARACTERS_MAX]}…")
