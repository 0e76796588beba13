"""Valid JavaScript and TypeScript that the grammars do not support."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from codebatch_workers.syntax.grammar_gaps.stand_ins import (
    Gap,
    Replacement,
    blank,
    gap,
    gaps,
    iter_closed,
    padded,
    plain_name,
    searched,
    words,
)

_RESERVED = (
    rb"break|case|catch|class|const|continue|debugger|delete|do|else|enum|export|extends|finally|for|function|if|import"
    rb"|in|instanceof|new|return|super|switch|throw|try|typeof|var|void|while|with|yield"
)
_LITERALS = rb"null|this|true|false"
_TYPES = rb"any|bigint|boolean|never|number|object|string|symbol|undefined|unknown"
_MODIFIERS = rb"abstract|accessor|declare|override|private|protected|public|readonly|static"
# Code that can be between two tokens: white space and comments. Repetitions are bounded, so that a search from an
# unterminated comment or string ends early. Comments at these places are short.
_BETWEEN = rb"(?:\s|/\*(?:[^*]|\*(?!/)){0,400}\*/|//[^\n]*\n)*"
_QUOTED = rb"(?:\"[^\"\\\n]*(?:\\.[^\"\\\n]*){0,400}\"|'[^'\\\n]*(?:\\.[^'\\\n]*){0,400}')"

_NAMES = (
    *gaps(
        plain_name,
        # Reserved words as names of exports: `export { a as void }`, `import { if as a }`, `export * as if from`.
        rb"as(?:(?<=[\w$]\sas)|(?<=\s\sas))\s+(%s|%s)(?=\s*(?:[,}]|/[/*]))" % (_RESERVED, _LITERALS),
        rb"[{,]%s(%s|%s)(?=\s+as\s+[\w$])" % (_BETWEEN, _RESERVED, _LITERALS),
        rb"\*\s+as\s+(%s)(?=\s+from\b)" % _RESERVED,
        needs=(b"as",),
    ),
    *gaps(plain_name, rb"\bexport\s*\{[^{}]*?\b(%s)(?=\s*[,}])" % _RESERVED, needs=(b"export",)),
    # `for (async of => 1;;)`
    *gaps(plain_name, rb"\bfor\s*\(\s*async\s+(of)(?=\s*=>)", needs=(b"async",)),
)


def _ampersands(utf8: bytes) -> Iterator[Replacement]:
    """Yield a replacement for each `&` in JSX text and attributes that does not begin a character reference."""
    for match in _JSX_TEXT.finditer(utf8):
        for ampersand in _AMPERSAND.finditer(utf8, match.start(), match.end()):
            yield Replacement(ampersand.start(), b"_")


_JSX_TEXT = re.compile(rb"=\s*%s|(?<!=)>[^<>{}]*" % _QUOTED)
_AMPERSAND = re.compile(rb"&(?!#\d+;|#[xX][0-9a-fA-F]+;|\w+;)")


def _raw_templates(utf8: bytes) -> Iterator[Replacement]:
    r"""Yield replacements for invalid escapes in tagged templates, which are allowed there: String.raw`\u`."""
    for match in iter_closed(_TEXT, _TEXT_WITHOUT_TEMPLATES, utf8) if b"\\" in utf8 and b"`" in utf8 else ():
        if match[0][:1] == b"`" and _TAG.search(utf8, max(0, match.start() - _TAG_BYTES_MAX), match.start()):
            for escape in _NO_ESCAPE.finditer(utf8, match.start(), match.end()):
                yield Replacement(escape.start(), b"_")


_NO_TEMPLATE = rb"//[^\n]*|/\*.*?(?:\*/|\Z)|%s" % _QUOTED
_TEXT = re.compile(rb"%s|`[^`\\]*(?:\\.[^`\\]*)*(?:`|(?P<open>\\?\Z))" % _NO_TEMPLATE, re.DOTALL)
_TEXT_WITHOUT_TEMPLATES = re.compile(_NO_TEMPLATE, re.DOTALL)
_TAG = re.compile(rb"[\w$)\]>]\s*\Z")
_TAG_BYTES_MAX = 20
_NO_ESCAPE = re.compile(rb"\\(?=u(?!\{[0-9a-fA-F]+\}|[0-9a-fA-F]{4})|x(?![0-9a-fA-F]{2})|[1-9])")

_ELEMENTS = (
    *gaps(
        plain_name,
        # Reserved words as names of attributes and elements: `<li class="a" default>`, `<var>`.
        rb"\s(%s)(?=\s*=\s*[\"'{])" % _RESERVED,
        rb"\s(%s|default)(?=\s*/?>|\s+[\w-]+=[\"'{])" % _RESERVED,
    ),
    *gaps(plain_name, rb"</?(switch|this|var)(?=[\s/>.])", needs=(b"<switch", b"<this", b"<var", b"</")),
    _ampersands,
)

_SCRIPT_GAPS: tuple[Gap, ...] = (
    *_NAMES,
    # The word `with` after an export. The grammar supports it only after imports.
    gap(
        rb"\bfrom\s*%s%s((?:with|assert)%s\{(?:\s*(?:[\w$]+|%s)\s*:\s*%s\s*,?)*\s*(?:/\*[^*]*\*/\s*)?\})"
        % (_QUOTED, _BETWEEN, _BETWEEN, _QUOTED, _QUOTED),
        needs=(b"with", b"assert"),
    ),
    gap(rb"\bimport\s+(defer)(?=\s*\*)", needs=(b"defer",)),
    gap(rb"\bimport\s+(source)(?=\s+(?!from\b)[\w$]+\s+from\b)", needs=(b"source",)),
    gap(rb"\b(export)(?=\s+import\s+(?:type\s+)?[\w$]+\s*=)", needs=(b"import",)),
    gap(rb"\bimport(\.(?:source|defer))(?=\s*\()", needs=(b"import.",)),
    # In `for (using a of b)`, `const` replaces `using`, because it has the same length.
    gap(
        rb"\bfor\s*(?:await\s*)?\(%s(using)(?=\s(?!\s*(?:of|in)\b)|/)" % _BETWEEN,
        lambda _: b"const",
        needs=(b"using",),
    ),
    gap(rb"(await(?<=\bawait)\s+using)(?=\s+(?!in\b|instanceof\b)[\w$]|/)", padded(b"const"), needs=(b"using",)),
    _raw_templates,
    # The line end after a field without a semicolon, before a generator method.
    gap(
        rb"(\n)(?<=[\w$# \t]\n)(?=\s{0,80}\*\s*(?:[\w$#]+|\[[^\]\n]*\])\s*\()",
        lambda _: b";",
        preceded_by=rb"(?:^|[{;])[ \t]*(?:static[ \t]+)?[\w$#]+[ \t]*",
    ),
    # A line with `let name` before a line that begins with `[`. The end of the first line ends the declaration.
    gap(rb"\b(?:let|var)\s+[\w$]+[ \t]*(\n)(?=\s*\[)", lambda _: b";", needs=(b"let", b"var")),
    # NUL characters. The grammars take them for the end of the file.
    gap(rb"(\0)", lambda _: b"\1", needs=(b"\0",)),
)

JAVASCRIPT_GAPS: tuple[Gap, ...] = (
    *_SCRIPT_GAPS,
    # A name replaces the parentheses in `@(a[0])`.
    gap(rb"@(\((?:[^()\n]|\([^()\n]*\)){1,400}\))(?=\s)", lambda text: b"_" * len(text), needs=(b"@(",)),
    # The word `using` as an ordinary name: `using = a;`.
    gap(
        rb"\b(using)(?=\s*[-+*/%^\[?:,=.;|&(<]|[ \t]*$)",
        plain_name,
        needs=(b"using",),
        preceded_by=rb"(?:^|[;{})]|\belse)[ \t]*",
    ),
    *_ELEMENTS,
)

# -- TypeScript -------------------------------------------------------------------------------------------------------

# In `f<<T>(a: T) => b>(c)`, blanks replace the type parameters.
_SHIFT = re.compile(rb"[\w$]<(?=<[A-Za-z_$])")
# Types such as `import("a").B<C>` and `import("a").B[]`. In the grammar, an import type ends after its name. So a union
# with a tuple of the types after the name replaces it: `import("a") |[C]`.
_IMPORT_TYPE = re.compile(
    rb"(?<!typeof )\bimport\(\s*%s\s*\)(?!\s*\.\s*(?:then|catch|finally)\b)((?:\s*\.\s*[\w$\x80-\xff]+)+\s*)(?=[<\[])"
    % _QUOTED
)
_IMPORT_IN_BRACKETS = re.compile(rb"\((?=import\(\s*%s\s*\)\.)" % _QUOTED)
# A line that begins with white space and a bracket. It can be a signature in a type. Then the line before it has no
# separator at its end.
_LINE = re.compile(rb"^[ \t]*([ \t])(?=<\s*[A-Za-z_$]|\()", re.MULTILINE)
_ENDS_A_TYPE = re.compile(rb"(?:[\w$\])}\"'`]|(?<!=)>)\Z")
_TOKENS = rb"=>|[<>()]|%s|//[^\n]*" % _QUOTED
_BRACKETS = re.compile(rb"%s|/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|(?P<open>\Z))" % _TOKENS)
_BRACKETS_WITHOUT_COMMENTS = re.compile(_TOKENS)
_WHITE = re.compile(rb"\s*")
_DECORATOR = re.compile(rb"@\(")
_DEFAULT_FUNCTION = searched(rb"\bexport\s+default\s+(?:async\s+)?function\s*(?=[<(])")
_NO_BODY = re.compile(rb"\s*(:[^;{}]+);")
# The maximum size of a comment between two signatures.
_COMMENT_BYTES_MAX = 20_000


def _shifts(utf8: bytes) -> Iterator[Replacement]:
    closings = _closings(utf8) if b"<<" in utf8 and _SHIFT.search(utf8) else {}
    for match in _SHIFT.finditer(utf8) if closings else ():
        parameters = _after(utf8, closings.get(match.end()), b"(")
        if parameters is not None and _after(utf8, closings.get(parameters), b"=>") is not None:
            yield Replacement(match.end(), blank(utf8[match.end() : parameters]))


def _types_in_brackets(utf8: bytes) -> Iterator[Replacement]:
    """Yield replacements that turn `(import("a").B | C)` into a tuple: square brackets.

    The grammar would take the original text for an expression.
    """
    closings = _closings(utf8) if b"(import(" in utf8 else {}
    for match in _IMPORT_IN_BRACKETS.finditer(utf8) if closings else ():
        closing = closings.get(match.start())
        if closing is not None:
            yield Replacement(match.start(), b"[")
            yield Replacement(closing, b"]")


def _import_types(utf8: bytes) -> Iterator[Replacement]:
    if b"import(" not in utf8:
        return
    closings = _closings(utf8)
    for match in _IMPORT_TYPE.finditer(utf8):
        start, opening = match.span(1)
        closing = closings.get(opening) if utf8[opening] == ord("<") else opening
        if closing is not None:
            yield Replacement(start, blank(utf8[start : opening - 1]) + b"|[")
            if closing != opening:
                yield Replacement(closing, b"]")


def _signatures(utf8: bytes) -> Iterator[Replacement]:
    for match in _LINE.finditer(utf8):
        if _ENDS_A_TYPE.search(_code_before(utf8, match.start())):
            after = b"(" if utf8[match.end()] == ord("<") else b":"
            if _after(utf8, _closings(utf8).get(match.end()), after) is not None:
                yield Replacement(match.start(1), b";")


def _decorators(utf8: bytes) -> Iterator[Replacement]:
    """Yield a replacement for the expression in `@(a[0])`: a name."""
    closings = _closings(utf8) if b"@(" in utf8 else {}
    for match in _DECORATOR.finditer(utf8) if closings else ():
        closing = closings.get(match.start() + 1)
        if closing is not None:
            yield Replacement(match.end(), b"_" * (closing - match.end()))


def _default_functions(utf8: bytes) -> Iterator[Replacement]:
    """In `export default function (): A;`, replace the return type by an empty body."""
    closings = _closings(utf8) if _DEFAULT_FUNCTION.search(utf8) else {}
    for match in _DEFAULT_FUNCTION.finditer(utf8):
        opening: int | None = match.end()
        if utf8[match.end()] == ord("<"):
            opening = _after(utf8, closings.get(match.end()), b"(")
        closing = closings.get(opening) if opening is not None else None
        end = _NO_BODY.match(utf8, closing + 1) if closing is not None else None
        if end is not None:
            yield Replacement(end.start(1), b"{}".ljust(len(end[1])))


def _modifiers(utf8: bytes) -> Iterator[Replacement]:
    """Yield replacements for the modifiers of members: those that matter, in the order that the grammar supports."""
    for match in _MEMBER.finditer(utf8):
        modifiers = match[1].split()
        is_index = match[2] is not None
        ordered = [word for word in modifiers if word in _ACCESS][:1]
        ordered += [
            word
            for word in (b"static", b"override", b"readonly")
            if word in modifiers and not (is_index and word != b"readonly")
        ]
        if b"abstract" in modifiers and b"override" in ordered:
            ordered.remove(b"override")
        yield Replacement(match.start(1), b" ".join(ordered).rjust(len(match[1].rstrip())))


_ACCESS = (b"private", b"protected", b"public")
_MEMBER = re.compile(
    rb"(%s[ \t]+(?:(?:%s)[ \t]+)*)(?=(?:(?:get|set|async)[ \t]+)?[\w$#\"'*]|(\[\s*\w+\s*:)|\[)"
    % (words(_MODIFIERS), _MODIFIERS)
)


@lru_cache(maxsize=2)
def _closings(utf8: bytes) -> dict[int, int]:
    """Map the offset of each `(` and `<` to the offset of its closing bracket.

    A file can have millions of brackets, so the result is cached and used for all gaps.
    """
    closings: dict[int, int] = {}
    angles: list[int] = []
    rounds: list[int] = []
    for match in iter_closed(_BRACKETS, _BRACKETS_WITHOUT_COMMENTS, utf8):
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


def _after(utf8: bytes, closing: int | None, token: bytes) -> int | None:
    """Return the offset of `token` if only white space is between it and the bracket at `closing`.

    Otherwise return None.
    """
    if closing is None:
        return None
    following = _WHITE.match(utf8, closing + 1)
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


TYPESCRIPT_GAPS: tuple[Gap, ...] = (
    *_SCRIPT_GAPS,
    *gaps(
        plain_name,
        # Contextual keywords as ordinary names.
        rb"(%s)(?=\s*[?:,)=.;\]}>|&(<]|[ \t]*$)" % words(b"using|abstract|accessor|type"),
        rb"(%s)(?=\s+(?:as|extends|in|instanceof|satisfies)\b)" % words(b"using|abstract|accessor|type"),
        needs=(b"using", b"abstract", b"accessor", b"type"),
    ),
    *gaps(
        plain_name,
        rb"(in(?:stanceof)?)(?=\s*(?:\?\s*)?:)",
        # A name such as `in_` at the start of a line. The grammar takes `in` for an operator that continues the
        # previous line.
        rb"(in)(?=[\d_$])",
        preceded_by=rb"^[ \t]*",
    ),
    *gaps(
        plain_name,
        # Keywords for types as names of parameters and tuple members: `(any) => void`, `[new: A]`. Also in `typeof
        # undefined`.
        rb"[(,]\s*(%s)(?=\s*(?:,[^()]*)?\)\s*=>)" % _TYPES,
        rb"[\[,]\s*(%s|%s|%s)(?=\s*(?:\?\s*)?:)" % (_RESERVED, _TYPES, _LITERALS),
    ),
    *gaps(plain_name, rb"\btypeof\s+(undefined)\b", needs=(b"undefined",)),
    *gaps(
        plain_name,
        # `{ type as as a }`
        rb"[{,]\s*type\s+(as)(?=\s+as\s+[\w$])",
        rb"[{,]\s*type\s+as\s+(as)(?=\s*[,}])",
        needs=(b"type",),
    ),
    # Variance: `<in out A, out B>`.
    gap(rb"[<,]%s(?:const\s+)?((?:in\s+out|in|out)\b)(?=\s+(?!extends\b)[A-Za-z_$])" % _BETWEEN),
    # In a module declaration, `global { … }` is parsed as a block.
    gap(rb"(global)(?=\s*\{)", preceded_by=rb"^[ \t]*"),
    gap(rb"\bexport\s+(type)(?=\s*\*)", needs=(b"export",)),
    gap(rb"\bexport\s+default\s+(abstract)(?=\s+class\b)", needs=(b"abstract",)),
    gap(rb"\bimport\s+(type)(?=\s+\w+\s*=)", needs=(b"import",)),
    *gaps(blank, rb"\bkeyof\s+(readonly)(?=\s)", rb"\b(keyof)\s+import\(", needs=(b"keyof",)),
    gap(rb"\b(accessor)(?=[ \t]+[\w$#\[\"'])", needs=(b"accessor",)),
    gap(rb"\binfer\s+\w+\s+(extends\s+[\w.]+)", needs=(b"infer",)),
    # The call `f<typeof import("a")>()`, which the grammar takes for a comparison.
    gap(rb"<(?<=\w<)\s*(typeof)\s+import\(", lambda text: b"|".ljust(len(text)), needs=(b"typeof",)),
    # `using a: B = c`
    gap(rb"(using)(?=\s+[\w$]+\s*:)", lambda _: b"const", preceded_by=rb"^[ \t]*(?:await[ \t]+)?"),
    # An assignment to `[a.x as T]`. The grammar supports assignment to a field, but not to an assertion.
    gap(
        rb"[\w$\])]\s+(as)(?=\s+[\w$.]+\s*[,\]}][^;\n]{0,500}?(?:=(?![=>])|\bof\b))",
        padded(b"."),
        needs=(b"as",),
    ),
    _modifiers,
    _default_functions,
    _decorators,
    _shifts,
    _import_types,
    _types_in_brackets,
    _signatures,
)

TSX_GAPS: tuple[Gap, ...] = (*TYPESCRIPT_GAPS, *_ELEMENTS)
