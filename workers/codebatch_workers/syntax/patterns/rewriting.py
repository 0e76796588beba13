"""Rewrites: a pattern, and the code that replaces each match (SPEC.md "Changes").

An edit replaces a byte range of the original content. The bytes of metavariables are copied, so they keep their
encoding, newlines and indentation. Edits that are nested in another one follow in the next pass.

A match is left out if its edit would lose a comment or another token, or does not fit in its place (selection.py).
Code that would be grouped otherwise gets parentheses.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from codebatch_workers.syntax.patterns.edits import CodeKind, Edit, Part, Span, original_offset, root_of, text_of
from codebatch_workers.syntax.patterns.finders import PatternError, SyntaxFinder, SyntaxMatch, pattern_finder
from codebatch_workers.syntax.patterns.language_patterns import LanguagePatterns
from codebatch_workers.syntax.patterns.lost_tokens import PatternTokens, count_tokens, find_lost_token, last_comment
from codebatch_workers.syntax.patterns.places import is_statement
from codebatch_workers.syntax.patterns.reading import METAVARIABLE, literal_lines, read_pattern, read_shape
from codebatch_workers.syntax.patterns.selection import ErrorFinder, select_edits
from codebatch_workers.syntax.source import SourceFile

PASSES_MAX = 4
_COMMA_BEFORE = re.compile(r",\s*\Z")
_COMMA_AFTER = re.compile(r"\A\s*,\s*")
_NEWLINE = re.compile(r"\r?\n")
_INDENTATION = re.compile(rb"[ \t]*")


class RewriteRule(NamedTuple):
    """A compiled rewrite.

    - `finder`: the finder of the pattern. It binds all metavariables, also those without a name.
    - `texts`: the texts before, between and after the metavariables `names` in the new code.
    - `tokens`: the tokens of the pattern.
    - `literal_lines`: the numbers of the line breaks in literals of the new code, from 1.
    - `kind`: the kind of the new code.
    - `ends_with_semicolon`: whether the pattern does. If not, a semicolon after the code stays as it is.
    """

    finder: SyntaxFinder
    texts: Sequence[str]
    names: Sequence[str]
    tokens: PatternTokens
    literal_lines: Set[int]
    kind: CodeKind
    ends_with_semicolon: bool


class LeftOutMatch(NamedTuple):
    """A match that is not edited: the line of a token, and the reason."""

    line: int
    reason: str


class Rewritten(NamedTuple):
    """A new content, and the matches in the original content that are left out."""

    content: bytes
    left_out: Sequence[LeftOutMatch]


def compile_rewrite(pattern: str, rewrite: str, language: str) -> RewriteRule:
    """Compile a rewrite. Raises PatternError."""
    known = pattern_finder(pattern, language).names
    texts: list[str] = []
    names: list[str] = []
    end = 0
    template = rewrite.strip()
    for match in METAVARIABLE.finditer(template):
        name = match[1].lstrip("$")
        if name not in known:
            raise PatternError(
                f"`{match[1]}` in the rewrite has no value: the pattern does not name it",
                hint="use only metavariables of the pattern that do not begin with $_",
            )
        texts.append(template[end : match.start()])
        names.append(name)
        end = match.end()
    bound = _with_names(pattern)
    tokens = count_tokens(read_pattern(bound, language))
    return RewriteRule(
        finder=pattern_finder(bound, language),
        texts=[*texts, template[end:]],
        names=names,
        tokens=tokens,
        literal_lines=literal_lines(template, language) if "\n" in template else frozenset(),
        kind=_kind_of(template, language),
        ends_with_semicolon=pattern.rstrip().endswith(";"),
    )


def _kind_of(code: str, language: str) -> CodeKind:
    """Return the kind of new code."""
    shape, patterns = read_shape(code, language), LanguagePatterns.of(language)
    if not shape.node_type:
        return "unknown" if shape.has_errors else "statements"
    if shape.is_list and shape.node_type in patterns.blocks:
        return "statements"
    if shape.node_type == "expression_statement" and not code.endswith(";"):
        return "expression"
    return "statement" if is_statement(shape.node_type, patterns) else "expression"


def _with_names(pattern: str) -> str:
    """Return a pattern in which each metavariable without a name has a name that the pattern does not contain."""
    prefix = "Z"
    while prefix in pattern:
        prefix += "Z"
    numbers = itertools.count()

    def named(match: re.Match[str]) -> str:
        name = match[1].lstrip("$")
        is_named = name and not name.startswith("_")
        return match[0] if is_named else f"{match[1].removesuffix(name)}{prefix}{next(numbers)}"

    return METAVARIABLE.sub(named, pattern)


def rewrite_content(
    file: SourceFile, rules: Sequence[RewriteRule], find_errors: ErrorFinder | None = None
) -> Rewritten:
    """Return the content of a file after at most PASSES_MAX passes of some rewrites.

    If the patterns still match then, return the content after the first pass, which the gate `repeat` will refuse.
    `find_errors` is an exact parser, or None if the grammar is exact enough. Raises TooManySteps, or ValueError if the
    file cannot be edited exactly or would be too long.
    """
    if file.notebook is not None:
        return Rewritten(file.content, [])
    passes: list[_Pass] = []
    while len(passes) <= PASSES_MAX:
        edits, left_out = _find_edits(file, rules)
        selected = select_edits(file, edits, find_errors)
        left_out |= selected.left_out
        passes.append(_Pass(file, selected.made, left_out))
        file = selected.changed
        if not selected.made:
            return Rewritten(file.content, _original_matches(passes))
    first, second, *_ = passes
    return Rewritten(second.file.content, _original_matches([first]))


class _Pass(NamedTuple):
    """The file before a pass, the edits that were made, and the start of each match that was left out."""

    file: SourceFile
    made: Sequence[Edit]
    left_out: Mapping[int, str]


def _original_matches(passes: Sequence[_Pass]) -> list[LeftOutMatch]:
    """Return the matches that the last pass left out, if they begin with code of the original content."""
    *earlier, last = passes
    matches = set()
    for start, reason in last.left_out.items():
        offset: int | None = start
        for each in reversed(earlier):
            offset = None if offset is None else original_offset(offset, each.made)
        if offset is not None:
            matches.add(LeftOutMatch(passes[0].file.line(offset), reason))
    return sorted(matches)


def _find_edits(file: SourceFile, rules: Sequence[RewriteRule]) -> tuple[list[Edit], dict[int, str]]:
    """Return the outermost edits, by position, and the matches that are left out because an edit would lose code.

    Of these, the offset of the code and the reason are returned.

    If two rules match one node, the first rule counts.
    """
    matches = [
        (match.start, -match.end, number, match)
        for number, rule in enumerate(rules)
        for match in _iter_matches(file, rule.finder)
    ]
    matches.sort(key=lambda entry: entry[:3])
    edits: list[Edit] = []
    left_out: dict[int, str] = {}
    end = 0
    newline = "\r\n" if _has_crlf(file) else "\n"
    for start, _, number, match in matches:
        parts = _new_parts(file, rules[number], match, newline)
        edit = Edit(start, _edit_end(file, rules[number], match), parts, rules[number].kind)
        if text_of(file, parts) == file.utf8[start : edit.end]:
            continue
        loss = _find_loss(file, rules[number], match)
        if loss is not None:
            left_out.setdefault(*loss)
        elif start >= end:
            edits.append(edit)
            end = edit.end
    return edits, left_out


def _edit_end(file: SourceFile, rule: RewriteRule, match: SyntaxMatch) -> int:
    """Return the end of a match, without a semicolon that the pattern lacks: JavaScript has it in the statement."""
    has_semicolon = file.utf8.endswith(b";", match.start, match.end)
    is_captured = any(end == match.end for _, end in match.captures.values())
    return match.end - 1 if has_semicolon and not is_captured and not rule.ends_with_semicolon else match.end


def _find_loss(file: SourceFile, rule: RewriteRule, match: SyntaxMatch) -> tuple[int, str] | None:
    """Return the offset of code that the edit of a match would lose, and the reason, or None."""
    root = root_of(file)
    token = find_lost_token(root, match, rule.tokens)
    if token is not None:
        name = "a comment" if token.is_extra else f"`{file.utf8[token.start_byte : token.end_byte].decode()}`"
        return token.start_byte, f"the new code would lose {name}"
    for name, text in zip(rule.names, rule.texts[1:], strict=True):
        comment = None if text.startswith("\n") else last_comment(root, match.captures[name])
        if comment is not None:
            return comment.start_byte, "other code would follow a comment"
    return None


def _iter_matches(file: SourceFile, finder: SyntaxFinder) -> Iterator[SyntaxMatch]:
    if file.language == finder.language and all(literal in file.utf8 for literal in finder.literals):
        yield from finder.find(file)


def _new_parts(file: SourceFile, rule: RewriteRule, match: SyntaxMatch, newline: str) -> list[Part]:
    """Return the new code of a match. Its further lines are indented like the line in which the match begins."""
    texts = _indented_texts(file, rule, match.start, newline)
    _remove_idle_commas(texts, rule.names, match.captures)
    parts: list[Part] = [texts[0]]
    for name, text in zip(rule.names, texts[1:], strict=True):
        parts += (match.captures[name], text)
    return parts


def _indented_texts(file: SourceFile, rule: RewriteRule, offset: int, newline: str) -> list[str]:
    """Return the texts of the new code at an offset of a file. Lines that begin in literals get no indentation."""
    if not any("\n" in text for text in rule.texts):
        return list(rule.texts)
    indentation = _INDENTATION.match(file.utf8, file.utf8.rfind(b"\n", 0, offset) + 1, offset)
    assert indentation is not None
    lines = itertools.count(1)

    def with_indentation(_: re.Match[str]) -> str:
        return newline if next(lines) in rule.literal_lines else newline + indentation[0].decode()

    return [_NEWLINE.sub(with_indentation, text) for text in rule.texts]


def _remove_idle_commas(texts: list[str], names: Sequence[str], captures: Mapping[str, Span]) -> None:
    """Remove a comma before or after each metavariable without nodes from the texts of the new code."""
    for index, name in enumerate(names):
        start, end = captures[name]
        if start == end:
            shortened = _COMMA_BEFORE.sub("", texts[index])
            if shortened == texts[index]:
                texts[index + 1] = _COMMA_AFTER.sub("", texts[index + 1])
            texts[index] = shortened


def _has_crlf(file: SourceFile) -> bool:
    """Return whether most lines of a file end with CRLF."""
    crlf = file.utf8.count(b"\r\n")
    return crlf > 0 and 2 * crlf >= file.utf8.count(b"\n")
