"""What language a file is in, and the grammars that parse it.

Detection is a pure function of the path, the first line and the `language` context, with the tables below: first the
whole name, then the longest known extension, then the shebang. A grammar wheel is imported when a file of its language
arrives, and not before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tree_sitter

# The language of a text file that no table knows.
UNKNOWN = "text"


def _spread(table: dict[str, str]) -> dict[bytes, str]:
    return {name.encode(): language for language, names in table.items() for name in names.split()}


# Extensions, lower case, without the dot. `.h` is here as C; the `language` context may say C++.
_EXTENSIONS = _spread(
    {
        "ada": "adb ads",
        "asm": "asm s nasm",
        "astro": "astro",
        "awk": "awk gawk",
        "bash": "bash bats ebuild eclass ksh sh",
        "batch": "bat cmd",
        "bazel": "bazel bzl star",
        "c": "c h",
        "clojure": "clj cljc cljs edn",
        "cmake": "cmake",
        "cobol": "cbl cob cpy",
        "coffeescript": "coffee",
        "cpp": "c++ c++m cc ccm cp cpp cppm cu cuh cxx cxxm h++ hh hpp hxx inl ino ipp ixx tcc tpp txx",
        "crystal": "cr",
        "csharp": "cs csx",
        "css": "css",
        "csv": "csv",
        "cython": "pxd pxi pyx",
        "d": "d di",
        "dart": "dart",
        "diff": "diff patch",
        "dockerfile": "containerfile dockerfile",
        "dtd": "dtd",
        "elixir": "ex exs",
        "elm": "elm",
        "erlang": "erl escript hrl",
        "fish": "fish",
        "fortran": "f f03 f08 f77 f90 f95 for",
        "fsharp": "fs fsi fsx",
        "gettext": "po pot",
        "gherkin": "feature",
        "glsl": "frag geom glsl vert",
        "go": "go",
        "gomod": "go.mod",
        "gradle": "gradle",
        "graphql": "gql graphql graphqls",
        "groovy": "groovy gvy",
        "haskell": "hs lhs",
        "hcl": "hcl tf tfvars",
        "html": "htm html xhtml",
        "ini": "cfg conf desktop editorconfig ini service",
        "java": "java",
        "javascript": "cjs es6 js jsm jsx mjs",
        "json": "avsc geojson gltf har ipynb json jsonl ndjson topojson webapp webmanifest",
        "json5": "json5",
        "jsonc": "code-workspace jsonc sublime-project sublime-settings",
        "julia": "jl",
        "kotlin": "kt kts",
        "latex": "cls ltx sty tex",
        "less": "less",
        "lisp": "cl el lisp lsp",
        "log": "log",
        "lua": "lua",
        "make": "mak make mk",
        "markdown": "markdown md mdown mkd",
        "mdx": "mdx",
        "meson": "meson",
        "nim": "nim nims",
        "nix": "nix",
        "objective-c": "m",
        "objective-cpp": "mm",
        "ocaml": "ml mli",
        "pascal": "dpr pas pp",
        "perl": "pl pm t",
        "php": "php php3 php4 php5 phtml",
        "powershell": "ps1 psd1 psm1",
        "prolog": "prolog",
        "properties": "properties",
        "protobuf": "proto",
        "pug": "jade pug",
        "puppet": "epp",
        "python": "py pyi pyt pyw wsgi",
        "qml": "qml",
        "r": "r rmd",
        "racket": "rkt",
        "razor": "cshtml razor",
        "rst": "rest rst",
        "ruby": "gemspec podspec rake rb ru",
        "rust": "rs",
        "sass": "sass",
        "scala": "sbt sc scala",
        "scheme": "scm ss",
        "scss": "scss",
        "solidity": "sol",
        "sql": "ddl dml psql sql",
        "svelte": "svelte",
        "svg": "svg",
        "swift": "swift",
        "tcl": "tcl tk",
        "terraform": "tofu",
        "text": "text txt",
        "thrift": "thrift",
        "toml": "toml",
        "tsv": "tsv",
        "tsx": "tsx",
        "typescript": "cts mts ts",
        "vb": "bas vb vbs",
        "verilog": "sv svh v vh",
        "vhdl": "vhd vhdl",
        "vim": "vim",
        "vue": "vue",
        "wasm": "wast wat",
        "xml": "csproj plist pom props resx targets vbproj vcxproj wsdl xaml xml xsd xsl xslt",
        "yaml": "yaml yml",
        "zig": "zig zon",
        "zsh": "zsh zsh-theme",
    }
)

# Whole names, compared as they are written.
_NAMES = _spread(
    {
        "bash": ".bash_aliases .bash_logout .bash_profile .bashrc .envrc .profile APKBUILD PKGBUILD bashrc",
        "bazel": "BUILD WORKSPACE",
        "cmake": "CMakeLists.txt",
        "dockerfile": "Containerfile Dockerfile",
        "gitignore": ".dockerignore .gitattributes .gitignore .npmignore .codebatchignore",
        "gomod": "go.mod go.work",
        "groovy": "Jenkinsfile",
        "ini": ".coveragerc .editorconfig .flake8 .gitconfig .gitmodules .npmrc .pylintrc",
        "json": ".watchmanconfig composer.lock flake.lock Pipfile.lock",
        "jsonc": ".babelrc .eslintrc .jshintrc .jslintrc .swcrc devcontainer.json",
        "just": "justfile Justfile",
        "make": "GNUmakefile Makefile makefile Kbuild",
        "meson": "meson.build meson_options.txt",
        "python": ".pythonrc SConscript SConstruct wscript",
        "ruby": "Brewfile Gemfile Guardfile Podfile Rakefile Vagrantfile",
        "toml": "Cargo.lock Pipfile poetry.lock uv.lock",
        "vim": ".vimrc vimrc",
        "yaml": ".clang-format .clang-tidy .clangd .yamllint",
        "zsh": ".zlogin .zlogout .zprofile .zshenv .zshrc zshrc",
    }
)

# Programs named by a shebang, without a version at their end.
_INTERPRETERS = _spread(
    {
        "awk": "awk gawk mawk",
        "bash": "ash bash bats dash ksh mksh sh",
        "elixir": "elixir",
        "fish": "fish",
        "groovy": "groovy",
        "javascript": "bun node nodejs",
        "julia": "julia",
        "lua": "lua luajit",
        "make": "make",
        "perl": "perl",
        "php": "php",
        "powershell": "pwsh",
        "python": "pypy python",
        "r": "Rscript",
        "ruby": "jruby ruby",
        "tcl": "tclsh wish",
        "typescript": "deno ts-node tsx",
        "zsh": "zsh",
    }
)

# Configuration that its own tools read as JSON with comments and trailing commas.
_JSONC_PATH = re.compile(
    rb"(?:^|/)(?:\.vscode/[^/]+\.json|[jt]sconfig[^/]*\.json|\.eslintrc\.json|api-extractor[^/]*\.json)\Z"
)
_SHEBANG = re.compile(rb"#![ \t]*(\S+)(?:[ \t]+([^\r\n]*))?")
_VERSION = re.compile(rb"[-.0-9]+\Z")
_SHEBANG_BYTES_MAX = 256


def detect(path: bytes, head: bytes, context: bytes = b"") -> str:
    """The name of a file's language. `head` is how the file begins, `context` the `language` context of a `.h`."""
    known = language_of_path(path)
    if known == "c" and context == b"cpp":
        return "cpp" if path[-2:].lower() == b".h" else known
    return known or _language_of_shebang(head) or UNKNOWN


