"""Whether a file is what some other file is made of: its marks stand where it breaks first."""

from __future__ import annotations

from codebatch.model.late_patterns import LatePattern
from codebatch_workers.syntax.broken_trees import iter_broken
from codebatch_workers.syntax.source import SourceFile

_LANGUAGES = frozenset(("css", "html", "javascript", "json", "jsonc", "toml", "tsx", "typescript", "yaml"))
# Jinja, Django, Twig, Handlebars, Mustache, Liquid, Go; ERB, EJS; and where a value is put in by its name.
_MARKS = LatePattern(rb"\{%.*%\}|\{\{.*\}\}|\{#.*#\}|<%.*%>|(?<![\w\"'])%[A-Z_]{2,}%(?![\w\"'])")
# In other languages that is a name: `__proto__`.
_MARKS_OF_DATA = LatePattern(rb"(?<![\w\"'])__\w+__(?![\w\"'])")
_DATA = frozenset(("json", "jsonc"))
_KEY = LatePattern(rb"\"[^\"\n]{0,200}\"\s*:")
_KEY_OF_SCRIPT = LatePattern(rb"[{,]\s*(?:[A-Za-z_$][\w$]{0,200}|'[^'\n]{0,200}')\s*:")
_NAME = LatePattern(rb"[^/]*\.(?:tpl|tmpl|template)\.[^/.]+")
_LINE_BYTES_MAX = 1000


def is_template(file: SourceFile) -> bool:
    """Whether a file that has errors is called a template, or the line of its first error has marks of one."""
    if file.language not in _LANGUAGES or not file.has_syntax_error or file.tree is None:
        return False
    if _NAME.fullmatch(file.path.rpartition(b"/")[2]):
        return True
    first = min(each.start_byte for each in iter_broken(file.tree.root_node, file.language))
    start = file.utf8.rfind(b"\n", 0, first) + 1
    line = file.utf8[start : start + _LINE_BYTES_MAX].partition(b"\n")[0]
    return _MARKS.search(line) is not None or (file.language in _DATA and _MARKS_OF_DATA.search(line) is not None)


def is_of_script(file: SourceFile) -> bool:
    """Whether JSON that has errors is written as scripts write objects: none of its keys is in double quotes."""
    if file.language not in _DATA or not file.has_syntax_error:
        return False
    return _KEY_OF_SCRIPT.search(file.utf8) is not None and _KEY.search(file.utf8) is None
