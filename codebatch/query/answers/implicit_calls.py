"""Names of functions that a language or its runtime calls without their names: operators, constructors, `main`."""

from __future__ import annotations

import re
from collections.abc import Mapping

_FUNCTIONS = re.compile(r"main|Main|init|__getattr__|__dir__")
"""Functions outside of classes that a runtime calls by their names."""
_JVM_METHODS = "main|toString|equals|hashCode|compareTo|iterator|close|finalize"
_METHODS: Mapping[str, re.Pattern[str]] = {
    language: re.compile(pattern)
    for language, pattern in {
        "c": "main",
        "cpp": r"operator.*|~.*|begin|end",
        "csharp": "Main|Dispose|DisposeAsync|ToString|Equals|GetHashCode|GetEnumerator|MoveNext|Deconstruct|CompareTo"
        "|Add",
        "go": r"String|Error|ServeHTTP|RoundTrip|(?:Unm|M)arshal\w+|Len|Less|Swap|Read|Write|Close|Scan|Value|Format"
        "|Unwrap|Is|As",
        "java": f"{_JVM_METHODS}|readObject|writeObject|readResolve|writeReplace",
        "javascript": "constructor|toString|valueOf|toJSON|then",
        "kotlin": f"{_JVM_METHODS}|constructor|invoke|get|set|plus|minus|times|div|rem|rangeTo|rangeUntil|contains|inc"
        r"|dec|not|unary\w+|\w+Assign|component\d+|getValue|setValue|provideDelegate|next|hasNext",
        "lua": r"__\w+",
        "php": r"__\w+",
        "python": r"__\w+__",
        "ruby": r"initialize|\w+_missing\??|inherited|included|extended|prepended|method_added|to_\w+|each|call|coerce"
        r"|hash|eql\?|inspect|\W+",
        "rust": "drop|fmt|next|eq|ne|cmp|partial_cmp|hash|add|sub|mul|div|rem|neg|not|index|index_mut|deref|deref_mut"
        r"|from|try_from|into_iter|poll|\w+_assign|shl|shr|bitand|bitor|bitxor",
        "scala": f"{_JVM_METHODS}|apply|unapply|unapplySeq|update|map|flatMap|foreach|withFilter|\\W+",
        "swift": "init|deinit|subscript|callAsFunction|dynamicallyCall|makeIterator|next|hash|main|description|encode"
        r"|\W.*",
    }.items()
}
_SAME_AS: Mapping[str, str] = {"typescript": "javascript", "tsx": "javascript"}


def is_called_implicitly(language: str, name: str, *, is_member: bool) -> bool:
    """Return whether code in a language calls functions of this name without the name."""
    pattern = _METHODS.get(_SAME_AS.get(language, language)) if is_member else _FUNCTIONS
    return pattern is not None and pattern.fullmatch(name) is not None