def language_of_path(path: bytes) -> str | None:
    """What the path alone says; of a `.h`, that it is C."""
    name = path.rsplit(b"/", 1)[-1]
    known = _NAMES.get(name)
    if known is not None:
        return known
    if _JSONC_PATH.search(path):
        return "jsonc"
    # A name like `a.tar.gz` is tried as `tar.gz`, then as `gz`; `.bashrc` has no extension.
    parts = name.lstrip(b".").split(b".")[1:]
    for start in range(max(len(parts) - 2, 0), len(parts)):
        known = _EXTENSIONS.get(b".".join(parts[start:]).lower())
        if known is not None:
            return "cpp" if parts[-1] == b"C" else known
    if name.startswith((b"Dockerfile.", b"Containerfile.")):
        return "dockerfile"
    return None


def _language_of_shebang(head: bytes) -> str | None:
    """The language that a `#!` line names; `env`, its options and assignments are looked through."""
    match = _SHEBANG.match(head[:_SHEBANG_BYTES_MAX])
    if match is None:
        return None
    program = match[1].rsplit(b"/", 1)[-1]
    if program == b"env":
        words = [word for word in (match[2] or b"").split() if not word.startswith(b"-") and b"=" not in word]
        program = words[0].rsplit(b"/", 1)[-1] if words else b""
    return _INTERPRETERS.get(program) or _INTERPRETERS.get(_VERSION.sub(b"", program))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """A loaded grammar: the parser, and the one query whose captures all tasks share (tasks/outline.py)."""

    language: tree_sitter.Language
    parser: tree_sitter.Parser
    query: tree_sitter.Query
    errors: tree_sitter.Query


# Language -> module of the wheel, the function in it, the query files in tasks/queries.
_GRAMMARS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "bash": ("tree_sitter_bash", "language", ("bash",)),
    "c": ("tree_sitter_c", "language", ("c",)),
    "cpp": ("tree_sitter_cpp", "language", ("c", "cpp")),
    "go": ("tree_sitter_go", "language", ("go",)),
    "java": ("tree_sitter_java", "language", ("java",)),
    "javascript": ("tree_sitter_javascript", "language", ("script", "javascript")),
    "json": ("tree_sitter_json", "language", ("json",)),
    "jsonc": ("tree_sitter_json", "language", ("json",)),
    "python": ("tree_sitter_python", "language", ("python",)),
    "rust": ("tree_sitter_rust", "language", ("rust",)),
    "tsx": ("tree_sitter_typescript", "language_tsx", ("script", "typescript", "jsx")),
    "typescript": ("tree_sitter_typescript", "language_typescript", ("script", "typescript")),
    "zsh": ("tree_sitter_bash", "language", ("bash",)),
}
PARSED_LANGUAGES = frozenset(_GRAMMARS)

# Where the grammar cannot tell wrong from unknown: macros change the syntax of C, and zsh is read as bash.
APPROXIMATE_LANGUAGES = frozenset({"c", "cpp", "zsh"})


@cache
def grammar(language: str) -> Grammar:
    """Load the grammar of one of PARSED_LANGUAGES, once per process."""
    # Here, for coordinators read the tables above and load neither of these.
    from importlib.resources import files

    import tree_sitter

    module, function, names = _GRAMMARS[language]
    loaded = tree_sitter.Language(getattr(import_module(module), function)())
    queries = files("codebatch_workers.tasks") / "queries"
    source = "\n".join((queries / f"{name}.scm").read_text(encoding="utf-8") for name in names)
    return Grammar(
        language=loaded,
        parser=tree_sitter.Parser(loaded),
        query=tree_sitter.Query(loaded, source),
        errors=tree_sitter.Query(loaded, "(ERROR) @error (MISSING) @missing"),
    )
