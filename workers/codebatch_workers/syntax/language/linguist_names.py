"""Names of languages in GitHub's linguist, and the names that codebatch uses for them."""

from __future__ import annotations

from collections.abc import Mapping

# Names in linguist that differ from the names in codebatch. All other names differ at most in case, or in blanks
# instead of `-`.
_LANGUAGE_BY_LINGUIST_NAME: Mapping[str, str] = {
    "ant-build-system": "xml",
    "batchfile": "batch",
    "c#": "csharp",
    "c++": "cpp",
    "common-lisp": "lisp",
    "editorconfig": "ini",
    "emacs-lisp": "lisp",
    "f#": "fsharp",
    "gettext-catalog": "gettext",
    "git-attributes": "gitattributes",
    "git-config": "ini",
    "go-module": "gomod",
    "html+erb": "erb",
    "ignore-list": "gitignore",
    "java-properties": "properties",
    "json-with-comments": "jsonc",
    "m4sugar": "m4",
    "makefile": "make",
    "objective-c++": "objective-cpp",
    "protocol-buffer": "protobuf",
    "restructuredtext": "rst",
    "robots.txt": "text",
    "roff-manpage": "roff",
    "shell": "bash",
    "starlark": "bazel",
    "unix-assembly": "asm",
    "vim-script": "vim",
    "visual-basic-.net": "vb",
    "xml-property-list": "xml",
    "xslt": "xml",
}


def language_named(name: str) -> str:
    """Return the codebatch name of a language, given the value of a `linguist-language` attribute."""
    plain = name.lower().replace(" ", "-")
    return _LANGUAGE_BY_LINGUIST_NAME.get(plain, plain)
