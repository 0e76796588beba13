"""The table of languages: how files show their language, the package of its grammar, and its family.

The language depends only on the path, the content, and the `language` context. A file is recognized by its whole name,
by its shebang, or by its longest known extension, in this order. A grammar is imported when a file of its language is
first parsed. The tables stay in one file, long as it is, because a new language adds a line to each table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib import import_module
from importlib.machinery import ExtensionFileLoader, PathFinder
from importlib.util import find_spec
from typing import TYPE_CHECKING

from codebatch_workers.syntax.language.first_lines import mode_language, shebang_language, table_by_word

if TYPE_CHECKING:
    import tree_sitter

# The language of text files in no known language.
UNKNOWN_LANGUAGE = "text"


# Extensions in lower case, without the dot. `.h` is C here; the `language` context can turn it into C++.
_LANGUAGE_BY_EXTENSION = table_by_word(
    {
        "ada": "adb ads",
        "asm": "asm s nasm",
        "astro": "astro",
        "awk": "awk gawk",
        "bash": "bash bats command ebuild eclass ksh sh",
        "batch": "bat cmd",
        "bazel": "bazel bzl star",
        "blade": "blade.php",
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
        "ejs": "ejs jst",
        "elixir": "ex exs",
        "elm": "elm",
        "erb": "erb rhtml",
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
        "handlebars": "handlebars hbs",
        "haskell": "hs lhs",
        "hcl": "hcl nomad tf tfvars tofu",
        "html": "hta htm html xht xhtml",
        "ini": "cfg conf desktop editorconfig ini service",
        "java": "java",
        "javascript": "cjs es6 js jsm jsx mjs",
        "jinja": "j2 jinja jinja2",
        "json": "avsc geojson gltf har ipynb json jsonl mcmeta ndjson sarif tfstate topojson webapp webmanifest",
        "json5": "json5",
        "jsonc": "code-snippets code-workspace jsonc sublime-build sublime-color-scheme sublime-commands "
        "sublime-completions sublime-keymap sublime-macro sublime-menu sublime-mousemap sublime-project "
        "sublime-settings sublime-theme sublime_metrics sublime_session",
        "jsonnet": "jsonnet libsonnet",
        "julia": "jl",
        "kotlin": "kt kts",
        "latex": "cls ltx sty tex",
        "less": "less",
        "lex": "l lex",
        "liquid": "liquid",
        "lisp": "cl el lisp lsp",
        "log": "log",
        "lua": "lua rockspec",
        "m4": "m4",
        "make": "mak make mk",
        "markdown": "livemd markdown md mdown mkd ronn",
        "mdx": "mdx",
        "meson": "meson",
        "mustache": "mustache",
        "nim": "nim nims",
        "nix": "nix",
        "objective-c": "m",
        "objective-cpp": "mm",
        "ocaml": "ml mli",
        "pascal": "dpr pas pp",
        "perl": "perl pl pm t",
        "php": "php php3 php4 php5 phps phtml",
        "powershell": "ps1 psd1 psm1",
        "prolog": "prolog",
        "properties": "properties",
        "protobuf": "proto",
        "pug": "jade pug",
        "puppet": "epp",
        "python": "gyp gypi py py3 pyi pyt pyw wsgi",
        "qml": "qml",
        "r": "r rmd",
        "racket": "rkt",
        "razor": "cshtml razor",
        "roff": "man mdoc roff",
        "rst": "rest rst",
        "ruby": "builder gemspec jbuilder podspec rabl rake rb rbi ru thor",
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
        "tcsh": "csh tcsh",
        "text": "text txt",
        "thrift": "thrift",
        "toml": "toml",
        "tsv": "tsv",
        "tsx": "tsx",
        "twig": "twig",
        "typescript": "cts mts ts",
        "vb": "bas vb vbs",
        "verilog": "sv svh v vh",
        "vhdl": "vhd vhdl",
        "vim": "vim",
        "vue": "vue",
        "wasm": "wast wat",
        "xml": "csproj plist pom props resx targets vbproj vcxproj vcxproj.filters wsdl xaml xml xsd xsl xslt",
        "yacc": "y yacc yy",
        "yaml": "cff sublime-syntax yaml yml",
        "zig": "zig zon",
        "zsh": "zsh zsh-theme",
    }
)

# Whole file names, case-sensitive.
_LANGUAGE_BY_FILE_NAME = table_by_word(
    {
        "bash": ".bash_aliases .bash_functions .bash_logout .bash_profile .bashrc .envrc .kshrc .profile .xinitrc "
        ".xsession APKBUILD PKGBUILD bash_aliases bash_logout bash_profile bashrc profile",
        "bazel": "BUILD WORKSPACE",
        "cmake": "CMakeLists.txt",
        "dockerfile": "Containerfile Dockerfile",
        "gitattributes": ".gitattributes",
        "gitignore": ".codebatchignore .dockerignore .eslintignore .gitignore .npmignore .prettierignore",
        "gomod": "go.mod go.work",
        "groovy": "Jenkinsfile",
        "ini": ".coveragerc .editorconfig .flake8 .gitconfig .gitmodules .npmrc .pylintrc",
        "json": ".all-contributorsrc .arcconfig .htmlhintrc .tern-config .tern-project .watchmanconfig "
        "MODULE.bazel.lock Package.resolved Pipfile.lock composer.lock deno.lock flake.lock",
        "jsonc": ".babelrc .ember-cli .eslintrc .hintrc .jsbeautifyrc .jscsrc .jsfmtrc .jshintrc .jslintrc .renovaterc "
        ".swcrc bun.lock",
        "just": "justfile Justfile",
        "lua": ".luacheckrc",
        "m4": "configure.ac configure.in",
        "make": "BSDmakefile GNUmakefile Kbuild Makefile Makefile.am Makefile.in makefile",
        "meson": "meson.build meson_options.txt",
        "python": ".gclient .pythonrc DEPS SConscript SConstruct wscript",
        "ruby": ".irbrc .pryrc .simplecov Appraisals Berksfile Brewfile Capfile Cheffile Dangerfile Deliverfile "
        "Fastfile Gemfile Guardfile Podfile Rakefile Snapfile Steepfile Thorfile Vagrantfile",
        "toml": "Cargo.lock Cargo.toml.orig Gopkg.lock Pipfile pdm.lock poetry.lock uv.lock",
        "vim": ".vimrc vimrc",
        "yaml": ".clang-format .clang-tidy .clangd .gemrc .yamllint glide.lock pixi.lock",
        "zsh": ".zlogin .zlogout .zprofile .zshenv .zshrc zshrc",
    }
)

# JSON whose readers accept comments and trailing commas: TypeScript, VS Code, Zed, linters, Babel, bundlers, .NET,
# Renovate and others.
_JSON_WITH_COMMENTS = re.compile(
    rb"(?:^|/)(?:\.(?:vscode|zed)/[^/]+|[^/]*[jt]sconfig[^/]*|[^/]*(?:color|icon)-theme|[^/]*language-configuration|"
    rb"\.?devcontainer|\.?markdownlint(?:-cli2)?|\.eslintrc|tslint|\.?oxlintrc|\.?cspell(?:\.config)?|pyrightconfig|"
    rb"\.babelrc|babel\.config|\.mocharc|\.luarc|api-extractor[^/]*|typedoc|rush|biome|deno|turbo|wrangler|nx|angular|"
    rb"renovate|\.renovaterc|appsettings[^/]*|launchSettings)\.json\Z"
)

# The extension of a manual page. `curl.1`, `open.3` and `read.3p` are manual pages if their first line is roff.
_MANUAL_SECTION = re.compile(rb"\.[1-9][a-z]*\Z")
_ROFF_START = re.compile(rb"(?:[.']\\\"|\.(?:TH|Dd|so|de|ig)\b)")
# A mode line counts only for files of these languages.
_LANGUAGES_SET_BY_MODE_LINE = (None, "bash", "c", "perl")
# Syntax at the start of a line that only Objective-C has.
_OBJECTIVE_C_CODE = re.compile(
    rb"^[ \t]*(?:@(?:class|end|interface|protocol)\b|#[ \t]*import[ \t]+[<\"])", re.MULTILINE
)

# For some extensions, beginnings of files that are in another language: Qt translations have `.ts`, and Hack has `.php`
# or `.hh`.
_LANGUAGE_BY_HEAD: tuple[tuple[bytes, frozenset[str], str], ...] = (
    (b"<?xml", frozenset({"csharp", "rust", "tsx", "typescript"}), "xml"),
    (b"<?hh", frozenset({"cpp", "php"}), "hack"),
)


def detect_language(path: bytes, head: bytes, context: bytes = b"", content: bytes = b"") -> str:
    """Return the name of a file's language.

    `head` is the beginning of the content, and `context` is the value of the `language` context. The whole `content` is
    searched only in `.h` files, for syntax of Objective-C, which can begin late.
    """
    known = path_language(path)
    if head.startswith(b"#!") and path.rpartition(b"/")[2] not in _LANGUAGE_BY_FILE_NAME:
        known = known if known in TEMPLATE_LANGUAGES else shebang_language(head, known)
    if known in _LANGUAGES_SET_BY_MODE_LINE:
        known = mode_language(head, content if known is None else b"") or known
    if known == "c" and path[-2:].lower() == b".h":
        # Two searches for literal bytes are faster than the pattern. Any match contains one of the two texts.
        if (b"@" in content or b"import" in content) and _OBJECTIVE_C_CODE.search(content):
            return "objective-c"
        return "cpp" if context == b"cpp" else known
    if head.startswith(b"<?"):
        known = next(
            (other for start, named, other in _LANGUAGE_BY_HEAD if known in named and head.startswith(start)), known
        )
    if known is None and _MANUAL_SECTION.search(path) and _ROFF_START.match(head):
        return "roff"
    return known or UNKNOWN_LANGUAGE


def detected_languages() -> frozenset[str]:
    """Return the languages that names and extensions of files determine."""
    return frozenset((*_LANGUAGE_BY_EXTENSION.values(), *_LANGUAGE_BY_FILE_NAME.values(), UNKNOWN_LANGUAGE))


def path_language(path: bytes) -> str | None:
    """Return the language that the path alone shows, or None. For a `.h` file, this is C."""
    name = path.rpartition(b"/")[2]
    known = _LANGUAGE_BY_FILE_NAME.get(name)
    if known is not None:
        return known
    if name.endswith(b".json") and _JSON_WITH_COMMENTS.search(path):
        return "jsonc"
    # The dot at the start of `.bashrc` does not begin an extension.
    known = _extension_language(name.lstrip(b".").partition(b".")[2])
    # `Dockerfile.builder` is a Dockerfile, although Ruby templates have the extension `.builder`.
    if known in (None, "ruby") and name.startswith((b"Dockerfile.", b"Containerfile.")):
        return "dockerfile"
    # `Makefile.dep` and `Makefile.lua` are makefiles; `Makefile.js` and `Makefile.PL` are scripts.
    if known in (None, "lua") and name.startswith((b"Makefile.", b"GNUmakefile.")):
        return "make"
    return known


@lru_cache(maxsize=1024)
def _extension_language(extensions: bytes) -> str | None:
    """Return the language of a file name by its last two extensions or, if these are unknown, by the last one.

    For `a.b.tar.gz`, `tar.gz` is tried first, then `gz`. If both are unknown, return None.
    """
    parts = extensions.split(b".")
    for extension in (b".".join(parts[-2:]), parts[-1]):
        known = _LANGUAGE_BY_EXTENSION.get(extension.lower())
        if known is not None:
            return "cpp" if parts[-1] == b"C" else known
    return None


# The languages with a grammar, by family. A family has a folder in `codebatch_workers.languages`.
_LANGUAGES_BY_FAMILY = {
    "c": "c cpp",
    "csharp": "csharp",
    "data": "hcl json jsonc sql toml yaml",
    "go": "go",
    "javascript": "javascript tsx typescript",
    "jvm": "java kotlin scala",
    "lua": "lua",
    "markup": "css html markdown",
    "php": "php",
    "python": "python",
    "ruby": "ruby",
    "rust": "rust",
    "shell": "bash zsh",
    "swift": "swift",
}
_FAMILY_BY_LANGUAGE = {
    language: family for family, languages in _LANGUAGES_BY_FAMILY.items() for language in languages.split()
}

# The languages whose grammars are always installed. If another grammar is not, the files in its language have only
# language-neutral records.
_REQUIRED_GRAMMARS = frozenset(
    {"bash", "c", "cpp", "go", "java", "javascript", "json", "jsonc", "python", "rust", "tsx", "typescript", "zsh"}
)
_EXTRA_GRAMMARS = sorted(_FAMILY_BY_LANGUAGE.keys() - _REQUIRED_GRAMMARS)
# The packages of grammars, without `tree-sitter-`, and their functions, if other than the language and `language`.
_PACKAGE_BY_LANGUAGE = {"csharp": "c-sharp", "jsonc": "json", "tsx": "typescript", "zsh": "bash"}
_FUNCTION_BY_LANGUAGE = {"php": "language_php", "tsx": "language_tsx", "typescript": "language_typescript"}


def _distribution(language: str) -> str:
    return f"tree-sitter-{_PACKAGE_BY_LANGUAGE.get(language, language)}"


def grammar_module(language: str) -> str:
    """Return the name of the module that contains a language's grammar."""
    return _distribution(language).replace("-", "_")


