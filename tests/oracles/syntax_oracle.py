"""Files with syntax errors: real files, which are valid except for tests of parsers, and files with one changed token.

The answers of each language's own tool are stored in tests/oracles/syntax, because no machine has all the tools.
`python -m tests.oracles.syntax_oracle [WORDS]` runs the tools again on the corpora whose names contain all words. The
answers are of TypeScript 5.6.3, Go 1.19, rustc 1.95, javac 17, PHP 8.2, Ruby 3.1 and Lua 5.4.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from codebatch.model.record import Diagnostic
from codebatch_workers.syntax.source import SourceFile
from tests.oracles.agreement import Agreement, Fact, compare, iter_sources
from tests.oracles.script_oracle import errors_of_files
from tests.support import corpora
from tests.support.source_files import created

_ANSWERS = Path(__file__).with_name("syntax")
_TOKEN = re.compile(rb"\w+|[^\w\s]")
_FILES_MAX = 120
_MUTANTS = 2
_MUTATED_BYTES_MAX = 20_000

SCRIPT = ("javascript", "typescript", "tsx")


class _Answers(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of a tool about a corpus: the paths with errors.

    `asked` has the digests of all texts that the tool checked, separated by spaces.
    """

    file: list[str]
    mutant: list[str]
    asked: str


CORPORA: Mapping[str, tuple[tuple[str, ...], Callable[[], Path]]] = {
    "fastify": (SCRIPT, lambda: corpora.npm("fastify", "5.1.0")),
    "svelte": (SCRIPT, lambda: corpora.npm("svelte", "5.1.9")),
    "rxjs": (SCRIPT, lambda: corpora.npm("rxjs", "7.8.1")),
    "types-node": (SCRIPT, lambda: corpora.npm("@types/node", "22.9.0")),
    "effect": (SCRIPT, lambda: corpora.npm("effect", "3.10.0") / "src"),
    "cobra": (("go",), lambda: corpora.debian("golang-github-spf13-cobra-dev")),
    "prometheus-common": (("go",), lambda: corpora.debian("golang-github-prometheus-common-dev")),
    "cryptography": (("rust",), lambda: corpora.sdist("cryptography", "41.0.7")),
    "tokenizers": (("rust",), lambda: corpora.sdist("tokenizers", "0.13.3")),
    "jpype": (("java",), lambda: corpora.sdist("JPype1", "1.5.0")),
    "cordova-android": (("java",), lambda: corpora.npm("cordova-android", "13.0.0")),
    "twig": (("php",), lambda: corpora.debian("php-twig")),
    "phpunit": (("php",), lambda: corpora.debian("phpunit")),
    "rack": (("ruby",), lambda: corpora.debian("ruby-rack")),
    "activerecord": (("ruby",), lambda: corpora.debian("ruby-activerecord")),
    "penlight": (("lua",), lambda: corpora.debian("lua-penlight")),
    "luarocks": (("lua",), lambda: corpora.debian("luarocks")),
}


def agree(name: str) -> Agreement:
    """Compare the verdicts with the stored answers. Only texts that the tools checked are compared.

    Texts that are not UTF-8 have no answer. Raises CorpusNotHad if at least a fifth of the texts are missing, because
    an update may have changed them.
    """
    stored = msgspec.json.decode((_ANSWERS / f"{name}.json").read_bytes(), type=_Answers)
    checked_digests = frozenset(stored.asked.split())
    task = created("parse", Path())
    compared: set[Fact] = set()
    actual_facts: list[Fact] = []
    for kind, path, file in _iter_files(name):
        if _digest(file) not in checked_digests:
            continue
        compared.add((f"wrong {kind}", path))
        diagnostics = [diagnostic for diagnostic in task.run_file(file) if isinstance(diagnostic, Diagnostic)]
        if any(diagnostic.code == "syntax-error" for diagnostic in diagnostics):
            actual_facts.append((f"wrong {kind}", path))
    if len(compared) < len(checked_digests) * 4 / 5:
        raise corpora.CorpusNotHad(
            f"{name}: {len(compared)} of {len(checked_digests)} texts are those that tools were asked about"
        )
    expected_facts = [
        (f"wrong {kind}", path) for kind, paths in (("file", stored.file), ("mutant", stored.mutant)) for path in paths
    ]
    return compare(actual_facts, [fact for fact in expected_facts if fact in compared])


