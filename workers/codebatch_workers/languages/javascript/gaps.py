"""Valid JavaScript and TypeScript that the grammars do not support."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from tree_sitter import Node

from codebatch_workers.languages.javascript.fragments import is_fragment
from codebatch_workers.languages.javascript.jsx import RESERVED_WORDS, jsx_replacements
from codebatch_workers.syntax.grammar_gaps.stand_ins import (
    blanks_for,
    compile_for_search,
    iter_closed,
    make_gap,
    make_gaps,
    name_for,
    padded_text,
    words_pattern,
)
from codebatch_workers.syntax.language_gaps import GapFinder, LanguageGaps, Replacement

_LITERAL_WORDS = rb"null|this|true|false"
_TYPE_WORDS = rb"any|bigint|boolean|never|number|object|string|symbol|undefined|unknown"
_MODIFIER_WORDS = rb"abstract|accessor|declare|override|private|protected|public|readonly|static"
# Code that can be between two tokens: white space and comments. Repetitions are bounded, so that a search from an
# unterminated comment or string ends early. Comments at these places are short.
_BLANKS_OR_COMMENTS = rb"(?:\s|/\*(?:[^*]|\*(?!/)){0,400}\*/|//[^\n]*\n)*"
_QUOTED_TEXT = rb"(?:\"[^\"\\\n]*(?:\\.[^\"\\\n]*){0,400}\"|'[^'\\\n]*(?:\\.[^'\\\n]*){0,400}')"

_NAME_GAPS = (
    *make_gaps(
        name_for,
        # Reserved words as names of exports: `export { a as void }`, `import { if as a }`, `export * as if from`.
        rb"as(?:(?<=[\w$]\sas)|(?<=\s\sas))\s+(%s|%s)(?=\s*(?:[,}]|/[/*]))" % (RESERVED_WORDS, _LITERAL_WORDS),
        rb"[{,]%s(%s|%s)(?=\s+as\s+[\w$])" % (_BLANKS_OR_COMMENTS, RESERVED_WORDS, _LITERAL_WORDS),
        rb"\*\s+as\s+(%s)(?=\s+from\b)" % RESERVED_WORDS,
        needs=(b"as",),
    ),
    *make_gaps(name_for, rb"\bexport\s*\{[^{}]*?\b(%s)(?=\s*[,}])" % RESERVED_WORDS, needs=(b"export",)),
    # `for (async of => 1;;)`
    *make_gaps(name_for, rb"\bfor\s*\(\s*async\s+(of)(?=\s*=>)", needs=(b"async",)),
)


def _iter_templates(utf8: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the templates in a text that has escapes."""
    if b"\\" in utf8 and b"`" in utf8:
        texts = iter_closed(_TEXT_OR_TEMPLATE, _TEXT_WITHOUT_TEMPLATES, utf8)
        yield from (match for match in texts if match[0][:1] == b"`")


def _raw_template_replacements(utf8: bytes) -> Iterator[Replacement]:
    r"""Yield replacements for invalid escapes in tagged templates, which are allowed there: String.raw`\u`."""
    for match in _iter_templates(utf8):
        if _TEMPLATE_TAG.search(utf8, max(0, match.start() - _TAG_BYTES_MAX), match.start()):
            for escape in _NO_ESCAPE.finditer(utf8, match.start(), match.end()):
                yield Replacement(escape.start(), b"_")


def _template_type_replacements(utf8: bytes) -> Iterator[Replacement]:
    r"""Yield replacements for the escapes in templates. The grammar supports none in types: `type A = `\0${B}``."""
    for match in _iter_templates(utf8):
        for escape in _ESCAPE.finditer(match[0]):
            yield Replacement(match.start() + escape.start(), b"__")


_NO_TEMPLATE = rb"//[^\n]*|/\*.*?(?:\*/|\Z)|%s" % _QUOTED_TEXT
_TEXT_OR_TEMPLATE = re.compile(rb"%s|`[^`\\]*(?:\\.[^`\\]*)*(?:`|(?P<open>\\?\Z))" % _NO_TEMPLATE, re.DOTALL)
_TEXT_WITHOUT_TEMPLATES = re.compile(_NO_TEMPLATE, re.DOTALL)
_TEMPLATE_TAG = re.compile(rb"[\w$)\]>]\s*\Z")
_TAG_BYTES_MAX = 20
_ESCAPE = re.compile(rb"\\[^\r\n]")
_NO_ESCAPE = re.compile(rb"\\(?=u(?!\{[0-9a-fA-F]+\}|[0-9a-fA-F]{4})|x(?![0-9a-fA-F]{2})|[1-9])")

