"""Templates: text of some language with marks, which a program replaces by values or repeated parts.

HTML with marks is a template, although browsers and usually the grammar accept the marks as text. A file in another
language is a template only if its marks cause syntax errors. GitHub's `${{ … }}` is not a mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codebatch_workers.syntax.broken_trees import iter_broken_nodes
from codebatch_workers.syntax.language.languages import TEMPLATE_LANGUAGES
from codebatch_workers.syntax.source import SourceFile

# Marks of Jinja, Django, Twig, Handlebars, Mustache, Liquid, Go, ERB and EJS, and named placeholders.
_TEMPLATE_MARKS = re.compile(rb"\{%.*%\}|(?<!\$)\{\{.*\}\}|\{#.*#\}|<%.*%>|(?<![\w\"'])%[A-Z_]{2,}%(?![\w\"'])")
# In code, two braces can begin a nested list. So a mark in code must contain only a name, which filters can follow.
_CODE_MARKS = re.compile(rb"\{\{-?\s*[.$]?[A-Za-z_][\w.]*(?:\s*\|[^{}\n]*)?\s*-?\}\}")
# Marks that are not valid code in any language: statements, blocks, and `{{` at the start of a line.
_STATEMENT_MARK = (
    rb"\{%[-+~]?\s*\w[^%]{0,1000}%\}|<%[=#@!-]?\s*[\w@][^%]{0,1000}%>|"
    rb"(?<!\$)\{\{[-~]?\s*(?:[#/^>!&]\s*\w|(?:if|else|end|range|with|template|define|block|include)\b)|^[ \t]*\{\{[-\s]"
)
_STATEMENT_MARKS = re.compile(_STATEMENT_MARK, re.MULTILINE)
# In files that are not HTML, a string literal can contain a mark. So marks that cause an error must be outside quotes.
_UNQUOTED_STATEMENT_MARKS = re.compile(rb"(?<![\"'`])(?:%s)" % _STATEMENT_MARK, re.MULTILINE)
_VALUE_MARKS = re.compile(rb"(?<!\$)\{\{[-~{]?\s*[\w.$@(\"'][^{}]{0,1000}\}\}")
_TEMPLATE_FILE_NAME = re.compile(rb"[^/]*\.(?:tpl|tmpl|template)\.[^/.]+")
_TEMPLATES_DIRECTORY = re.compile(rb"(?:^|/)templates?/", re.IGNORECASE)
_LINE_BYTES_MAX = 1000


def is_template(file: SourceFile) -> bool:
    """Return whether a file is a template.

    The language, the directory or the marks of a file can show this. If the file has errors, its name can also show it.
    """
    if file.language in TEMPLATE_LANGUAGES:
        return True
    if file.file_class == "template" and (b"{{" in file.utf8 or b"{%" in file.utf8):
        return True
    if file.syntax.allows_template_marks:
        return _has_marks(file.utf8)
    if file.syntax.template_marks is None:
        return False
    return file.has_syntax_error and file.derived_persistently(_is_broken_by_marks)


def _has_marks(utf8: bytes) -> bool:
    # Two searches for literal bytes are much faster than the patterns.
    if b"{{" in utf8 and _VALUE_MARKS.search(utf8) is not None:
        return True
    return (b"{%" in utf8 or b"<%" in utf8 or b"{{" in utf8) and _STATEMENT_MARKS.search(utf8) is not None


def _is_broken_by_marks(file: SourceFile) -> bool:
    """Return whether a file with errors has the name of a template, or has marks on the lines with its errors."""
    marks = file.syntax.template_marks
    assert marks is not None
    if not marks.are_names and _TEMPLATE_FILE_NAME.fullmatch(file.path.rpartition(b"/")[2]):
        return True
    is_among_templates = _TEMPLATES_DIRECTORY.search(file.path) is not None
    for number, broken in enumerate(_iter_broken_lines(file)):
        if _UNQUOTED_STATEMENT_MARKS.search(broken) or (is_among_templates and _VALUE_MARKS.search(broken)):
            return True
        first = broken.partition(b"\n")[0][:_LINE_BYTES_MAX]
        if marks.are_names:
            if _CODE_MARKS.search(first) or (marks.others and marks.others.search(broken[:_LINE_BYTES_MAX])):
                return True
        elif number == 0 and (_TEMPLATE_MARKS.search(first) or (marks.others and marks.others.search(first))):
            return True
    return False


def _iter_broken_lines(file: SourceFile) -> Iterator[bytes]:
    """Yield the lines of each error in the tree, in text order. Lines that several errors share are yielded once."""
    if file.tree is None:
        return
    nodes = iter_broken_nodes(file.tree.root_node, file.language)
    end = 0
    for start_byte, end_byte in sorted((node.start_byte, node.end_byte) for node in nodes):
        start = max(file.utf8.rfind(b"\n", 0, start_byte) + 1, end)
        if end_byte >= end:
            line_end = file.utf8.find(b"\n", end_byte)
            end = len(file.utf8) if line_end < 0 else line_end
            yield file.utf8[start:end]
