"""Evidence against a firm `none`, and what is said below a list with results."""

# ruff: noqa: E501  # Each tree is one line.

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import codebatch as api
from tests.support.command_line import CommandLine, write
from tests.uses.small_batches import batch_of

_ERB = {
    "item.rb": "class Item; def visible_to?(u) = true; end; class Ctl; def show(i, u) = i.visible_to?(u); end\n",
    "view.html.erb": "<% if item.visible_to?(user) %>x<% end %>\n",
}


def _write_and_run(codebatch: CommandLine, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        write(codebatch.directory / path, text)
    codebatch("run", ".", "-q")


# The files, the name or file, and the kinds of evidence. Without evidence, the answer is a firm `none`.
NAMES = [
    ("symbol", {"p.rb": "class P\n  before_save :log_it\n  def log_it; end\nend\n"}, ["reference"]),
    ("string", {"a.py": "def log_it(): pass\ngetattr(x, 'log_it')\n"}, ["string"]),
    ("entry point", {"a.py": "def log_it(): pass\n", "pyproject.toml": '[project.scripts]\nx = "a:log_it"\n'}, ["string"]),
    ("key of data", {"a.py": "def log_it(): pass\n", "b.json": '{"log_it": 1}\n'}, []),
    ("class under another name", {"a.py": "class log_it: pass\n", "b.py": "from a import log_it\nAlias = log_it\nAlias()\n"}, ["import", "reference"]),
    ("unused import", {"a.py": "def log_it(): pass\n", "b.py": "from a import log_it\n"}, ["import"]),
    ("missing module", {"a/m.py": "def log_it(): pass\n", "b.py": "from x.a.m import log_it\nlog_it()\n"}, ["unresolved"]),
    ("local variable", {"a.js": "function log_it() {}\nfunction f(log_it) { return log_it; }\n"}, []),
    ("fixture of a decorated function", {"a.py": "@fixture\ndef log_it(): pass\ndef test(log_it): assert log_it\n"}, ["implicit", "reference"]),
    ("local variable in Ruby", {"a.rb": "def log_it; end\ndef f(log_it) = [log_it]\n"}, []),
    ("name of an argument", {"a.py": "def log_it(): pass\nf(log_it=1)\n"}, []),
    ("key of a literal", {"a.js": "function log_it() {}\nconst x = { log_it: 1 };\n"}, []),
    ("key that is read", {"a.js": "function log_it() {}\nconst { log_it: g } = m();\n"}, ["reference"]),
    ("other language", {"a.rb": "def log_it; end\n", "a.js": "f(log_it);\n"}, []),
    ("comment", {"a.py": "def log_it(): pass\n# log_it()\n"}, []),
    ("longer string", {"a.py": "def log_it(): pass\nx = 'call log_it now'\n"}, []),
    ("decorator", {"a.py": "@app.route('/')\ndef log_it(): pass\n"}, ["implicit"]),
    ("decorator that describes", {"a.py": "@functools.lru_cache(1)\ndef log_it(): pass\n"}, []),
    ("decorator named like a description elsewhere", {"a.py": "@shop.target\ndef log_it(): pass\n"}, ["implicit"]),
    ("decorator of the next function", {"a.py": "def log_it(): pass\n@app.route('/')\ndef f(): pass\n"}, []),
    ("annotation", {"A.java": 'class A { @GetMapping("/") public void log_it() {} }'}, ["implicit"]),
    ("annotation that describes", {"A.java": "class A { @Deprecated void log_it() {} }"}, []),
    ("annotation in Kotlin", {"a.kt": "class A { @Test fun log_it() {} }"}, ["implicit"]),
    ("annotation in Scala", {"a.scala": "object A { @main def log_it() = 1 }"}, ["implicit"]),
    ("implicit value", {"a.scala": "object A { implicit val log_it: B = 1 }"}, ["implicit"]),
    ("given value", {"a.scala": "given log_it: Ord[Int] with { }\n"}, ["implicit"]),
    ("one of several attributes", {"a.cs": 'class A { [Obsolete, HttpGet("x")] void log_it() {} }'}, ["implicit"]),
    ("attribute that describes", {"a.cs": "class A { [Obsolete] void log_it() {} }"}, []),
    ("attribute in PHP", {"a.php": "<?php\nclass A { #[Route] function log_it() {} }"}, ["implicit"]),
    ("attribute in Swift", {"a.swift": "class A { @IBAction func log_it() {} }"}, ["implicit"]),
    ("attribute in Rust", {"a.rs": "#[test]\n// x\nfn log_it() {}\n"}, ["implicit"]),
    ("attribute that describes in Rust", {"a.rs": "#[test]\nfn f() {}\n#[inline]\nfn log_it() {}\n"}, []),
    ("attribute in C", {"a.c": "__attribute__((constructor)) static void log_it(void) {}\n"}, ["implicit"]),
    ("attribute that describes in C", {"a.c": "__attribute__((unused)) static void log_it(void) {}\n"}, []),
    ("decorator in TypeScript", {"a.ts": "class A { @Get('/') log_it() {} }\n"}, ["implicit"]),
    ("directive in Go", {"a.go": "package p\n\n//export log_it\nfunc log_it() {}\n"}, ["implicit"]),
    ("comment in Go", {"a.go": "package p\n\n// log_it exports.\nfunc log_it() {}\n"}, []),
    ("argument of a method in Ruby", {"a.rb": "class A; memoize def log_it; end; end\n"}, ["implicit"]),
    ("private method in Ruby", {"a.rb": "class A; private def log_it; end; end\n"}, []),
    ("base outside of the batch", {"a.py": "class A(lib.Base):\n    def log_it(self): pass\n"}, ["implicit"]),
    ("base of a base outside", {"a.py": "class B(Lib): pass\nclass A(B):\n    def log_it(self): pass\n"}, ["implicit"]),
    ("base in the batch", {"a.py": "class B: pass\nclass A(B):\n    def log_it(self): pass\n"}, []),
    ("base without calls", {"a.py": "class A(ValueError, Generic[T], MutableMapping):\n    def log_it(self): pass\n"}, []),
    ("private method", {"A.java": "class A extends Lib { private void log_it() {} }"}, []),
    ("trait outside of the batch", {"a.rs": "struct A;\nimpl lib::T<u8> for A { fn log_it(&self) {} }\n"}, ["implicit"]),
    ("iterator in Rust", {"a.rs": "struct A;\nimpl Iterator for A { fn log_it(&self) {} }\n"}, ["implicit"]),
    ("trait in the batch", {"a.rs": "struct A;\ntrait T { }\nimpl T for A { fn log_it(&self) {} }\n"}, []),
    ("other trait", {"a.rs": "struct A;\nimpl Clone for A { }\nimpl A { fn log_it(&self) {} }\n"}, []),
    ("joined beginning", {"a.py": "class A:\n    def log_it(self): getattr(self, 'log_' + c)()\n"}, ["string"]),
    ("joined in a template", {"a.js": "class A { log_it() {} }\nx[`log_${y}`]();\n"}, ["string"]),
    ("joined in Ruby", {"a.rb": 'class A; def log_it; end; end\nsend("log_#{x}")\n'}, ["string"]),
    ("joined with a placeholder", {"a.py": "def log_it(): pass\ng['log_%s' % x]()\n"}, ["string"]),
    ("joined tokens", {"a.c": "void log_it(void) {}\n#define LOG(x) log_##x()\n"}, ["string"]),
    ("joined in a document", {"a.py": "def log_it(): pass\n", "a.md": "`'log_' + x`\n"}, []),
    ("beginning in a text", {"a.py": "def log_it(): pass\nx = 'log_', 'log_ + x', log_\n"}, []),
    ("end in a template", {"a.js": "function log_it_now() {}\nfunction log_it() {}\ng[`${y}_it`]();\n"}, []),
    ("code in a text", {"a.py": "def log_it(): pass\n", "a.yml": "run: python -c 'import a; a.log_it(1)'\n"}, ["string"]),
    ("call in prose", {"a.py": "def log_it(): pass\nraise E('call log_it() first', 'log_it() failed')\n"}, []),
    ("docstring", {"a.py": 'def log_it(): pass\ndef f():\n    """\n    >>> log_it(1)\n    """\n'}, []),
    ("own text", {"a.py": "def log_it(): raise E('log_it(1): failed', 'log_it')\n"}, []),
    ("module at another root", {"s/m.py": "def log_it(): pass\n", "a.py": "from m import log_it\nlog_it()\n"}, ["unresolved"]),
    ("module under an alias", {"s/m.ts": "export function log_it() {}\n", "a.ts": "import { log_it } from '~x/m';\nlog_it();\n"}, ["unresolved"]),
    ("module of the standard library", {"s/json.py": "def log_it(): pass\n", "a.py": "from json import log_it\nlog_it()\n"}, []),
    ("module in Java", {"p/M.java": "package p; class M { void log_it() {} }", "A.java": "import q.M; class A { void f(M m) { m.log_it(); } }"}, []),
    ("member of an interface", {"a.ts": "interface P { log_it(): void }\nconst p: P = { log_it: () => {} };\n"}, ["reference"]),
    ("lazy import of the default export", {"m.js": "export default function log_it() {}\n", "a.js": "lazy(() => import('./m'));\n"}, ["import"]),
    ("import of the other exports", {"m.js": "export default function log_it() {}\nexport const x = 1;\n", "a.js": "import { x } from './m';\nx;\n"}, []),
    ("member of another class", {"a.py": "class A:\n    def log_it(self): pass\nclass B:\n    log_it = 1\n    def f(self): return self.log_it\n"}, None),
]  # fmt: skip


@pytest.mark.parametrize(("files", "kinds"), [case[1:] for case in NAMES], ids=[case[0] for case in NAMES])
def test_evidence_for_uses_of_a_name(tmp_path: Path, files: Mapping[str, str], kinds: list[str] | None) -> None:
    name = "A.log_it" if kinds is None else "log_it"
    with batch_of(tmp_path, files) as batch:
        for answer in (batch.callers(name), batch.symbol_overview(name)):
            assert answer.coverage is not None
            assert [evidence.kind for evidence in answer.coverage.evidence] == (kinds or [])
            assert answer.is_complete == (not kinds)


def test_references_count_uses_under_other_names_only(tmp_path: Path) -> None:
    files = {"m.js": "export default function log_it() {}\n", "a.js": "import other from './m';\nother();\nother;\n"}
    with batch_of(tmp_path, files) as batch:
        answer = batch.references("log_it")
        assert answer.completeness.doubt == "none, but 2 uses under other names"
        assert [caller.first.use.line for caller in batch.callers("log_it").result] == [2]


def test_attribute_in_csharp_is_used_by_its_short_name(tmp_path: Path) -> None:
    files = {"a.cs": "class LogAttribute : Attribute {}\n[Log] class A {}\nclass OldAttribute : Attribute {}\n"}
    with batch_of(tmp_path, files) as batch:
        assert batch.callers("LogAttribute").completeness.doubt == "none, but 1 use of the short name Log"
        assert batch.callers("OldAttribute").is_complete


@pytest.mark.parametrize(("path", "is_test"), [("tests/test_a.py", True), ("src/a.py", False)])
def test_a_test_runner_calls_functions_in_test_files(tmp_path: Path, path: str, is_test: bool) -> None:
    with batch_of(tmp_path, {path: "def test_log(): pass\ndef log_test(): pass\n"}) as batch:
        assert batch.callers("test_log").is_complete != is_test
        assert batch.callers("log_test").is_complete


FILES = [
    ("worker", {"w.js": "export const x = 1;\n", "a.js": "new Worker(new URL('./w.js', import.meta.url));\n"}, ["string"]),
    ("module in a string", {"p/w.py": "x = 1\n", "a.py": "import_module('p.w')\n"}, ["string"]),
    ("missing module", {"p/w.py": "x = 1\n", "a.py": "import q.p.w\n"}, ["unresolved"]),
    ("name that it defines", {"w.cs": "partial class P { int One() => 1; }\n", "a.cs": "partial class P { int Two() => One(); }\n"}, ["reference"]),
    ("package", {"p/__init__.py": "x = 1\n", "p/q/w.py": "y = 1\n", "a.py": "import p.q.w\n"}, ["implicit"]),
    ("package that only itself imports", {"p/__init__.py": "x = 1\n", "p/v.py": "", "p/w.py": "import p.v\n"}, []),
    ("name without the last ending", {"p/w.config.ts": "export const x = 1;\n", "a.ts": "load('w.config');\n"}, ["string"]),
    ("comment", {"w.js": "export const x = 1;\n", "a.js": "// './w.js'\n"}, []),
    ("other file of the name", {"w.py": "x = 1\n", "a.py": "from other import w\n"}, []),
]  # fmt: skip


@pytest.mark.parametrize(("files", "kinds"), [case[1:] for case in FILES], ids=[case[0] for case in FILES])
def test_evidence_for_uses_of_a_file(tmp_path: Path, files: Mapping[str, str], kinds: list[str]) -> None:
    path = next(iter(files))
    with batch_of(tmp_path, files) as batch:
        answer = batch.impact(path)
        assert not answer.result.dependents
        assert answer.coverage is not None
        assert [evidence.kind for evidence in answer.coverage.evidence] == kinds
        assert answer.is_complete == (not kinds)


def test_single_evidence_is_one_line_with_its_command(codebatch: CommandLine) -> None:
    _write_and_run(codebatch, NAMES[0][1])
    line = "none, but 1 reference that is not a call: codebatch references log_it\n"
    assert codebatch("callers", "log_it", "-q", status=3).notes == line
    assert codebatch("inspect", "log_it", "-q", status=3).notes == line
    assert codebatch("impact", "log_it").lines[1].split()[1:] == ["p.rb:2", "P", "P.log_it", "name"]


def test_several_kinds_of_evidence_have_a_line_each(codebatch: CommandLine) -> None:
    files = {"a.py": "def log_it(): pass\n", "b.py": "from a import log_it\nx = 'log_it'\n", "c.vue": "log_it\n"}
    _write_and_run(codebatch, files)
    assert codebatch("callers", "log_it", "-q", status=3).notes == (
        "none, but 1 import, 1 string names it, and 1 file that was not analysed completely contains log_it "
        "(3 files: 2 parsed, 1 without a grammar):\n"
        "  1 import: codebatch references log_it\n"
        "  1 string names it: codebatch references log_it --role string\n"
        "  c.vue: no grammar for vue\n"
    )
    assert codebatch("references", "log_it", "--role", "string", status=3).lines == ["b.py:2:6: string"]


def test_files_that_were_not_parsed_are_named_below_results(codebatch: CommandLine) -> None:
    _write_and_run(codebatch, _ERB)
    for command in ("callers", "references", "impact", "inspect"):
        ended = codebatch(command, "visible_to?", "-q", status=3)
        assert ended.notes == (
            "incomplete: 1 more occurrence of visible_to? in 1 file without a grammar (erb):\n"
            "  view.html.erb: no grammar for erb\n"
        ), command
        assert ended.lines
        answer = codebatch(command, "visible_to?", "--json", status=3).json
        assert answer["complete"] is False
        assert answer["not_searched"] == [
            {"path": "view.html.erb", "reason": "unsupported", "detail": "erb", "occurrences": 1}
        ]
        assert answer["coverage"] is None
    assert codebatch("def", "visible_to?").notes == ""
    assert codebatch("callers", "visible_to?", "--path", "/item.rb").notes == ""


def test_dependents_of_a_file_are_incomplete_if_an_unparsed_file_names_it(codebatch: CommandLine) -> None:
    files = {"w.js": "export const x = 1;\n", "a.js": "import './w.js';\n", "p.vue": "<script>import './w'</script>\n"}
    _write_and_run(codebatch, files | {"q.vue": "w is a letter\n"})
    ended = codebatch("impact", "w.js", status=3)
    assert ended.lines[1].split() == ["1", "a.js:1", "w.js", "exact"]
    assert ended.notes == "incomplete: 1 file without a grammar (vue) names w.js:\n  p.vue: no grammar for vue\n"
    rows = codebatch("hotspots", "--by", "dependents", "--json").json["rows"]
    (row,) = [row for row in rows if row["path"] == "w.js"]
    assert row["dependents_partial"] is True


@pytest.mark.parametrize("command", ["callers", "references", "impact", "def", "inspect"])
def test_name_that_occurs_nowhere_is_an_error_with_the_nearest_name(codebatch: CommandLine, command: str) -> None:
    _write_and_run(codebatch, {"a.py": "class Story: pass\nStory()\n"})
    for name, nearest in (("Storyy", "Story"), ("story", "Story"), ("Stroy", "Story")):
        error = codebatch(command, name, "--json", status=2).error
        assert (error["code"], error["hint"]) == ("invalid_input", f"did you mean '{nearest}'?")
        assert error["message"].endswith(f"name '{name}'")


def test_python_raises_for_unknown_names_and_for_evidence(tmp_path: Path) -> None:
    unknown = pytest.raises(api.InvalidInput, match="the batch has no name 'log_itt'")
    with batch_of(tmp_path, NAMES[0][1]) as batch, unknown:
        batch.callers("log_itt")
    with api.open(tmp_path / "store") as store, pytest.raises(api.BatchIncomplete, match="none, but 1 reference"):
        store.batch(batch.id).callers("log_it")


def test_impact_that_stopped_is_incomplete(codebatch: CommandLine) -> None:
    lines = ["def f0(): pass", *(f"def f{number}(): f{number - 1}()" for number in range(1, 130))]
    _write_and_run(codebatch, {"a.py": "\n".join(lines) + "\n"})
    ended = codebatch("impact", "f0", "-q", status=3)
    assert ended.notes.startswith("incomplete: the search stopped after 100 symbols; ")
    answer = codebatch("impact", "f0", "--json", status=3).json
    assert (answer["complete"], answer["is_cut"]) == (False, True)
    assert codebatch("impact", "f0", "--depth", "3", "--json").json["complete"] is True


def test_no_tests_is_firm_only_if_all_uses_were_followed(codebatch: CommandLine) -> None:
    files = {
        "a.py": "def low(): pass\nclass A:\n    def run(self): low()\ndef alone(): pass\nalone()\n",
        "tests/test_a.py": "def test_run(x): x.run()\n",
    }
    _write_and_run(codebatch, files)
    assert codebatch("impact", "low", "--tests", status=3).notes == (
        "none, but 1 use by name was not followed: codebatch impact low\n"
    )
    assert codebatch("impact", "alone", "--tests").notes.startswith("none: no tests that use alone in ")
    _write_and_run(codebatch, {"b.py": "import a\n"})
    assert codebatch("impact", "a.py", "--tests").notes.startswith("none: no tests of a.py in ")
    _write_and_run(codebatch, {"tests/test_b.py": "load('b.py')\n"})
    assert codebatch("impact", "a.py", "--tests", status=3).notes == (
        "none, but 1 line names b.py:\n  tests/test_b.py:1\n"
    )


RUST_TESTS = """pub fn add() -> u8 { 10 }
fn mid() { add(); }
#[cfg(test)]
mod tests {
  use super::*;
  fn help() { add(); }
  #[test]
  fn t() { let x = add(); }
  #[tokio::test]
  // Why.
  async fn u() { mid() }
  proptest! { #[test] fn p(x in 0..1) { add(); } }
}
// #[test]
fn other() { add(); }
"""
VITEST = """export function sum(a) { return a; }
if (import.meta.vitest) {
  const { it } = import.meta.vitest;
  it("x", () => { sum(1); });
}
export const z = () => sum(2);
"""


def test_tests_in_source_files_are_listed(codebatch: CommandLine) -> None:
    _write_and_run(codebatch, {"lib.rs": RUST_TESTS, "s.ts": VITEST})
    tests = codebatch("impact", "add", "--tests")
    assert tests.text == "lib.rs:8: tests::t\nlib.rs:11: tests::u\nlib.rs:12: tests\n"
    answer = codebatch("impact", "add", "--tests", "--json").json
    assert answer["records"] == ["lib.rs"]
    assert [row["scope"] for row in answer["functions"]] == ["tests::t", "tests::u", "tests"]
    assert codebatch("impact", "sum", "--tests").text == "s.ts:4: (file)\n"
    assert codebatch("impact", "add", "--tests", "--path", "s.ts").text == ""
    assert "tests: 1 file\n  lib.rs: 2 calls\n" in codebatch("inspect", "add").text
    assert "tests: 1 file\n  s.ts: 1 call\n" in codebatch("inspect", "sum").text


def test_unknown_tests_in_source_files_are_no_firm_none(codebatch: CommandLine) -> None:
    _write_and_run(codebatch, {"lib.rs": "fn add() -> u8 { 10 }\nfn use_it() { add(); }\n#[test]\nfn t() {}\n"})
    assert codebatch("impact", "add", "--tests", status=3).notes == (
        "none, but 1 source file with tests uses it:\n  lib.rs\n"
    )


SETTER = "class A\n  def size=(x); end\n  def size; end\nend\n"


def test_ruby_setters_are_called_by_assignments(codebatch: CommandLine) -> None:
    _write_and_run(
        codebatch, {"a.rb": f"{SETTER}def set(a) = a.size = 1\ndef add(a) = a.size += 1\ndef get(a) = a.size == 1\n"}
    )
    assert [row["scope"] for row in codebatch("callers", "size=", "--json").records] == ["set", "add"]
    _write_and_run(codebatch, {"a.rb": SETTER})
    assert codebatch("callers", "size=").notes.startswith("none: no calls of size= in ")


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("a.py", "class A:\n    def __add__(self, x): return 1\nA() + A()\n", "__add__"),
        ("a.py", "class A:\n    def __init__(self): pass\nA()\n", "A.__init__"),
        ("a.go", "package main\nfunc main() {}\n", "main"),
        ("a.rb", "class A\n  def initialize; end\nend\nA.new\n", "initialize"),
    ],
)
def test_functions_that_are_called_without_their_names_are_no_firm_none(
    codebatch: CommandLine, path: str, text: str, name: str
) -> None:
    _write_and_run(codebatch, {path: text})
    word = name.rpartition(".")[2]
    assert codebatch("callers", name, status=3).notes == f"none, but code can call {word} without its name\n"
