"""Languages that the first or last lines of a file declare: shebangs, and mode lines of Emacs and Vim.

As on GitHub (linguist), a shebang counts more than the extension of a file. There are three exceptions, in which the
extension says more: a template, a language that the interpreter runs after translation (TypeScript by node), and a
shell script that begins with `exec python3 "$0"`, so that another interpreter reads the same file. Unlike linguist,
mode lines count only if the rest leaves the language open: `-*- java -*-` is also the mode line of many other files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping


def table_by_word(table: Mapping[str, str]) -> dict[bytes, str]:
    """Return the keys of a table by each word of their values."""
    return {word.encode(): language for language, words in table.items() for word in words.split()}


# Names of interpreters in shebangs, without a version number.
_LANGUAGE_BY_INTERPRETER = table_by_word(
    {
        "awk": "awk gawk mawk",
        "bash": "ash bash bats dash ksh mksh sh",
        "clojure": "bb clojure",
        "coffeescript": "coffee",
        "crystal": "crystal",
        "elixir": "elixir",
        "erlang": "escript",
        "fish": "fish",
        "groovy": "groovy",
        "haskell": "runghc runhaskell",
        "javascript": "bun gjs node nodejs",
        "julia": "julia",
        "just": "just",
        "lisp": "sbcl",
        "lua": "lua luajit",
        "make": "make",
        "ocaml": "ocaml",
        "perl": "cperl perl",
        "php": "php",
        "powershell": "pwsh",
        "python": "pypy python rpython uv",
        "r": "Rscript",
        "racket": "racket",
        "ruby": "jruby macruby rake rbx ruby",
        "rust": "rust-script",
        "scala": "scala",
        "scheme": "csi guile",
        "swift": "swift",
        "tcl": "expect tclsh wish",
        "tcsh": "csh tcsh",
        "typescript": "deno ts-node tsx",
        "zsh": "zsh",
    }
)
# Languages whose files the interpreter of another language also runs.
_RUN_BY_INTERPRETER_OF: Mapping[str, frozenset[str]] = {
    "javascript": frozenset({"coffeescript", "tsx", "typescript"}),
    "python": frozenset({"cython"}),
    "typescript": frozenset({"javascript", "tsx"}),
}
# `#![allow(…)]` is an attribute in Rust.
_SHEBANG_LINE = re.compile(rb"#![ \t]*([^\s\[]\S*)(?:[ \t]+([^\r\n]*))?")
_INTERPRETER_VERSION = re.compile(rb"[-.0-9]+\Z")
_SHELL_LINES_MAX = 5
_OWN_FILE_EXECUTED = re.compile(rb"\bexec[\"']?\s+[\"']?(?:[^\s\"']*/)?([\w.+-]+)[^\n]*?\s\"?\$(?:0|\{0\})\"?(?:\s|\Z)")

# A mode line of Emacs in one of the first two lines: `-*- tcl -*-`, `-*- mode: c++; tab-width: 4 -*-`.
_EMACS_MODE_LINE = re.compile(
    rb"[^\n]*(?:\n[^\n]*)?-\*-(?:[^\n]*?\bmode:)?[ \t]*([A-Za-z+#-]+)[ \t]*(?:;[^\n]*)?-\*-", re.IGNORECASE
)
# A mode line of Vim: `vim: ft=ruby`, `vim: set sw=2 filetype=sh :`.
_VIM_MODE_LINE = re.compile(
    rb"(?:^|[ \t])vim?(?:[<=>]?\d+)?:[^\n]{0,200}?\b(?:ft|filetype|syntax)=([A-Za-z+#-]+)", re.MULTILINE
)
_LINES_WITH_MODE = 5
_MODE_BYTES_MAX = 1024
_LANGUAGE_BY_MODE = table_by_word(
    {
        "bash": "bash sh shell-script",
        "c": "c",
        "cpp": "c++ cpp",
        "javascript": "javascript js js2",
        "lisp": "emacs-lisp lisp",
        "lua": "lua",
        "make": "make makefile",
        "objective-c": "objc",
        "perl": "cperl perl",
        "php": "php",
        "python": "python",
        "ruby": "ruby",
        "tcl": "tcl",
        "yaml": "yaml",
        "zsh": "zsh",
    }
)


def shebang_language(head: bytes, by_extension: str | None) -> str | None:
    """Return the language of the file with a `#!` line, given its language by extension. None if neither is known."""
    match = _SHEBANG_LINE.match(head)
    if match is None:
        return by_extension
    program = match[1].rsplit(b"/", 1)[-1]
    if program == b"env":
        words = [word for word in (match[2] or b"").split() if not word.startswith(b"-") and b"=" not in word]
        program = words[0].rsplit(b"/", 1)[-1] if words else b""
    language = _interpreter_language(program)
    if language == "bash":
        executed = _OWN_FILE_EXECUTED.search(b"\n".join(head.split(b"\n", _SHELL_LINES_MAX)[1:_SHELL_LINES_MAX]))
        if executed is not None:
            language = _interpreter_language(executed[1]) or by_extension or language
    if language is None or by_extension in _RUN_BY_INTERPRETER_OF.get(language, ()):
        return by_extension
    return language


def _interpreter_language(program: bytes) -> str | None:
    return _LANGUAGE_BY_INTERPRETER.get(program) or _LANGUAGE_BY_INTERPRETER.get(_INTERPRETER_VERSION.sub(b"", program))


def mode_language(head: bytes, content: bytes) -> str | None:
    """Return the language of the mode line in a file, or None. `head` is its beginning."""
    mode = _EMACS_MODE_LINE.match(head) if b"-*-" in head else None
    if mode is None and b"vi" in content:
        first, last = content[:_MODE_BYTES_MAX], content[-_MODE_BYTES_MAX:]
        lines = b"\n".join(first.split(b"\n")[:_LINES_WITH_MODE] + last.rstrip().split(b"\n")[-_LINES_WITH_MODE:])
        mode = _VIM_MODE_LINE.search(lines)
    return _LANGUAGE_BY_MODE.get(mode[1].lower()) if mode is not None else None