def _iter_files(name: str) -> Iterator[tuple[str, str, SourceFile]]:
    """Yield the files of a corpus and mutants of some of them, each with its kind and a unique name."""
    languages, root = CORPORA[name]
    whole = [file for file in iter_sources(root(), languages, {}) if file.encoding == "utf-8"]
    for file in whole:
        yield "file", file.path.decode(), file
    small = [file for file in whole if len(file.utf8) <= _MUTATED_BYTES_MAX]
    for file in sorted(small, key=lambda file: hashlib.sha256(file.path).digest())[:_FILES_MAX]:
        for number in range(_MUTANTS):
            path = f"{file.path.decode()}#{number}"
            yield "mutant", path, SourceFile(file.path, _mutant(file.utf8, path), executable=False, contexts={})


def _digest(file: SourceFile) -> str:
    return hashlib.sha256(file.path + b"\0" + file.utf8).hexdigest()[:8]


def _mutant(utf8: bytes, seed: str) -> bytes:
    """Return a text with one token removed, doubled, or replaced by another of its tokens.

    The result does not depend on the version of Python.
    """
    tokens = [match.span() for match in _TOKEN.finditer(utf8)] or [(0, 0)]
    digest = hashlib.sha256(seed.encode()).digest()
    start, end = tokens[int.from_bytes(digest[:8], "big") % len(tokens)]
    other, other_end = tokens[int.from_bytes(digest[8:16], "big") % len(tokens)]
    token = (b"", utf8[start:end] + b" " + utf8[start:end], utf8[other:other_end])[digest[16] % 3]
    return utf8[:start] + token + utf8[end:]


# -- The tools: functions that return which paths below a directory have errors --------------------------------------


def _errors_by_output(*command: str) -> Callable[[Path, Sequence[str]], set[str]]:
    """Return a function for a program that reads paths, one a line, and prints the paths with errors."""

    def ask(root: Path, paths: Sequence[str]) -> set[str]:
        done = subprocess.run(
            command, cwd=root, input="\n".join(paths) + "\n", capture_output=True, check=True, encoding="utf-8"
        )
        return set(done.stdout.splitlines())

    return ask


def _errors_by_exit_status(*command: str, **variables: str) -> Callable[[Path, Sequence[str]], set[str]]:
    """Return a function for a program that receives one path, and fails if the file has an error."""

    def ask(root: Path, paths: Sequence[str]) -> set[str]:
        environment = {**os.environ, **variables}
        run = [
            (path, subprocess.run([*command, path], cwd=root, env=environment, capture_output=True, check=False))
            for path in paths
        ]
        return {path for path, done in run if done.returncode != 0}

    return ask


_RUBY = """$VERBOSE = nil
STDIN.each_line(chomp: true) do |path|
  RubyVM::AbstractSyntaxTree.parse(File.read(path, encoding: "utf-8"))
rescue SyntaxError
  puts path
end"""
_PHP = """while (($path = fgets(STDIN)) !== false) {
  try { @token_get_all(file_get_contents(rtrim($path)), TOKEN_PARSE); } catch (ParseError $error) { echo $path; }
}"""
_RUST = ("rustc", "-Zparse-crate-root-only", "--edition", "2021", "--crate-type", "lib")
_TOOLS: Mapping[str, Callable[[Path, Sequence[str]], set[str]]] = {
    **dict.fromkeys(SCRIPT, errors_of_files),
    "go": _errors_by_exit_status("gofmt", "-e", "-l"),
    "java": _errors_by_output("java", str(Path(__file__).with_name("Parse.java"))),
    "lua": _errors_by_exit_status("luac5.4", "-p"),
    "php": _errors_by_output("php", "-r", _PHP),
    "ruby": _errors_by_output("ruby", "-e", _RUBY),
    "rust": _errors_by_exit_status(*_RUST, RUSTC_BOOTSTRAP="1"),
}


def _ask(name: str) -> _Answers:
    with TemporaryDirectory() as temporary:
        root = Path(temporary)
        digests: set[str] = set()
        names: dict[str, dict[str, tuple[str, str]]] = {}
        for number, (kind, path, file) in enumerate(_iter_files(name)):
            written = f"{number}{Path(file.path.decode()).suffix}"
            if file.path.endswith(b".d.ts"):
                written = f"{number}.d.ts"
            (root / written).write_bytes(file.utf8)
            names.setdefault(file.language, {})[written] = (kind, path)
            digests.add(_digest(file))
        wrong = [names[language][path] for language in names for path in _TOOLS[language](root, list(names[language]))]
    files, mutants = (sorted(path for each, path in wrong if each == kind) for kind in ("file", "mutant"))
    return _Answers(file=files, mutant=mutants, asked=" ".join(sorted(digests)))


if __name__ == "__main__":
    for corpus in CORPORA:
        if all(word in corpus for word in sys.argv[1:]):
            answers = msgspec.json.format(msgspec.json.encode(_ask(corpus)), indent=0)
            (_ANSWERS / f"{corpus}.json").write_bytes(answers + b"\n")
