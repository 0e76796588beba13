"""Every comparison: which oracle, over which codebase, and how far they must agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from codebatch_workers.source import SourceFile
from tests import corpora
from tests.oracles import (
    cloc_oracle,
    complexity_oracle,
    ctags_oracle,
    eslint_oracle,
    jscpd_oracle,
    linguist_oracle,
    pyflakes_oracle,
    python_oracle,
    script_oracle,
    syntax_oracle,
)
from tests.oracles.agreement import Agreement, iter_sources

_CPP = {"language": b"cpp"}
# What fetches the corpora of a language, beside pip.
_DEBIAN = ("apt-get", "dpkg-deb")
_TOOLS = {"go": _DEBIAN, "java": ("npm",), "bash": ("npm",), "lua": _DEBIAN, "php": _DEBIAN, "ruby": _DEBIAN}

PYTHON = {
    "requests": lambda: corpora.sdist("requests", "2.32.3"),
    "flask": lambda: corpora.sdist("Flask", "3.0.3"),
}
# With tests and examples, in which names are left unused.
UNLINTED_PYTHON = {
    "docutils": lambda: corpora.sdist("docutils", "0.18.1"),
    "jpype": lambda: corpora.sdist("JPype1", "1.5.0"),
}
SCRIPT = {
    "express": lambda: corpora.npm("express", "4.19.2"),
    "eslint": lambda: corpora.npm("eslint", "9.14.0"),
    "rxjs": lambda: corpora.npm("rxjs", "7.8.1") / "src",
    "zod": lambda: corpora.npm("zod", "3.23.8"),
    "react-table": lambda: corpora.npm("@tanstack/react-table", "8.20.5") / "src",
}
UNLINTED = {
    "pm2": lambda: corpora.npm("pm2", "5.3.0"),
    "rxjs 6": lambda: corpora.npm("rxjs", "6.6.7") / "src",
}
C = {
    "psutil": lambda: corpora.sdist("psutil", "6.0.0"),
    "libuv": lambda: corpora.sdist("uvloop", "0.20.0") / "vendor" / "libuv",
}
CPP = {
    "leveldb": lambda: corpora.sdist("leveldb", "0.201"),
    "fasttext": lambda: corpora.sdist("fasttext", "0.9.3") / "src",
}
GO = {
    "cobra": lambda: corpora.debian("golang-github-spf13-cobra-dev", "1.6.1-1"),
    "prometheus-common": lambda: corpora.debian("golang-github-prometheus-common-dev", "0.39.0-2"),
}
RUST = {
    "cryptography": lambda: corpora.sdist("cryptography", "41.0.7") / "src" / "rust",
    "tokenizers": lambda: corpora.sdist("tokenizers", "0.13.3"),
}
JAVA = {
    "jpype": lambda: corpora.sdist("JPype1", "1.5.0"),
    "cordova-android": lambda: corpora.npm("cordova-android", "13.0.0"),
}
BASH = {
    "bats": lambda: corpora.npm("bats", "1.11.0"),
    "n": lambda: corpora.npm("n", "10.0.0"),
}

Corpora = Mapping[str, Callable[[], Path]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How to ask both sides. `tools` must be on PATH; precision and recall must reach `least`, or what recall has."""

    tools: Sequence[str]
    least: float
    least_recall: float | None = None
    agree: Callable[[], Agreement]


def _python(root: Callable[[], Path]) -> Comparison:
    return Comparison(tools=(), least=0.99, agree=lambda: python_oracle.agree(iter_sources(root(), ["python"], {})))


def _script(root: Callable[[], Path]) -> Comparison:
    def agree() -> Agreement:
        return script_oracle.agree(root(), iter_sources(root(), script_oracle.LANGUAGES, {}))

    return Comparison(tools=("node", "npm"), least=0.97, agree=agree)


def _ctags(root: Callable[[], Path], language: str) -> Comparison:
    def agree() -> Agreement:
        contexts = _CPP if language == "cpp" else {}
        return ctags_oracle.agree(root(), language, iter_sources(root(), [language], contexts))

    return Comparison(tools=("ctags", *_TOOLS.get(language, ())), least=0.95, agree=agree)


def _radon(root: Callable[[], Path]) -> Comparison:
    def agree() -> Agreement:
        return complexity_oracle.agree_with_radon(iter_sources(root(), ["python"], {}))

    return Comparison(tools=(), least=0.99, agree=agree)


def _lizard(root: Callable[[], Path], language: str) -> Comparison:
    def agree() -> Agreement:
        contexts = _CPP if language == "cpp" else {}
        return complexity_oracle.agree_with_lizard(iter_sources(root(), [language], contexts))

    return Comparison(tools=_TOOLS.get(language, ()), least=0.99, agree=agree)


