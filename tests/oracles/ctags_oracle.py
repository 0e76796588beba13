"""Definitions compared with universal-ctags: C, C++, Go, Rust, Java, shell."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from codebatch_workers.symbols.outline import file_outline
from codebatch_workers.syntax.source import SourceFile
from tests.oracles.agreement import Agreement, Fact, compare

# Languages with their names in ctags, and codebatch's kinds by the kinds of ctags. Other kinds are not compared.
_C = {
    "macro": "macro",
    "enumerator": "enum_member",
    "function": "function",
    "member": "field",
    "variable": "variable",
    **dict.fromkeys(("struct", "union", "enum", "typedef"), "type"),
}
LANGUAGES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "c": ("C", _C),
    "cpp": ("C++", {**_C, "class": "type", "namespace": "namespace"}),
    "go": (
        "Go",
        {
            "package": "module",
            **dict.fromkeys(("func", "methodSpec"), "function"),
            "const": "constant",
            "var": "variable",
            "member": "field",
            **dict.fromkeys(("struct", "interface", "type", "talias"), "type"),
        },
    ),
    "rust": (
        "Rust",
        {
            "module": "module",
            "interface": "trait",
            **dict.fromkeys(("function", "method"), "function"),
            "variable": "variable",
            "macro": "macro",
            "field": "field",
            "enumerator": "enum_member",
            **dict.fromkeys(("struct", "enum", "typedef"), "type"),
        },
    ),
    "java": (
        "Java",
        {
            "package": "module",
            "enumConstant": "enum_member",
            "field": "field",
            "method": "function",
            **dict.fromkeys(("class", "annotation", "enum", "interface"), "type"),
        },
    ),
    "bash": ("Sh", {"function": "function"}),
}
# Kinds of codebatch that ctags does not distinguish.
_MERGED_KINDS = {
    **dict.fromkeys(("method", "constructor"), "function"),
    **dict.fromkeys(("class", "struct", "union", "enum"), "type"),
}
# In Java, ctags has interfaces as classes and constants as fields. In Go, it has interfaces as structs.
_MERGED_KINDS_BY_LANGUAGE = {
    "go": {**_MERGED_KINDS, "interface": "type"},
    "java": {**_MERGED_KINDS, "interface": "type", "constant": "field"},
}


_FUNCTIONS = ("function", "method", "constructor")
_MACRO_CALL = re.compile(r"[A-Z][A-Z0-9_]*\s*\(")
_CONDITIONAL = re.compile(r"\s*#\s*(if|el|endif)")


def agree(root: Path, language: str, files: Iterable[SourceFile]) -> Agreement:
    """Compare symbols with ctags' tags: class, path, line, name. `_Reasons` explains the errors of ctags."""
    sources = list(files)
    name, kinds = LANGUAGES[language]
    compared = set(kinds.values())
    names = _MERGED_KINDS_BY_LANGUAGE.get(language, _MERGED_KINDS)
    actual_facts: list[Fact] = []
    reasons = _Reasons(language)
    for file in sources:
        path = file.path.decode()
        reasons.lines[path] = file.text.split("\n")
        # Maps the qualified name of an enclosing symbol to its kind and the kinds of the symbols around it.
        around: dict[str, tuple[str, ...]] = {"": ()}
        for symbol in file_outline(file).symbols:
            kinds_around = around.get(symbol.scope, ())
            around.setdefault(symbol.qualified, (symbol.symbol_type, *kinds_around))
            kind = names.get(symbol.symbol_type, symbol.symbol_type)
            if kind in compared:
                fact = (kind, path, symbol.line, symbol.name.replace(" ", ""))
                actual_facts.append(fact)
                reasons.kinds_around[fact] = kinds_around
    return compare(actual_facts, _tags(root, name, kinds, sources), reasons)


class _Reasons:
    """Reasons why ctags differs, for faults and conventions of its own."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.lines: dict[str, list[str]] = {}
        self.kinds_around: dict[Fact, tuple[str, ...]] = {}

    def __call__(self, side: str, fact: Fact) -> str | None:
        kind, path, line, name = fact
        assert isinstance(path, str)
        assert isinstance(line, int)
        assert isinstance(name, str)
        if side == "extra":
            return self._extra(fact, kind, path, line)
        if self.language == "bash" and name.endswith("="):
            return "takes an array for a function"
        return self._macro_call(kind, path, line)

    def _extra(self, fact: Fact, kind: str | int, path: str, line: int) -> str | None:
        around = self.kinds_around[fact]
        if self.language in ("go", "java") and any(kind in _FUNCTIONS for kind in around):
            return "knows nothing that is local to a function"
        if self.language == "rust" and kind == "field" and around[:1] == ("enum",):
            return "knows no fields of enum members"
        if self.language in ("c", "cpp") and self._is_other_arm(path, line):
            return "reads one arm of a conditional"
        return self._macro_call(kind, path, line)

    def _macro_call(self, kind: str | int, path: str, line: int) -> str | None:
        """`TEST(name) {`: codebatch names the function `name`, ctags names it `TEST`."""
        is_call = self.language in ("c", "cpp") and _MACRO_CALL.match(self.lines[path][line - 1])
        return "names a function after the macro that makes it" if kind == "function" and is_call else None

    def _is_other_arm(self, path: str, line: int) -> bool:
        """Return whether a line is between an `#else` or `#elif` and its `#endif`."""
        arms: list[bool] = []
        for text in self.lines[path][:line]:
            directive = _CONDITIONAL.match(text)
            if directive is not None:
                match directive[1]:
                    case "if":
                        arms.append(False)
                    case "el" if arms:
                        arms[-1] = True
                    case "endif" if arms:
                        arms.pop()
        return any(arms)


def _tags(root: Path, name: str, kinds: Mapping[str, str], files: Iterable[SourceFile]) -> Iterator[Fact]:
    command = ["ctags", f"--language-force={name}", "--output-format=json", "--fields=+nKZ", "-f", "-"]
    if name == "C++":
        command.append("--kinds-C++=+p")
    paths = "\n".join(file.path.decode() for file in files)
    done = subprocess.run(
        [*command, "-L", "-"],
        cwd=root,
        input=paths,
        check=True,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    for line in done.stdout.splitlines():
        tag = json.loads(line)
        kind = kinds.get(tag["kind"])
        if tag["kind"] == "prototype" and tag.get("scopeKind") in ("class", "struct", "union"):
            kind = "function"
        if tag["_type"] == "tag" and kind is not None and not tag["name"].startswith("__anon"):
            yield kind, tag["path"], tag["line"], tag["name"].replace(" ", "")
