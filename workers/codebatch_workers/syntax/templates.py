"""Templates: text of a language with marks in it, where a program puts in values or repeats a part.

Any HTML that has marks is one, for browsers take the marks for text and the grammar mostly does, too. A file of another
language is one if the marks are what breaks it: they stand within its errors. GitHub's `${{ … }}` are no such marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codebatch_workers.syntax.broken_trees import iter_broken
from codebatch_workers.syntax.language.languages import TEMPLATE_LANGUAGES
from codebatch_workers.syntax.source import SourceFile

# Languages in which nothing but a template has these marks on the line of an error.
_LANGUAGES = frozenset(("css", "html", "javascript", "json", "jsonc", "toml", "tsx", "typescript", "yaml"))
# Jinja, Django, Twig, Handlebars, Mustache, Liquid, Go; ERB, EJS; and where a value is put in by its name.
_MARKS = re.compile(rb"\{%.*%\}|(?<!\$)\{\{.*\}\}|\{#.*#\}|<%.*%>|(?<![\w\"'])%[A-Z_]{2,}%(?![\w\"'])")
# In code two braces may begin a list of lists: one name stands in them, which may be filtered.
_CODE_LANGUAGES = frozenset(("go", "java", "php", "python", "ruby", "rust"))
_MARKS_OF_CODE = re.compile(rb"\{\{-?\s*[.$]?[A-Za-z_][\w.]*(?:\s*\|[^{}\n]*)?\s*-?\}\}")
# Velocity, as archetypes of Maven have it.
_MARKS_OF_JAVA = re.compile(rb"(?<![\w\"'])\$\{[A-Za-z_][\w.]*\}")
# Marks that are no code of any language: of statements, of blocks, at the beginning of a line.
_STATEMENT = (
    rb"\{%[-+~]?\s*\w[^%]{0,1000}%\}|<%[=#@!-]?\s*[\w@][^%]{0,1000}%>|"
    rb"(?<!\$)\{\{[-~]?\s*(?:[#/^>!&]\s*\w|(?:if|else|end|range|with|template|define|block|include)\b)|^[ \t]*\{\{[-\s]"
)
_STATEMENTS = re.compile(_STATEMENT, re.MULTILINE)
# A text of another language may hold one: what breaks a file stands in no quotes.
_UNQUOTED_STATEMENTS = re.compile(rb"(?<![\"'`])(?:%s)" % _STATEMENT, re.MULTILINE)
_VALUES = re.compile(rb"(?<!\$)\{\{[-~{]?\s*[\w.$@(\"'][^{}]{0,1000}\}\}")
# In other languages that is a name: `__proto__`.
_MARKS_OF_DATA = re.compile(rb"(?<![\w\"'])__\w+__(?![\w\"'])")
_DATA = frozenset(("json", "jsonc"))
_KEY = re.compile(rb"\"[^\"\n]{0,200}\"\s*:")
_KEY_OF_SCRIPT = re.compile(rb"[{,]\s*(?:[A-Za-z_$][\w$]{0,200}|'[^'\n]{0,200}')\s*:")
_NAME = re.compile(rb"[^/]*\.(?:tpl|tmpl|template)\.[^/.]+")
_DIRECTORY = re.compile(rb"(?:^|/)templates?/", re.IGNORECASE)
_LINE_BYTES_MAX = 1000


def is_template(file: SourceFile) -> bool:
    """Return whether a file is a template, by its language, its directory, its marks, or its name if it is broken."""
    if file.language in TEMPLATE_LANGUAGES:
        return True
    if file.file_class == "template" and (b"{{" in file.utf8 or b"{%" in file.utf8):
        return True
    if file.language == "html":
        return _has_marks_of_html(file.utf8)
    if file.language not in _LANGUAGES and file.language not in _CODE_LANGUAGES:
        return False
    return file.has_syntax_error and file.lasting(_is_broken_by_marks)


def _has_marks_of_html(utf8: bytes) -> bool:
    # Looking for two bytes is far cheaper than the expressions.
    if b"{{" in utf8 and _VALUES.search(utf8) is not None:
        return True
    return (b"{%" in utf8 or b"<%" in utf8 or b"{{" in utf8) and _STATEMENTS.search(utf8) is not None


def _is_broken_by_marks(file: SourceFile) -> bool:
    """Return whether the name calls a broken file a template, or marks stand where it is broken."""
    is_code = file.language in _CODE_LANGUAGES
    if not is_code and _NAME.fullmatch(file.path.rpartition(b"/")[2]):
        return True
    is_among_templates = _DIRECTORY.search(file.path) is not None
    for number, broken in enumerate(_iter_broken_lines(file)):
        if _UNQUOTED_STATEMENTS.search(broken) or (is_among_templates and _VALUES.search(broken)):
            return True
        first = broken.partition(b"\n")[0][:_LINE_BYTES_MAX]
        if is_code and _MARKS_OF_CODE.search(first):
            return True
        if file.language == "java" and _MARKS_OF_JAVA.search(broken[:_LINE_BYTES_MAX]):
            return True
        if number == 0 and not is_code and _has_marks(first, file.language):
            return True
    return False


def _has_marks(line: bytes, language: str) -> bool:
    return _MARKS.search(line) is not None or (language in _DATA and _MARKS_OF_DATA.search(line) is not None)


def _iter_broken_lines(file: SourceFile) -> Iterator[bytes]:
    """Yield the lines that hold an error of the tree, from the first on, no line twice."""
    if file.tree is None:
        return
    nodes = iter_broken(file.tree.root_node, file.language)
    end = 0
    for start_byte, end_byte in sorted((node.start_byte, node.end_byte) for node in nodes):
        start = max(file.utf8.rfind(b"\n", 0, start_byte) + 1, end)
        if end_byte >= end:
            line_end = file.utf8.find(b"\n", end_byte)
            end = len(file.utf8) if line_end < 0 else line_end
            yield file.utf8[start:end]


def is_of_script(file: SourceFile) -> bool:
    """Whether JSON that has errors is written as scripts write objects: none of its keys is in double quotes."""
    if file.language not in _DATA or not file.has_syntax_error:
        return False
    return _KEY_OF_SCRIPT.search(file.utf8) is not None and _KEY.search(file.utf8) is None