# The distributions of grammars. GRAMMAR_TOOLS are always required. EXTRA_GRAMMAR_TOOLS are optional, each with its
# language.
GRAMMAR_TOOLS = ("tree-sitter", *sorted(set(map(_distribution, _REQUIRED_GRAMMARS))))
EXTRA_GRAMMAR_TOOLS: Mapping[str, str] = {_distribution(language): language for language in _EXTRA_GRAMMARS}

# Languages of lists of patterns. Any text is a valid list.
LANGUAGES_OF_PATTERNS = frozenset({"gitattributes", "gitignore"})

# Languages of templates. A template is text of another language with marks, which a program replaces by values.
TEMPLATE_LANGUAGES = frozenset({"ejs", "erb", "handlebars", "jinja", "liquid", "mustache", "twig"})


def family_of(language: str) -> str | None:
    """Return the family of a language, or None if the language has no folder."""
    return _FAMILY_BY_LANGUAGE.get(language)


@cache
def has_grammar(language: str) -> bool:
    """Return whether a grammar for a language is installed."""
    is_extra = language in _EXTRA_GRAMMARS
    return find_spec(grammar_module(language)) is not None if is_extra else language in _REQUIRED_GRAMMARS


@cache
def code_endings() -> frozenset[bytes]:
    """Return the extensions of files in languages for which a grammar exists."""
    return frozenset(extension for extension, name in _LANGUAGE_BY_EXTENSION.items() if name in _FAMILY_BY_LANGUAGE)


