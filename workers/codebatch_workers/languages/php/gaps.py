"""Valid PHP that the grammar does not support."""

from __future__ import annotations

import re

from codebatch_workers.syntax.grammar_gaps.stand_ins import blanks_for, make_gap, name_for
from codebatch_workers.syntax.language_gaps import GapFinder, LanguageGaps

_CAST_TYPES = rb"array|binary|bool|boolean|double|float|int|integer|object|real|string|unset"
_TYPE_WORDS = rb"array|bool|callable|false|float|int|iterable|mixed|never|null|object|string|true|void"
_RESERVED_WORDS = (
    rb"abstract|and|array|as|break|callable|case|catch|class|clone|const|continue|declare|default|do|echo|else|elseif"
    rb"|empty|enddeclare|endfor|endforeach|endif|endswitch|endwhile|exit|extends|final|finally|fn|for|foreach|function"
    rb"|global|goto|if|implements|include|instanceof|insteadof|interface|isset|list|match|namespace|new|or|print"
    rb"|private|protected|public|readonly|require|return|static|switch|throw|trait|try|unset|use|var|while|xor|yield"
)


def _bracketed_offset(offset: bytes) -> bytes:
    return b"[" + offset[1:-1] + b"]"


_GAPS: tuple[GapFinder, ...] = (
    # A class named like a cast, between parentheses: `f(Binary::A)`.
    make_gap(rb"\b(%s)(?=\s*::)" % _CAST_TYPES, name_for, re.IGNORECASE, needs=(b"::",)),
    # A property named like a keyword, in a string: `"$a->class"`.
    make_gap(rb"\$\w+\??->(%s)\b" % _RESERVED_WORDS, name_for, re.IGNORECASE, needs=(b"->",)),
    # A key named like a keyword, in a string: `"$a[class]"`.
    make_gap(rb"\$\w+\[(%s)\]" % _RESERVED_WORDS, name_for, re.IGNORECASE, needs=(b"[",)),
    # A trait method that is renamed to a keyword: `use T { f as class; }`.
    make_gap(
        rb"\bas\s+(?:(?:private|protected|public)\s+)?(%s)(?=\s*;)" % _RESERVED_WORDS,
        name_for,
        re.IGNORECASE,
        needs=(b"as", b"AS"),
    ),
    # A clone of an assigned value: `clone $a ??= b()`.
    make_gap(rb"\b(clone)(?=\s+\$\w+(?:->\w+)*\s*(?:\?\?)?=(?!=))", blanks_for, needs=(b"clone",)),
    # A final promoted parameter (PHP 8.5).
    make_gap(rb"[(,]\s*(final)(?=\s+(?:private|protected|public|readonly)\b)", needs=(b"final",)),
    # A constant named like a type: `const TRUE = 1`.
    make_gap(rb"\bconst\s+(%s)(?=\s*=)" % _TYPE_WORDS, name_for, re.IGNORECASE, needs=(b"const",)),
    # Data after the end of the program.
    make_gap(
        rb"__halt_compiler\s*\(\s*\)\s*(?:;|\?>)(.*)\Z",
        flags=re.IGNORECASE | re.DOTALL,
        needs=(b"alt_compiler", b"ALT_COMPILER"),
    ),
    # String access in the syntax before PHP 8: `$a{0}`.
    make_gap(rb"\$\w+(\{[^{}\s;]{1,100}\})", _bracketed_offset, needs=(b"{",)),
)

GAPS = {"php": LanguageGaps(finders=_GAPS)}