_SHARED_GAPS: tuple[GapFinder, ...] = (
    *_NAME_GAPS,
    # The word `with` after an export. The grammar supports it only after imports.
    make_gap(
        rb"\bfrom\s*%s%s((?:with|assert)%s\{(?:\s*(?:[\w$]+|%s)\s*:\s*%s\s*,?)*\s*(?:/\*[^*]*\*/\s*)?\})"
        % (_QUOTED_TEXT, _BLANKS_OR_COMMENTS, _BLANKS_OR_COMMENTS, _QUOTED_TEXT, _QUOTED_TEXT),
        needs=(b"with", b"assert"),
    ),
    make_gap(rb"\bimport\s+(defer)(?=\s*\*)", needs=(b"defer",)),
    make_gap(rb"\bimport\s+(source)(?=\s+(?!from\b)[\w$]+\s+from\b)", needs=(b"source",)),
    make_gap(rb"\b(export)(?=\s+import\s+(?:type\s+)?[\w$]+\s*=)", needs=(b"import",)),
    make_gap(rb"\bimport(\.(?:source|defer))(?=\s*\()", needs=(b"import.",)),
    # In `for (using a of b)`, `const` replaces `using`, because it has the same length.
    make_gap(
        rb"\bfor\s*(?:await\s*)?\(%s(using)(?=\s(?!\s*(?:of|in)\b)|/)" % _BLANKS_OR_COMMENTS,
        lambda _: b"const",
        needs=(b"using",),
    ),
    make_gap(
        rb"(await(?<=\bawait)\s+using)(?=\s+(?!in\b|instanceof\b)[\w$]|/)", padded_text(b"const"), needs=(b"using",)
    ),
    _raw_template_replacements,
    # The line end after a field without a semicolon, before a generator method.
    make_gap(
        rb"(\n)(?<=[\w$# \t]\n)(?=\s{0,80}\*\s*(?:[\w$#]+|\[[^\]\n]*\])\s*\()",
        lambda _: b";",
        preceded_by=rb"(?:^|[{;])[ \t]*(?:static[ \t]+)?[\w$#]+[ \t]*",
    ),
    # A line with `let name` before a line that begins with `[`. The end of the first line ends the declaration.
    make_gap(rb"\b(?:let|var)\s+[\w$]+[ \t]*(\n)(?=\s*\[)", lambda _: b";", needs=(b"let", b"var")),
    # NUL characters. The grammars take them for the end of the file.
    make_gap(rb"(\0)", lambda _: b"\1", needs=(b"\0",)),
)

_JAVASCRIPT_GAPS: tuple[GapFinder, ...] = (
    *_SHARED_GAPS,
    # A name replaces the parentheses in `@(a[0])`.
    make_gap(rb"@(\((?:[^()\n]|\([^()\n]*\)){1,400}\))(?=\s)", lambda text: b"_" * len(text), needs=(b"@(",)),
    # The word `using` as an ordinary name: `using = a;`.
    make_gap(
        rb"\b(using)(?=\s*[-+*/%^\[?:,=.;|&(<]|[ \t]*$)",
        name_for,
        needs=(b"using",),
        preceded_by=rb"(?:^|[;{})]|\belse)[ \t]*",
    ),
    jsx_replacements,
)

# -- TypeScript -------------------------------------------------------------------------------------------------------