def _eslint(
    root: Callable[[], Path],
    ask: Callable[[Path, Iterable[SourceFile]], Agreement],
    least: float,
    least_recall: float | None = None,
) -> Comparison:
    def agree() -> Agreement:
        return ask(root(), iter_sources(root(), script_oracle.LANGUAGES, {}))

    return Comparison(tools=("node", "npm"), least=least, least_recall=least_recall, agree=agree)


def _pyflakes(root: Callable[[], Path]) -> Comparison:
    def agree() -> Agreement:
        return pyflakes_oracle.agree(iter_sources(root(), ["python"], {}))

    return Comparison(tools=(), least=0.99, least_recall=0.95, agree=agree)


def _cloc(root: Callable[[], Path], languages: Sequence[str]) -> Comparison:
    def agree() -> Agreement:
        contexts = _CPP if languages == ("cpp",) else {}
        return cloc_oracle.agree(root(), iter_sources(root(), languages, contexts))

    tools = _TOOLS.get(languages[0], ())
    return Comparison(tools=("perl", "npm", *tools), least=0.99, agree=agree)


def _jscpd(root: Callable[[], Path], languages: Sequence[str]) -> Comparison:
    def agree() -> Agreement:
        return jscpd_oracle.agree(root(), iter_sources(root(), languages, {}))

    return Comparison(tools=("node", "npm"), least=0.99, least_recall=0.95, agree=agree)


def _syntax(name: str) -> Comparison:
    """Of the errors that we tell, few are false; more are missed, for grammars accept more than languages do."""
    languages, _ = syntax_oracle.CORPORA[name]
    tools = ("npm",) if "javascript" in languages else _TOOLS.get(languages[0], ())
    return Comparison(tools=tools, least=0.94, least_recall=0.84, agree=lambda: syntax_oracle.agree(name))


def _linguist(name: str) -> Comparison:
    return Comparison(tools=("npm",), least=0.99, least_recall=0.97, agree=lambda: linguist_oracle.agree(name))


_COMPILED: Mapping[str, Corpora] = {"c": C, "cpp": CPP, "go": GO, "rust": RUST, "java": JAVA}

_COUNTED: Mapping[tuple[str, ...], Corpora] = {
    ("python",): PYTHON,
    script_oracle.LANGUAGES: SCRIPT,
    ("bash",): BASH,
    **{(language,): roots for language, roots in _COMPILED.items()},
}

COMPARISONS: Mapping[str, Comparison] = {
    **{f"ast: definitions, imports, bases, calls of {name}": _python(root) for name, root in PYTHON.items()},
    **{f"tsc: definitions of {name}": _script(root) for name, root in SCRIPT.items()},
    **{
        f"ctags: {language} definitions of {name}": _ctags(root, language)
        for language, roots in {**_COMPILED, "bash": BASH}.items()
        for name, root in roots.items()
    },
    **{f"radon: complexity of {name}": _radon(root) for name, root in PYTHON.items()},
    **{
        f"lizard: {language} complexity of {name}": _lizard(root, language)
        for language, roots in _COMPILED.items()
        for name, root in roots.items()
    },
    **{
        f"eslint: complexity of {name}": _eslint(root, eslint_oracle.agree_on_complexity, 0.99)
        for name, root in SCRIPT.items()
    },
    **{
        f"sonarjs: cognitive complexity of {name}": _eslint(root, eslint_oracle.agree_on_cognitive_complexity, 0.92)
        for name, root in SCRIPT.items()
        if name != "eslint"  # To measure its own source twice takes long.
    },
    **{
        f"eslint: unused names of {name}": _eslint(root, eslint_oracle.agree_on_unused, 0.99, 0.95)
        for name, root in UNLINTED.items()
    },
    **{
        f"eslint: shadowing names of {name}": _eslint(root, eslint_oracle.agree_on_shadowing, 0.99, 0.85)
        for name, root in UNLINTED.items()
    },
    **{
        f"cloc: lines of {languages[0]} in {name}": _cloc(root, languages)
        for languages, roots in _COUNTED.items()
        for name, root in roots.items()
    },
    "jscpd: duplicated lines of psutil": _jscpd(C["psutil"], ["c", "python"]),
    "jscpd: duplicated lines of rxjs": _jscpd(SCRIPT["rxjs"], ["typescript"]),
    **{f"pyflakes: unused names of {name}": _pyflakes(root) for name, root in UNLINTED_PYTHON.items()},
    **{
        f"{' '.join(languages)} tools: syntax errors of {name}": _syntax(name)
        for name, (languages, _) in syntax_oracle.CORPORA.items()
    },
    **{f"linguist: languages and classes of {name}": _linguist(name) for name in linguist_oracle.CORPORA},
}
