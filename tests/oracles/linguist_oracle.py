"""Languages, and generated and vendored files, compared with GitHub's linguist.

The answers for each corpus are stored in tests/oracles/linguist, because installing linguist takes longer than running
it. `python -m tests.oracles.linguist_oracle` updates them, if Debian's `ruby-github-linguist` is installed. They are of
linguist 7.22.1.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from codebatch_workers.syntax.contexts import language_context
from codebatch_workers.syntax.language.languages import UNKNOWN_LANGUAGE
from codebatch_workers.syntax.language.linguist_names import language_named
from codebatch_workers.syntax.source import SourceFile
from tests.oracles.agreement import Agreement, Fact, compare
from tests.support import corpora
from tests.support.source_files import Snapshot

CORPORA: Mapping[str, Callable[[], Path]] = {
    "jpype": lambda: corpora.sdist("JPype1", "1.5.0"),
    "uvloop": lambda: corpora.sdist("uvloop", "0.20.0"),
    "cordova-android": lambda: corpora.npm("cordova-android", "13.0.0"),
    "cryptography": lambda: corpora.sdist("cryptography", "41.0.7"),
}
_ANSWERS = Path(__file__).with_name("linguist")
_BINARY = "binary"


def agree(name: str) -> Agreement:
    """Compare the verdicts about each file of a corpus with the stored answers."""
    answers: dict[str, dict[str, list[str]]] = json.loads((_ANSWERS / f"{name}.json").read_text(encoding="utf-8"))
    expected_facts: list[Fact] = []
    known = {}
    for language, paths in answers["languages"].items():
        known.update(dict.fromkeys(paths, _BINARY if language == _BINARY else language_named(language)))
    files = {file.path.decode(): file for file in _iter_files(CORPORA[name]())}
    actual_facts: list[Fact] = []
    for path, file in files.items():
        language = _BINARY if file.is_binary else file.language
        if path in known and (file.is_binary or file.language != UNKNOWN_LANGUAGE):
            actual_facts.append(("language", path, language))
        if file.file_class in ("generated", "minified"):
            actual_facts.append(("generated", path))
        elif file.file_class == "vendored":
            actual_facts.append(("vendored", path))
    expected_facts += [("language", path, language) for path, language in known.items()]
    expected_facts += [("generated", path) for path in answers["generated"]]
    expected_facts += [
        ("vendored", path) for path in answers["vendored"] if files[path].file_class not in ("generated", "minified")
    ]
    return compare(actual_facts, expected_facts, lambda side, fact: _explain(side, fact, files))


def _explain(side: str, fact: Fact, files: Mapping[str, SourceFile]) -> str | None:
    path = str(fact[1])
    if fact[0] == "language" and not files[path].is_binary and files[path].language == UNKNOWN_LANGUAGE:
        return "knows a language of no table of ours"
    if fact[0] == "vendored" and side == "missing" and (path.endswith(".d.ts") or "/.git" in f"/{path}"):
        return "takes declarations and what is for GitHub for vendored"
    return None


def _iter_files(root: Path) -> Iterator[SourceFile]:
    paths = [path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink()]
    snapshot = Snapshot(*(path.relative_to(root).as_posix() for path in paths))
    context = language_context(snapshot)
    entries = {entry.path: entry for entry in snapshot.entries}
    for path in paths:
        relative = path.relative_to(root).as_posix().encode()
        contexts = {"language": context(entries[relative])}
        yield SourceFile(relative, path.read_bytes(), executable=False, contexts=contexts)


def _ask(root: Path) -> dict[str, dict[str, list[str]] | list[str]]:
    """Return linguist's answers: the paths by language, and those that are generated and vendored."""
    paths = "\n".join(file.path.decode() for file in _iter_files(root))
    command: list[str | Path] = ["ruby", Path(__file__).with_name("linguist.rb"), root]
    done = subprocess.run(command, input=paths, check=True, capture_output=True, encoding="utf-8")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    languages: dict[str, list[str]] = {}
    for path, language, _, _, is_binary in rows:
        if is_binary or language:
            languages.setdefault(_BINARY if is_binary else language, []).append(path)
    return {
        "languages": dict(sorted(languages.items())),
        "generated": [path for path, _, is_generated, *_ in rows if is_generated],
        "vendored": [path for path, _, _, is_vendored, _ in rows if is_vendored],
    }


if __name__ == "__main__":
    for name, root in CORPORA.items():
        answer = json.dumps(_ask(root()), indent=0, ensure_ascii=False)
        (_ANSWERS / f"{name}.json").write_text(answer + "\n", encoding="utf-8")