# In `f<<T>(a: T) => b>(c)`, blanks replace the type parameters.
_GENERIC_SHIFT = re.compile(rb"[\w$]<(?=<[A-Za-z_$])")
# Types such as `import("a").B<C>` and `import("a").B[]`. In the grammar, an import type ends after its name. So a union
# with a tuple of the types after the name replaces it: `import("a") |[C]`.
_IMPORT_TYPE = re.compile(
    rb"(?<!typeof )\bimport\(\s*%s\s*\)(?!\s*\.\s*(?:then|catch|finally)\b)((?:\s*\.\s*[\w$\x80-\xff]+)+\s*)(?=[<\[])"
    % _QUOTED_TEXT
)
_IMPORT_IN_BRACKETS = re.compile(rb"\((?=import\(\s*%s\s*\)\.)" % _QUOTED_TEXT)
# A line that begins with white space and a bracket. It can be a signature in a type. Then the line before it has no
# separator at its end.
_SIGNATURE_LINE = re.compile(rb"^[ \t]*([ \t])(?=<\s*[A-Za-z_$]|\()", re.MULTILINE)
_TYPE_END = re.compile(rb"(?:[\w$\])}\"'`]|(?<!=)>)\Z")
_BRACKET_TOKENS = rb"=>|[<>()]|%s|//[^\n]*" % _QUOTED_TEXT
_BRACKET = re.compile(rb"%s|/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|(?P<open>\Z))" % _BRACKET_TOKENS)
_BRACKETS_WITHOUT_COMMENTS = re.compile(_BRACKET_TOKENS)
_WHITE_SPACE = re.compile(rb"\s*")
_DECORATOR_EXPRESSION = re.compile(rb"@\(")
_DEFAULT_FUNCTION = compile_for_search(rb"\bexport\s+default\s+(?:async\s+)?function\s*(?=[<(])")
_OVERLOAD_END = re.compile(rb"\s*(:[^;{}]+);")
# The maximum size of a comment between two signatures.
_COMMENT_BYTES_MAX = 20_000


def _generic_shift_replacements(utf8: bytes) -> Iterator[Replacement]:
    closings = _closing_offsets(utf8) if b"<<" in utf8 and _GENERIC_SHIFT.search(utf8) else {}
    for match in _GENERIC_SHIFT.finditer(utf8) if closings else ():
        parameters = _token_after(utf8, closings.get(match.end()), b"(")
        if parameters is not None and _token_after(utf8, closings.get(parameters), b"=>") is not None:
            yield Replacement(match.end(), blanks_for(utf8[match.end() : parameters]))


def _bracketed_type_replacements(utf8: bytes) -> Iterator[Replacement]:
    """Yield replacements that turn `(import("a").B | C)` into a tuple: square brackets.

    The grammar would take the original text for an expression.
    """
    closings = _closing_offsets(utf8) if b"(import(" in utf8 else {}
    for match in _IMPORT_IN_BRACKETS.finditer(utf8) if closings else ():
        closing = closings.get(match.start())
        if closing is not None:
            yield Replacement(match.start(), b"[")
            yield Replacement(closing, b"]")


def _import_type_replacements(utf8: bytes) -> Iterator[Replacement]:
    if b"import(" not in utf8:
        return
    closings = _closing_offsets(utf8)
    for match in _IMPORT_TYPE.finditer(utf8):
        start, opening = match.span(1)
        closing = closings.get(opening) if utf8[opening] == ord("<") else opening
        if closing is not None:
            yield Replacement(start, blanks_for(utf8[start : opening - 1]) + b"|[")
            if closing != opening:
                yield Replacement(closing, b"]")


def _signature_replacements(utf8: bytes) -> Iterator[Replacement]:
    for match in _SIGNATURE_LINE.finditer(utf8):
        if _TYPE_END.search(_code_before(utf8, match.start())):
            after = b"(" if utf8[match.end()] == ord("<") else b":"
            if _token_after(utf8, _closing_offsets(utf8).get(match.end()), after) is not None:
                yield Replacement(match.start(1), b";")


def _decorator_replacements(utf8: bytes) -> Iterator[Replacement]:
    """Yield a replacement for the expression in `@(a[0])`: a name."""
    closings = _closing_offsets(utf8) if b"@(" in utf8 else {}
    for match in _DECORATOR_EXPRESSION.finditer(utf8) if closings else ():
        closing = closings.get(match.start() + 1)
        if closing is not None:
            yield Replacement(match.end(), b"_" * (closing - match.end()))


def _default_function_replacements(utf8: bytes) -> Iterator[Replacement]:
    """In `export default function (): A;`, replace the return type by an empty body."""
    closings = _closing_offsets(utf8) if _DEFAULT_FUNCTION.search(utf8) else {}
    for match in _DEFAULT_FUNCTION.finditer(utf8):
        opening: int | None = match.end()
        if utf8[match.end()] == ord("<"):
            opening = _token_after(utf8, closings.get(match.end()), b"(")
        closing = closings.get(opening) if opening is not None else None
        end = _OVERLOAD_END.match(utf8, closing + 1) if closing is not None else None
        if end is not None:
            yield Replacement(end.start(1), b"{}".ljust(len(end[1])))


