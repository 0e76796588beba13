"""All comparisons: the oracle, the codebase, and the agreement that is required."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from codebatch_workers.syntax.source import SourceFile
from tests.oracles import (
    cloc_oracle,
    complexity_oracle,
    ctags_oracle,
    eslint_oracle,
    import_oracle,
    jscpd_oracle,
    linguist_oracle,
    pyflakes_oracle,
    python_oracle,
    rust_oracle,
    script_oracle,
    syntax_oracle,
)
from tests.oracles.agreement import Agreement, Explain, iter_sources
from tests.support import corpora

_CPP = {"language": b"cpp"}
# Programs besides pip that fetch the corpora of a language.
_DEBIAN = ("apt-get", "dpkg-deb")
_TOOLS = {"go": _DEBIAN, "java": ("npm",), "bash": ("npm",), "lua": _DEBIAN, "php": _DEBIAN, "ruby": _DEBIAN}

PYTHON = {
    "requests": lambda: corpora.sdist("requests", "2.32.3"),
    "flask": lambda: corpora.sdist("Flask", "3.0.3"),
}
AIRFLOW = partial(corpora.sdist, "apache-airflow", "2.9.3")  # Airflow has a tsconfig.json with `paths`.
# Codebases with tests and examples that have unused names.
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
    "cobra": lambda: corpora.debian("golang-github-spf13-cobra-dev"),
    "prometheus-common": lambda: corpora.debian("golang-github-prometheus-common-dev"),
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
    """A comparison with an oracle.

    `tools` must be on PATH. Precision and recall must reach `least`; `least_recall` replaces it for recall. `least_of`
    has minimal precisions for single classes of facts.
    """

    tools: Sequence[str]
    least: float
    least_recall: float | None = None
    least_of: Mapping[str, float] = field(default_factory=dict)
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
    # cloc counts blank lines within strings as blank. Templates in raw strings of Go have many of them.
    return Comparison(tools=("perl", "npm", *tools), least=0.98, agree=agree)


def _jscpd(root: Callable[[], Path], languages: Sequence[str]) -> Comparison:
    def agree() -> Agreement:
        return jscpd_oracle.agree(root(), iter_sources(root(), languages, {}))

    return Comparison(tools=("node", "npm"), least=0.99, least_recall=0.95, agree=agree)


def _syntax(name: str) -> Comparison:
    """Few reported errors may be false. More may be missed, because grammars accept more than languages do."""
    languages, _ = syntax_oracle.CORPORA[name]
    tools = ("npm",) if "javascript" in languages else _TOOLS.get(languages[0], ())
    return Comparison(tools=tools, least=0.94, least_recall=0.84, agree=lambda: syntax_oracle.agree(name))


def _linguist(name: str) -> Comparison:
    return Comparison(tools=("npm",), least=0.99, least_recall=0.97, agree=lambda: linguist_oracle.agree(name))


# The minimal precision of each resolution: `exact` is reliable, `file` a guess.
_LEVELS = {"exact": 0.99, "file": 0.0}


def _leads(
    root: Callable[[], Path],
    languages: Sequence[str],
    ask: Callable[[Path], import_oracle.Ask],
    *,
    tools: Sequence[str] = (),
    least: float = 0.99,
    explain: Explain = lambda _side, _fact: None,
) -> Comparison:
    def agree() -> Agreement:
        return import_oracle.agree(root(), iter_sources(root(), languages, {}), ask(root()), explain)

    return Comparison(tools=tools, least=least, least_of=_LEVELS, agree=agree)


def _python_leads(root: Callable[[], Path], *roots: str, least: float = 0.99) -> Comparison:
    return _leads(root, ["python"], lambda at: import_oracle.importlib_leads(at, roots), least=least)


def _script_leads(root: Callable[[], Path]) -> Comparison:
    tools, explain = ("node", "npm"), import_oracle.explain_tsc
    return _leads(root, script_oracle.LANGUAGES, import_oracle.tsc_leads, tools=tools, explain=explain)


def _c_leads(root: Callable[[], Path], *options: str) -> Comparison:
    def agree() -> Agreement:
        return import_oracle.agree_with_compiler(root(), iter_sources(root(), ["c", "cpp"], {}), options)

    return Comparison(tools=("cc",), least=0.99, least_of=_LEVELS, agree=agree)


def _go_leads(root: Callable[[], Path], path: str) -> Comparison:
    tools = ("go", *_TOOLS["go"])
    return _leads(lambda: root() / "usr/share/gocode/src" / path, ["go"], import_oracle.go_list_leads, tools=tools)


def _java_leads(root: Callable[[], Path], *roots: str) -> Comparison:
    tools = ("java", *_TOOLS["java"])
    return _leads(root, ["java"], lambda at: import_oracle.javac_leads(at, roots), tools=tools)


def _rust_leads(root: Callable[[], Path]) -> Comparison:
    def agree() -> Agreement:
        return rust_oracle.agree(root(), iter_sources(root(), ["rust"], {}))

    return Comparison(tools=("cargo", "rustc"), least=0.98, least_of=_LEVELS, agree=agree)


_FLASK_EXAMPLES = ("examples/celery/src", "examples/javascript", "examples/tutorial")
_LEADS: Mapping[str, Comparison] = {
    "importlib: imports of requests": _python_leads(PYTHON["requests"], "src", "."),
    "importlib: imports of flask": _python_leads(PYTHON["flask"], "src", ".", "tests/test_apps", *_FLASK_EXAMPLES),
    "importlib: imports of docutils": _python_leads(UNLINTED_PYTHON["docutils"], "."),
    "importlib: imports of django": _python_leads(lambda: corpora.sdist(*corpora.DJANGO), "."),
    "importlib: imports of django, its package the root": _python_leads(
        lambda: corpora.sdist(*corpora.DJANGO) / "django", ".."
    ),
    "importlib: imports of airflow": _python_leads(AIRFLOW, "."),
    "tsc: imports of rxjs": _script_leads(lambda: corpora.npm("rxjs", "7.8.1")),
    "tsc: imports of eslint": _script_leads(SCRIPT["eslint"]),
    "tsc: imports of airflow": _script_leads(AIRFLOW),
    "tsc: imports of svelte kit": _script_leads(lambda: corpora.npm("@sveltejs/kit", "3.2.0")),
    "cc: includes of psutil": _c_leads(C["psutil"]),
    "cc: includes of libuv": _c_leads(C["libuv"], "include", "src"),
    "cc: includes of leveldb": _c_leads(CPP["leveldb"], "leveldb", "leveldb/include", "snappy"),
    "cc: includes of fasttext": _c_leads(CPP["fasttext"]),
    "go list: imports of cobra": _go_leads(GO["cobra"], "github.com/spf13/cobra"),
    "go list: imports of prometheus-common": _go_leads(GO["prometheus-common"], "github.com/prometheus/common"),
    "go list: imports of tools": _go_leads(lambda: corpora.debian("golang-golang-x-tools-dev"), "golang.org/x/tools"),
    "javac: imports of jpype": _java_leads(JAVA["jpype"], "native/java", "test/harness", "project/jpype_java/test"),
    "javac: imports of cordova-android": _java_leads(JAVA["cordova-android"], "framework/src"),
    **{f"rustc: modules and crates of {name}": _rust_leads(root) for name, root in RUST.items()},
}

_COMPILED: Mapping[str, Corpora] = {"c": C, "cpp": CPP, "go": GO, "rust": RUST, "java": JAVA}

_COUNTED: Mapping[tuple[str, ...], Corpora] = {
    ("python",): PYTHON,
    script_oracle.LANGUAGES: SCRIPT,
    ("bash",): BASH,
    **{(language,): roots for language, roots in _COMPILED.items()},
}

# Comparisons with eslint of the same tree follow each other, so that its answers are computed once.
_ESLINT: dict[str, Comparison] = {}
for _name, _root in SCRIPT.items():
    _ESLINT[f"eslint: complexity of {_name}"] = _eslint(_root, eslint_oracle.agree_on_complexity, 0.99)
    if _name != "eslint":  # Measuring eslint's own source twice would take too long.
        _ESLINT[f"sonarjs: cognitive complexity of {_name}"] = _eslint(
            _root, eslint_oracle.agree_on_cognitive_complexity, 0.92
        )
for _name, _root in UNLINTED.items():
    _ESLINT[f"eslint: unused names of {_name}"] = _eslint(_root, eslint_oracle.agree_on_unused, 0.99, 0.95)
    _ESLINT[f"eslint: shadowing names of {_name}"] = _eslint(_root, eslint_oracle.agree_on_shadowing, 0.99, 0.85)

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
    **_ESLINT,
    **{
        f"cloc: lines of {languages[0]} in {name}": _cloc(root, languages)
        for languages, roots in _COUNTED.items()
        for name, root in roots.items()
    },
    "jscpd: duplicated lines of psutil": _jscpd(C["psutil"], ["c", "python"]),
    "jscpd: duplicated lines of rxjs": _jscpd(SCRIPT["rxjs"], ["typescript"]),
    **_LEADS,
    **{f"pyflakes: unused names of {name}": _pyflakes(root) for name, root in UNLINTED_PYTHON.items()},
    **{
        f"{' '.join(languages)} tools: syntax errors of {name}": _syntax(name)
        for name, (languages, _) in syntax_oracle.CORPORA.items()
    },
    **{f"linguist: languages and classes of {name}": _linguist(name) for name in linguist_oracle.CORPORA},
}