def every_language() -> list[str]:
    """Return all languages for which a grammar exists, sorted. The grammar need not be installed."""
    return sorted(_FAMILY_BY_LANGUAGE)


@cache
def load_language(language: str) -> tree_sitter.Language:
    """Return the grammar of a language, without its parser. `has_grammar` must be true for the language."""
    import tree_sitter  # Imported late: coordinators use the tables above, but do not need this import.

    function = _FUNCTION_BY_LANGUAGE.get(language, "language")
    return tree_sitter.Language(getattr(_compiled_part(grammar_module(language)), function)())


def _compiled_part(package: str) -> object:
    """Import the extension module of a grammar directly. Its package would import importlib.resources (slow)."""
    package_spec = PathFinder.find_spec(package)
    spec = (
        PathFinder.find_spec(f"{package}._binding", package_spec.submodule_search_locations) if package_spec else None
    )
    if spec is None or not isinstance(spec.loader, ExtensionFileLoader):
        return import_module(package)
    module = spec.loader.create_module(spec)
    spec.loader.exec_module(module)
    return module


@cache
def load_parser(language: str) -> tree_sitter.Parser:
    """Return the parser of a language, loaded once per process. `has_grammar` must be true for the language."""
    import tree_sitter

    return tree_sitter.Parser(load_language(language))
