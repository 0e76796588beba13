"""An example of a custom rule for each language. `rules new` writes it as a starting point for a new rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class RuleExample(NamedTuple):
    """A pattern or query with a message, and sources in which it must match, or must not match."""

    pattern: str
    message: str
    bad: str
    good: str
    query: str = ""


_JAVASCRIPT_EXAMPLE = RuleExample(
    "console.log($$$)", "console.log is left in the code", "console.log(1);\n", "logger.log(1);\n"
)
_C_EXAMPLE = RuleExample(
    "strcpy($TO, $FROM)",
    "strcpy to `{TO}` without a bound",
    "void f(char *a, char *b) { strcpy(a, b); }\n",
    "void f(char *a, char *b) { strncpy(a, b, 8); }\n",
)
_SHELL_EXAMPLE = RuleExample("eval $$$", "eval runs what it is given", 'eval "$1"\n', 'echo "$1"\n')
_JSON_EXAMPLE = RuleExample('"debug": true', "debug is on", '{"debug": true}\n', '{"debug": false}\n')

_EXAMPLE_BY_LANGUAGE: Mapping[str, RuleExample] = {
    "bash": _SHELL_EXAMPLE,
    "c": _C_EXAMPLE,
    "cpp": _C_EXAMPLE,
    "csharp": RuleExample(
        "Console.WriteLine($$$)",
        "Console.WriteLine is left in the code",
        "class C { void M() { Console.WriteLine(1); } }\n",
        "class C { void M() { Log.WriteLine(1); } }\n",
    ),
    "css": RuleExample("float: $SIDE", "float: {SIDE}", "a { float: left; }\n", "a { color: red; }\n"),
    "go": RuleExample(
        "fmt.Println($$$)",
        "fmt.Println is left in the code",
        "package a\n\nfunc f() { fmt.Println(1) }\n",
        "package a\n\nfunc f() { log.Println(1) }\n",
    ),
    "hcl": RuleExample("debug = true", "debug is on", "debug = true\n", "debug = false\n"),
    "html": RuleExample("<center>$$$</center>", "<center> is obsolete", "<center>a</center>\n", "<p>a</p>\n"),
    "java": RuleExample(
        "System.out.println($$$)",
        "System.out.println is left in the code",
        "class C { void m() { System.out.println(1); } }\n",
        "class C { void m() { log.println(1); } }\n",
    ),
    "javascript": _JAVASCRIPT_EXAMPLE,
    "json": _JSON_EXAMPLE,
    "jsonc": _JSON_EXAMPLE,
    "kotlin": RuleExample(
        "println($$$)", "println is left in the code", "fun f() { println(1) }\n", "fun f() { log(1) }\n"
    ),
    "lua": RuleExample("print($$$)", "print is left in the code", "print(1)\n", "log(1)\n"),
    "markdown": RuleExample(
        "", "a heading of the sixth level", "###### a\n", "# a\n", query="(atx_heading (atx_h6_marker)) @report"
    ),
    "php": RuleExample("var_dump($$$)", "var_dump is left in the code", "<?php var_dump($a);\n", "<?php log($a);\n"),
    "python": RuleExample("print($$$)", "print is left in the code", "print(1)\n", "log.print(1)\n"),
    "ruby": RuleExample("puts $X", "puts is left in the code", "puts 1\n", "log 1\n"),
    "rust": RuleExample(
        "$X.unwrap()", "`{X}` is unwrapped", "fn f() { a.unwrap(); }\n", "fn f() { a.unwrap_or(1); }\n"
    ),
    "scala": RuleExample("println($$$)", "println is left in the code", "def f = println(1)\n", "def f = log(1)\n"),
    "sql": RuleExample("DELETE FROM $T", "all of {T} is deleted", "DELETE FROM a;\n", "DELETE FROM a WHERE b = 1;\n"),
    "swift": RuleExample("print($$$)", "print is left in the code", "print(1)\n", "log(1)\n"),
    "toml": RuleExample("debug = true", "debug is on", "debug = true\n", "debug = false\n"),
    "tsx": _JAVASCRIPT_EXAMPLE,
    "typescript": _JAVASCRIPT_EXAMPLE,
    "yaml": RuleExample("debug: true", "debug is on", "debug: true\n", "debug: false\n"),
    "zsh": _SHELL_EXAMPLE,
}


def rule_example(language: str) -> RuleExample:
    """Return the example for a language. The language must have a grammar."""
    return _EXAMPLE_BY_LANGUAGE[language]