def _modifier_replacements(utf8: bytes) -> Iterator[Replacement]:
    """Yield replacements for the modifiers of members: those that matter, in the order that the grammar supports."""
    for match in _MEMBER_MODIFIERS.finditer(utf8):
        modifiers = match[1].split()
        is_index = match[2] is not None
        ordered = [word for word in modifiers if word in _ACCESS_WORDS][:1]
        ordered += [
            word
            for word in (b"static", b"override", b"readonly")
            if word in modifiers and not (is_index and word != b"readonly")
        ]
        if b"abstract" in modifiers and b"override" in ordered:
            ordered.remove(b"override")
        yield Replacement(match.start(1), b" ".join(ordered).rjust(len(match[1].rstrip())))


_ACCESS_WORDS = (b"private", b"protected", b"public")
_MEMBER_MODIFIERS = re.compile(
    rb"(%s[ \t]+(?:(?:%s)[ \t]+)*)(?=(?:(?:get|set|async)[ \t]+)?[\w$#\"'*]|(\[\s*\w+\s*:)|\[)"
    % (words_pattern(_MODIFIER_WORDS), _MODIFIER_WORDS)
)


@lru_cache(maxsize=2)
def _closing_offsets(utf8: bytes) -> dict[int, int]:
    """Map the offset of each `(` and `<` to the offset of its closing bracket.

    A file can have millions of brackets, so the result is cached and used for all gaps.
    """
    closings: dict[int, int] = {}
    angles: list[int] = []
    rounds: list[int] = []
    for match in iter_closed(_BRACKET, _BRACKETS_WITHOUT_COMMENTS, utf8):
        match match[0]:
            case b"<":
                angles.append(match.start())
            case b"(":
                rounds.append(match.start())
            case b">" if angles:
                closings[angles.pop()] = match.start()
            case b")" if rounds:
                closings[rounds.pop()] = match.start()
    return closings


def _token_after(utf8: bytes, closing: int | None, token: bytes) -> int | None:
    """Return the offset of `token` if only white space is between it and the bracket at `closing`.

    Otherwise return None.
    """
    if closing is None:
        return None
    following = _WHITE_SPACE.match(utf8, closing + 1)
    return following.end() if following and utf8.startswith(token, following.end()) else None


def _code_before(utf8: bytes, end: int) -> bytes:
    """Return the end of the last line of code before an offset. Comments after this code are left out."""
    while True:
        floor = max(0, end - _COMMENT_BYTES_MAX)
        end = floor + len(utf8[floor:end].rstrip())
        line = utf8[utf8.rfind(b"\n", 0, end) + 1 : end]
        if line.endswith(b"*/"):
            end = max(0, utf8.rfind(b"/*", floor, end))
        elif line.lstrip().startswith(b"//"):
            end -= len(line)
        else:
            return line.partition(b" //")[0].rstrip()


