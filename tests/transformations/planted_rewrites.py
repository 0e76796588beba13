"""Planted rewrites of one file: bad ones with the gate that refuses each, and good ones."""

from __future__ import annotations

from typing import Literal, NamedTuple

from codebatch.model.change import Gate

_KEY = "-----BEGIN PRIVATE KEY-----\\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj" * 3 + "-----END"


class PlantedRewrite(NamedTuple):
    """A rewrite, and a file in which it matches.

    `gate` is the gate that refuses the change, or None if the rewrite is good. `left out`: there is no change, because
    the new code does not fit in its place.
    """

    language: str
    pattern: str
    rewrite: str
    content: str
    gate: Gate | Literal["left out"] | None


PLANTED_REWRITES = (
    # The new code is not valid in its place.
    PlantedRewrite("python", "old($X)", "new($X", "y = old(1)\n", "left out"),
    PlantedRewrite("python", "old($X)", "x = $X", "y = 1 + old(1)\n", "left out"),
    PlantedRewrite("python", "$X == None", "$X is not", "if a == None:\n    pass\n", "left out"),
    PlantedRewrite("javascript", "old($X)", "new ($X", "old(1);\n", "left out"),
    PlantedRewrite("typescript", "old($X)", "as $X", "let a: string = old(1);\n", "left out"),
    PlantedRewrite("go", "old($X)", "if $X", "package a\n\nfunc f() { x := old(1) }\n", "left out"),
    PlantedRewrite("java", "old($X)", "new($X)", "class C { int a = old(1); }\n", "left out"),
    PlantedRewrite("rust", "old($X)", "fn $X", "fn f() { let a = old(1); }\n", "left out"),
    PlantedRewrite("json", '"old": $X', '"new" $X', '{"old": 1}\n', "left out"),
    PlantedRewrite("css", "color: $X", "color: {$X", "a { color: red; }\n", "left out"),
    # The new code matches again.
    PlantedRewrite("python", "old($X)", "old($X, old($X))", "old(1)\n", "repeat"),
    PlantedRewrite("python", "f($$$A)", "f($$$A, 1)", "f(a)\n", "repeat"),
    PlantedRewrite("python", "f($A, $B)", "f($B, $A)", "f(a, b)\nf(c, f(d, e))\n", "repeat"),
    PlantedRewrite("javascript", "f($X)", "f(await $X)", "async function g() { f(1); }\n", "repeat"),
    PlantedRewrite("go", "f($X)", "g(f($X))", "package a\n\nfunc h() { f(1) }\n", "repeat"),
    PlantedRewrite("python", "a.$X", "a.b.$X", "a.c\n", "repeat"),
    PlantedRewrite("ruby", "puts $X", "puts $X.to_s", "puts 1\n", "repeat"),
    # The new code has a finding.
    PlantedRewrite("python", "key()", f'"{_KEY}"', "k = key()\n", "findings"),
    PlantedRewrite("javascript", "old($X)", "new_($X /* \u202e */)", "old(1);\n", "findings"),
    PlantedRewrite("c", "old($X)", "renamed($X) /* \u2066 */", "int a = old(1);\n", "findings"),
)

GOOD_REWRITES = (
    PlantedRewrite("python", "old($X)", "new($X)", "old(old(1))\n", None),
    PlantedRewrite("python", "$X == None", "$X is None", "a == None and b == None\n", None),
    PlantedRewrite("javascript", "var $X = $Y;", "const $X = $Y;", "var a = 1;\n", None),
    PlantedRewrite("go", "old($$$A)", "renamed($$$A)", "package a\n\nfunc f() { old(1, 2) }\n", None),
    PlantedRewrite("java", "new Integer($X)", "Integer.valueOf($X)", "class C { int a = new Integer(1); }\n", None),
    PlantedRewrite("json", '"old": $X', '"new": $X', '{"old": [1]}\n', None),
    PlantedRewrite("python", "old($X)", "new($X)", "x = = 1\n\nold(1)\n", None),
)
