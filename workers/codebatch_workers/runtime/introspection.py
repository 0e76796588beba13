"""What the command line asks of the code that workers run, answered in its own process and without a batch.

`codebatch.system.plugins.load_question` loads these by name, when they are asked: no other command loads a parser.
"""

from __future__ import annotations

import subprocess
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE
from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec
from ruff import find_ruff_bin  # type: ignore[import-untyped]  # it has no annotations

from codebatch.errors import InvalidInput
from codebatch.model.entry import display_path
from codebatch.model.record import Diagnostic
from codebatch.model.task import Json
from codebatch_workers.lint.config import LintConfig
from codebatch_workers.lint.query_rules import compile_rule
from codebatch_workers.lint.ruff_rules import SEVERITIES
from codebatch_workers.lint.rule import TextRule
from codebatch_workers.lint.settings import QueryRule
from codebatch_workers.symbols.references import references
from codebatch_workers.syntax.languages import EXTRA_GRAMMAR_TOOLS
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.syntax.suppression import without_unwanted
from codebatch_workers.syntax.syntax_tree import encode_tree
from codebatch_workers.tasks.lint import apply_rule, is_on, rules_of, severity_of

# What begins so has no byte for each character of a name; UTF-32 of the other order begins as UTF-16 does.
_WIDE = (BOM_UTF16_LE, BOM_UTF16_BE, BOM_UTF32_BE)


def syntax_tree(path: bytes, content: bytes, contexts: Mapping[str, bytes]) -> bytes:
    """The tree of a file (syntax_tree.py). Raises InvalidInput where it has none."""
    file = SourceFile(path, content, executable=False, contexts=contexts)
    shown = display_path(path)
    if file.is_binary:
        raise InvalidInput(f"{shown} is binary")
    if not file.has_grammar:
        tool = {language: tool for tool, language in EXTRA_GRAMMAR_TOOLS.items()}.get(file.language)
        hint = f"install it with: pip install {tool}" if tool else "name another language with --language"
        raise InvalidInput(f"there is no grammar for {file.language} ({shown})", hint=hint)
    if file.overruns_its_grammar:
        raise InvalidInput(f"{shown} nests deeper, or is longer, than the grammar of {file.language} can hold")
    return encode_tree(file)


def references_in(
    name: str,
    path: bytes,
    content: bytes,
    contexts: Mapping[str, bytes],
    calls: Sequence[tuple[int, str, str]] | None = None,
) -> list[dict[str, Json]]:
    """The places of a name in a file (references.py). `calls` are what is known to call it there (calls.py)."""
    if name.isascii() and name.encode() not in content and not content.startswith(_WIDE):
        return []  # Nearly every file: it need not be decoded.
    return list(references(SourceFile(path, content, executable=False, contexts=contexts), name, calls))


def source_lines(path: bytes, content: bytes, contexts: Mapping[str, bytes], first: int, last: int) -> dict[str, Json]:
    """How many lines a file has, and the text of some, without their LF; whether it `is_binary`, and has none."""
    file = SourceFile(path, content, executable=False, contexts=contexts)
    starts = [*file.line_starts, len(file.utf8)]
    lines = [file.utf8[start:end] for start, end in pairwise(starts[first - 1 : last + 1])]
    shown = [line.removesuffix(b"\n").decode() for line in lines[: max(file.line_count - first + 1, 0)]]
    return {"count": file.line_count, "is_binary": file.is_binary, "lines": shown}


def list_rules(settings: Mapping[str, Json]) -> list[dict[str, Json]]:
    """Every rule of lint: its code, severity, tool, whether it is on where no path says otherwise, what it finds."""
    config = msgspec.convert(dict(settings), LintConfig)
    own = {rule.id for rule in config.rules}
    every = [
        (r.code, r.severity, r.is_on, "own" if r.code in own else "codebatch", r.summary) for r in rules_of(config)
    ]
    every += [(code, severity, True, "ruff", "") for code, severity in SEVERITIES.items()]
    return [
        {
            "code": code,
            "severity": severity_of(code, (config,), severity),
            "on": is_on(code, (config,), default=default),
            "tool": tool,
            "summary": summary,
        }
        for code, severity, default, tool, summary in every
    ]


def explain_rule(code: str) -> dict[str, Json]:
    """What a rule of `list_rules` is called and what it is for; of ruff's what it finds too, as `ruff rule` has it."""
    if code not in SEVERITIES:
        return {"name": "", "explanation": ""}
    told = subprocess.run(
        [find_ruff_bin(), "rule", code, "--output-format", "json"],
        env={"LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    rule = msgspec.json.decode(told.stdout)
    return {name: rule[name] for name in ("name", "summary", "explanation")}


def test_rules(settings: Mapping[str, Json], files: Sequence[tuple[bytes, bytes]]) -> dict[str, Json]:
    """What the user's rules say of their own examples, `wrong` where it is not what they should; and of files."""
    config = msgspec.convert(dict(settings), LintConfig)
    sources = [SourceFile(path, content, executable=False, contexts={}) for path, content in files]
    found = [each for rule in config.rules for source in sources for each in _found(compile_rule(rule), source)]
    return {
        "rules": [_examples(rule) for rule in config.rules],
        "findings": [msgspec.to_builtins(each) for each in found],
    }


def _examples(rule: QueryRule) -> dict[str, Json]:
    wrong: list[dict[str, Json]] = []
    compiled = compile_rule(rule)
    for kind, texts in (("bad", rule.bad), ("good", rule.good)):
        for text in texts:
            # The name would say the language; an attribute says it of any name.
            contexts = {"attributes": b"language=" + rule.language.encode()}
            source = SourceFile(rule.id.encode(), text.encode(), executable=False, contexts=contexts)
            count = len(_found(compiled, source))
            if (count > 0) != (kind == "bad"):
                wrong.append({"example": kind, "text": text, "findings": count})
    return {"id": rule.id, "examples": len(rule.bad) + len(rule.good), "wrong": wrong}


def _found(rule: TextRule, source: SourceFile) -> list[Diagnostic]:
    return without_unwanted(source, apply_rule(rule, source))