_TYPESCRIPT_GAPS: tuple[GapFinder, ...] = (
    *_SHARED_GAPS,
    *make_gaps(
        name_for,
        # Contextual keywords as ordinary names.
        rb"(%s)(?=\s*[?:,)=.;\]}>|&(<]|[ \t]*$)" % words_pattern(b"using|abstract|accessor|type"),
        rb"(%s)(?=\s+(?:as|extends|in|instanceof|satisfies)\b)" % words_pattern(b"using|abstract|accessor|type"),
        needs=(b"using", b"abstract", b"accessor", b"type"),
    ),
    *make_gaps(
        name_for,
        rb"(in(?:stanceof)?)(?=\s*(?:\?\s*)?:)",
        # A name such as `in_` at the start of a line. The grammar takes `in` for an operator that continues the
        # previous line.
        rb"(in)(?=[\d_$])",
        preceded_by=rb"^[ \t]*",
    ),
    *make_gaps(
        name_for,
        # Keywords for types as names of parameters and tuple members: `(any) => void`, `[new: A]`. Also in `typeof
        # undefined`.
        rb"[(,]\s*(%s)(?=\s*(?:,[^()]*)?\)\s*=>)" % _TYPE_WORDS,
        rb"[\[,]\s*(%s|%s|%s)(?=\s*(?:\?\s*)?:)" % (RESERVED_WORDS, _TYPE_WORDS, _LITERAL_WORDS),
    ),
    *make_gaps(name_for, rb"\btypeof\s+(undefined)\b", needs=(b"undefined",)),
    *make_gaps(
        name_for,
        # `{ type as as a }`
        rb"[{,]\s*type\s+(as)(?=\s+as\s+[\w$])",
        rb"[{,]\s*type\s+as\s+(as)(?=\s*[,}])",
        needs=(b"type",),
    ),
    # Variance: `<in out A, out B>`.
    make_gap(rb"[<,]%s(?:const\s+)?((?:in\s+out|in|out)\b)(?=\s+(?!extends\b)[A-Za-z_$])" % _BLANKS_OR_COMMENTS),
    # In a module declaration, `global { … }` is parsed as a block.
    make_gap(rb"(global)(?=\s*\{)", preceded_by=rb"^[ \t]*"),
    make_gap(rb"\bexport\s+(type)(?=\s*\*)", needs=(b"export",)),
    make_gap(rb"\bexport\s+default\s+(abstract)(?=\s+class\b)", needs=(b"abstract",)),
    make_gap(rb"\bimport\s+(type)(?=\s+\w+\s*=)", needs=(b"import",)),
    *make_gaps(blanks_for, rb"\bkeyof\s+(readonly)(?=\s)", rb"\b(keyof)\s+import\(", needs=(b"keyof",)),
    make_gap(rb"\b(accessor)(?=[ \t]+[\w$#\[\"'])", needs=(b"accessor",)),
    make_gap(rb"\binfer\s+\w+\s+(extends\s+[\w.]+)", needs=(b"infer",)),
    # The call `f<typeof import("a")>()`, which the grammar takes for a comparison.
    make_gap(rb"<(?<=\w<)\s*(typeof)\s+import\(", lambda text: b"|".ljust(len(text)), needs=(b"typeof",)),
    # `using a: B = c`
    make_gap(rb"(using)(?=\s+[\w$]+\s*:)", lambda _: b"const", preceded_by=rb"^[ \t]*(?:await[ \t]+)?"),
    # An assignment to `[a.x as T]`. The grammar supports assignment to a field, but not to an assertion.
    make_gap(
        rb"[\w$\])]\s+(as)(?=\s+[\w$.]+\s*[,\]}][^;\n]{0,500}?(?:=(?![=>])|\bof\b))",
        padded_text(b"."),
        needs=(b"as",),
    ),
    _template_type_replacements,
    _modifier_replacements,
    _default_function_replacements,
    _decorator_replacements,
    _generic_shift_replacements,
    _import_type_replacements,
    _bracketed_type_replacements,
    _signature_replacements,
)

_TSX_GAPS: tuple[GapFinder, ...] = (*_TYPESCRIPT_GAPS, jsx_replacements)

# The number of bytes to search before and after a missing `!`. Only white space can be between the `!` and its
# neighbours.
_LOOKAROUND_BYTES = 200


def _is_false_missing(node: Node, root: Node) -> bool:
    """Return whether the grammar is wrong to report a missing `!`, because the code before it is a complete operand.

    For example, the grammar expects `!` at the end of `x<{}>` in `x<{}>`…``, and of `[x as y]` in `[x as y] = z`. But
    `x as y = z` is an error.
    """
    if node.type != "!":
        return False
    text = root.text or b""
    before = text[max(0, node.start_byte - _LOOKAROUND_BYTES) : node.start_byte].rstrip()
    after = text[node.end_byte : node.end_byte + _LOOKAROUND_BYTES].lstrip()
    return before.endswith((b")", b"]", b"}")) or not after.startswith(b"=")


GAPS = {
    "javascript": LanguageGaps(
        finders=_JAVASCRIPT_GAPS, is_false_missing=_is_false_missing, has_expected_errors=is_fragment
    ),
    "tsx": LanguageGaps(finders=_TSX_GAPS, is_false_missing=_is_false_missing),
    "typescript": LanguageGaps(finders=_TYPESCRIPT_GAPS, is_false_missing=_is_false_missing),
}
