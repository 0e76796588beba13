"""Patterns and rewrites of CSS, HTML and Markdown."""

from __future__ import annotations

from codebatch_workers.syntax.patterns.language_patterns import NO_CONTEXT, LanguagePatterns, RuleExample

PATTERNS = {
    "css": LanguagePatterns(
        example=RuleExample("float: $SIDE", "float: {SIDE}", "a { float: left; }\n", "a { color: red; }\n"),
        stand_ins=("{n}", "{n}: {n};"),
        contexts=(NO_CONTEXT, ("a { ", ";}")),
        blocks=frozenset({"stylesheet", "block"}),
    ),
    "html": LanguagePatterns(
        example=RuleExample("<center>$$$</center>", "<center> is obsolete", "<center>a</center>\n", "<p>a</p>\n")
    ),
    "markdown": LanguagePatterns(
        example=RuleExample(
            "", "a heading of the sixth level", "###### a\n", "# a\n", query="(atx_heading (atx_h6_marker)) @report"
        )
    ),
}
