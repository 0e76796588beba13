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

# In these languages, a line with an error that contains one of _MARKS shows that the file is a template.
_MARKED_LANGUAGES = frozenset(("css", "html", "javascript", "json", "jsonc", "toml", "tsx", "typescript", "yaml"))
# Marks of Jinja, Django, Twig, Handlebars, Mustache, Liquid, Go, ERB and EJS, and named placeholders.
_TEMPLATE_MARKS = re.compile(rb"\{%.*%\}|(?<!\$)\{\{.*\}\}|\{#.*#\}|<%.*%>|(?<![\w\"'])%[A-Z_]{2,}%(?![\w\"'])")
# In code, two braces can begin a nested list. So a mark in code must contain only a name, which filters can follow.
_CODE_LANGUAGES = frozenset(("go", "java", "php", "python", "ruby", "rust"))
_CODE_MARKS = re.compile(rb"\{\{-?\s*[.$]?[A-Za-z_][\w.]*(?:\s*\|[^{}\n]*)?\s*-?\}\}")
# Marks of Velocity, as in Maven archetypes.
_JAVA_MARKS = re.compile(rb"(?<![\w\"'])\$\{[A-Za-z_][\w.]*\}")
# Marks that are not valid code in any language: statements, blocks, and `{{` at the start of a line.
_STATEMENT_MARK = (
    rb"\{%[-+~]?\s*\w[^%]{0,1000}%\}|<%[=#@!-]?\s*[\w@][^%]{0,1000}%>|"
    rb"(?<!\$)\{\{[-~]?\s*(?:[#/^>!&]\s*\w|(?:if|else|end|range|with|template|define|block|include)\b)|^[ \t]*\{\{[-\s]"
)
_STATEMENT_MARKS = re.compile(_STATEMENT_MARK, re.MULTILINE)
# In files that are not HTML, a string literal can contain a mark. So marks that cause an error must be outside quotes.
_UNQUOTED_STATEMENT_MARKS = re.compile(rb"(?<![\"'`])(?:%s)" % _STATEMENT_MARK, re.MULTILINE)
_VALUE_MARKS = re.compile(rb"(?<!\$)\{\{[-~{]?\s*[\w.$@(\"'][^{}]{0,1000}\}\}")
# Marks such as `__NAME__` in JSON. In other languages, such texts are names.
_DATA_MARKS = re.compile(rb"(?<![\w\"'])__\w+__(?![\w\"'])")
_DATA_LANGUAGES = frozenset(("json", "jsonc"))
_JSON_KEY = re.compile(rb"\"[^\"\n]{0,200}\"\s*:")
_JAVASCRIPT_KEY = re.compile(rb"[{,]\s*(?:[A-Za-z_$][\w$]{0,200}|'[^'\n]{0,200}')\s*:")
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
    if file.language == "html":
        return _has_html_marks(file.utf8)
    if file.language not in _MARKED_LANGUAGES and file.language not in _CODE_LANGUAGES:
        return False
    return file.has_syntax_error and file.derived_persistently(_is_broken_by_marks)


def _has_html_marks(utf8: bytes) -> bool:
    # Two searches for literal bytes are much faster than the patterns.
    if b"{{" in utf8 and _VALUE_MARKS.search(utf8) is not None:
        return True
    return (b"{%" in utf8 or b"<%" in utf8 or b"{{" in utf8) and _STATEMENT_MARKS.search(utf8) is not None


def _is_broken_by_marks(file: SourceFile) -> bool:
    """Return whether a file with errors has the name of a template, or has marks on the lines with its errors."""
    is_code = file.language in _CODE_LANGUAGES
    if not is_code and _TEMPLATE_FILE_NAME.fullmatch(file.path.rpartition(b"/")[2]):
        return True
    is_among_templates = _TEMPLATES_DIRECTORY.search(file.path) is not None
    for number, broken in enumerate(_iter_broken_lines(file)):
        if _UNQUOTED_STATEMENT_MARKS.search(broken) or (is_among_templates and _VALUE_MARKS.search(broken)):
            return True
        first = broken.partition(b"\n")[0][:_LINE_BYTES_MAX]
        if is_code and _CODE_MARKS.search(first):
            return True
        if file.language == "java" and _JAVA_MARKS.search(broken[:_LINE_BYTES_MAX]):
            return True
        if number == 0 and not is_code and _has_template_marks(first, file.language):
            return True
    return False


def _has_template_marks(line: bytes, language: str) -> bool:
    return _TEMPLATE_MARKS.search(line) is not None or (
        language in _DATA_LANGUAGES and _DATA_MARKS.search(line) is not None
    )


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


def is_javascript_object(file: SourceFile) -> bool:
    """Return whether a JSON file with errors is probably a JavaScript object: no key is in double quotes."""
    if file.language not in _DATA_LANGUAGES or not file.has_syntax_error:
        return False
    return _JAVASCRIPT_KEY.search(file.utf8) is not None and _JSON_KEY.search(file.utf8) is None
