"""Tests of source files: language, encoding, class, positions."""

from __future__ import annotations

import codecs
import gc
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codebatch_workers.runtime.source_lines import source_lines
from codebatch_workers.syntax.classification.purpose import file_purpose
from codebatch_workers.syntax.language.languages import detect_language, has_grammar
from codebatch_workers.syntax.source import HUGE_BYTES_MIN, SourceFile
from tests.support.resources import cpu_time_below
from tests.support.source_files import source


@pytest.mark.parametrize(
    ("path", "head", "language"),
    [
        ("a.py", b"", "python"),
        ("a.pyi", b"", "python"),
        ("a.pyw", b"", "python"),
        ("A.PY", b"", "python"),
        ("a.mjs", b"", "javascript"),
        ("a.cjs", b"", "javascript"),
        ("a.jsx", b"", "javascript"),
        ("a.mts", b"", "typescript"),
        ("a.cts", b"", "typescript"),
        ("a.d.ts", b"", "typescript"),
        ("a.tsx", b"", "tsx"),
        ("a.h", b"", "c"),
        ("a.hh", b"", "cpp"),
        ("a.c++", b"", "cpp"),
        ("a.ipp", b"", "cpp"),
        ("a.C", b"", "cpp"),
        ("a.bash", b"", "bash"),
        ("a.zsh", b"", "zsh"),
        (".bashrc", b"", "bash"),
        ("d/.gitattributes", b"", "gitattributes"),
        (".dockerignore", b"", "gitignore"),
        ("a.html.erb", b"", "erb"),
        ("a.hbs", b"", "handlebars"),
        ("a.yml.j2", b"", "jinja"),
        ("d/Makefile", b"", "make"),
        ("Dockerfile.dev", b"", "dockerfile"),
        ("Dockerfile.builder", b"", "dockerfile"),
        ("Makefile.lua", b"A := 1\n", "make"),
        ("Makefile.dep", b"A := 1\n", "make"),
        ("Makefile.js", b"", "javascript"),
        ("go.mod", b"", "gomod"),
        ("d/tsconfig.build.json", b"", "jsonc"),
        ("d/.vscode/settings.json", b"", "jsonc"),
        ("package.json", b"", "json"),
        ("run", b"#!/usr/bin/env python3.11\n", "python"),
        ("run", b"#!/usr/bin/env -S A=1 node --x\n", "javascript"),
        ("run", b"#! /bin/sh -e\n", "bash"),
        ("run", b"#!/usr/bin/pypy3", "python"),
        ("run", b"#!", "text"),
        ("README", b"", "text"),
        ("a.unknown", b"#!/bin/sh", "bash"),
        ("Fastfile", b"", "ruby"),
        ("d/main.tf", b"", "hcl"),
        ("a.blade.php", b"", "blade"),
        ("a.php", b"<?hh // strict\n", "hack"),
        ("a.ts", b'<?xml version="1.0"?>', "xml"),
        ("a.svg", b'<?xml version="1.0"?>', "svg"),
        ("run", b"#!/usr/bin/env -S uv run\n", "python"),
        ("Makefile.am", b"", "make"),
        ("a.vcxproj.filters", b"", "xml"),
        ("man/a.1", b'.\\" Made by hand.\n', "roff"),
        ("out/a.1", b"1 2 3\n", "text"),
        ("a.sh", b"#!/bin/sh\n# Tcl ignores this -*- tcl -*-\\\nexec wish", "tcl"),
        ("a.h", b"/* -*- mode: C++; tab-width: 4 -*- */", "cpp"),
        ("a", b"# -*- coding: utf-8 -*-\n", "text"),
        ("BUILD", b"# -*- python -*-\n", "bazel"),
        ("a.py", b"# -*- ruby -*-\n", "python"),
        # The shebang counts more than the extension, but less than the whole name.
        ("tool.py", b"#!/usr/bin/env ruby\nENV['A'] ||= 'b'\n", "ruby"),
        ("a.rb", b"#!/usr/bin/env -S python3.11 -u\n", "python"),
        ("a.sh", b"#!/usr/bin/perl -w\n", "perl"),
        ("a.txt", b"#!/bin/sh\n", "bash"),
        ("a.pl", b"#!/usr/bin/env unknown\n", "perl"),
        ("a.in", b"#!/usr/bin/env -i PATH=/bin perl5.36\n", "perl"),
        ("a.py", b"#!/usr/bin/env\n", "python"),
        ("a.t", b"#!/usr/bin/env php8.2\r\n", "php"),
        ("wscript", b"#!/usr/bin/env ruby\n", "python"),
        ("Makefile.js", b"#!/usr/bin/make -f\n", "make"),
        ("a.rs", b"#![allow(unused)]\n", "rust"),
        # Languages that the interpreter runs after translation, templates, and shells that start another interpreter.
        ("a.ts", b"#!/usr/bin/env node\n", "typescript"),
        ("a.js", b"#!/usr/bin/env -S deno run\n", "javascript"),
        ("a.ts", b"#!/bin/sh\n", "bash"),
        ("a.pyx", b"#!/usr/bin/env python\n", "cython"),
        ("a.py.j2", b"#!/usr/bin/env python\n", "jinja"),
        ("a.py", b"#!/bin/sh\n''':'\nexec python3 \"$0\" \"$@\"\n'''\n", "python"),
        ("a.py", b"#!/bin/sh\n'''exec' /opt/python3 -u \"$0\" \"$@\"\n", "python"),
        ("run", b'#!/bin/sh\n# \\\nexec tclsh8.6 "$0" ${1+"$@"}\n', "tcl"),
        ("a.sh", b'#!/bin/sh\nexec node "$(dirname "$0")/a.js" "$@"\n', "bash"),
        ("a.sh", b'#!/bin/sh\nexec sudo "$0" "$@"\n', "bash"),
        ("a.scala", b'#!/bin/sh\nexec scala "$0" "$@"\n!#\n', "scala"),
        # Mode lines of Vim.
        ("a.unknown", b"# vim: set sw=2 ft=ruby :\n", "ruby"),
        ("a.py", b"# vim: ft=ruby\n", "python"),
        ("a", b"a word: vim ft=ruby\n", "text"),
    ],
)
def test_language_is_detected_by_name_shebang_and_extension(path: str, head: bytes, language: str) -> None:
    assert detect_language(path.encode(), head, content=head) == language


@pytest.mark.parametrize(
    ("content", "language"),
    [
        (b"int f(void);\n", "c"),
        (b"/*\n" + b" * x\n" * 200 + b" */\n@interface A : NSObject\n@end\n", "objective-c"),
        (b"  #import <Foundation/Foundation.h>\n", "objective-c"),
        (b"/* @interface */ int x; // #import <a>\n", "c"),
    ],
)
def test_objective_c_header_is_detected_by_its_syntax(content: bytes, language: str) -> None:
    assert source("a.h", content).language == language


def test_context_makes_a_header_cpp() -> None:
    assert source("a.h", b"int x;", {"language": b"cpp"}).language == "cpp"
    assert source("a.h", b"int x;", {"language": b""}).language == "c"
    assert source("a.c", b"int x;", {"language": b"cpp"}).language == "c"


@pytest.mark.parametrize(
    ("path", "content", "encoding", "utf8", "problem"),
    [
        ("a.txt", b"abc", "utf-8", "abc", ""),
        ("a.txt", codecs.BOM_UTF8 + "é".encode(), "utf-8", "é", ""),
        ("a.txt", codecs.BOM_UTF16_LE + "é\r\n".encode("utf-16le"), "utf-16le", "é\r\n", ""),
        ("a.txt", codecs.BOM_UTF16_BE + "é".encode("utf-16be"), "utf-16be", "é", ""),
        ("a.txt", codecs.BOM_UTF32_LE + "é".encode("utf-32le"), "utf-32le", "é", ""),
        ("a.txt", codecs.BOM_UTF16_LE + b"\x00\xd8", "utf-16le", "\ufffd", "not valid UTF-16LE: byte 0 is 0x00"),
        ("a.txt", b"ab\xe9c", "unknown-8bit", "ab\ufffdc", "not valid UTF-8: byte 2 is 0xe9"),
        ("a.py", b"# coding: latin-1\n# \xe9", "iso-8859-1", "# coding: latin-1\n# é", ""),
        (
            "a.py",
            b"#!x\n# vim: set fileencoding=cp1252 :\n#\x80",
            "windows-1252",
            "#!x\n# vim: set fileencoding=cp1252 :\n#€",
            "",
        ),
        ("a.py", b"x = 1\n# coding: latin-1\n#\xc3\xa9", "utf-8", "x = 1\n# coding: latin-1\n#é", ""),
        ("a.py", b"# coding: rot13\n", "utf-8", "# coding: rot13\n", "unknown encoding `rot13`, read as UTF-8"),
        (
            "a.py",
            b"# coding: ascii\n#\xff",
            "unknown-8bit",
            "# coding: ascii\n#\ufffd",
            "not valid UTF-8: byte 17 is 0xff",
        ),
        ("a.txt", b"# coding: latin-1\n# \xc3\xa9", "utf-8", "# coding: latin-1\n# é", ""),
        ("a.bin", b"a\0b", "", "", ""),
    ],
)
def test_text_is_transcoded_from_its_declared_encoding(
    path: str, content: bytes, encoding: str, utf8: str, problem: str
) -> None:
    file = source(path, content)
    assert (file.encoding, file.utf8.decode(), file.encoding_problem) == (encoding, utf8, problem)


@given(parts=st.lists(st.sampled_from([b"a", "é".encode(), "€".encode(), "𐐀".encode(), b"\x80", b"\xf0", b"\xe2\x82"])))
def test_text_decoded_in_pieces_matches_the_whole(parts: list[bytes]) -> None:
    content = b"".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codebatch_workers.syntax.language.encodings._PIECE_BYTES_MAX", 5)
        file = source("a.txt", content)
        assert file.utf8 == content.decode("utf-8", "replace").encode()
    try:
        content.decode("utf-8")
        problem = ""
    except UnicodeDecodeError as error:
        problem = f"not valid UTF-8: byte {error.start} is 0x{content[error.start]:02x}"
    assert file.encoding_problem == problem


def test_every_cookie_encoding_can_be_decoded() -> None:
    from codebatch_workers.syntax.language.encodings import _COOKIE_ENCODINGS

    assert all(codecs.lookup(name).decode(b"a")[0] == "a" for name in _COOKIE_ENCODINGS.values())


@pytest.mark.parametrize(
    ("path", "content", "file_class"),
    [
        ("a", b"\0", "binary"),
        ("a", b"x" * 8192 + b"\0", "text"),
        ("a.pdf", b"%PDF-1.4\r1 0 obj", "binary"),
        ("a.tex", b"% PDF\r", "text"),
        ("a", codecs.BOM_UTF16_LE + b"a\0", "text"),
        ("a", b"", "empty"),
        ("a", codecs.BOM_UTF8, "empty"),
        ("a.txt", b"x\n" * (HUGE_BYTES_MIN // 2 + 1), "huge"),
        ("a.min.js", b"x", "minified"),
        ("a.js", b"x=1;" * 1000, "minified"),
        ("a.js", (b"f(a);" * 80 + b"\n") * 10, "minified"),
        ("a.js", (b"function f(){}" * 10 + b"\n") * 20, "text"),
        ("a.js", (b"f(a);" * 20 + b"\n") * 40, "text"),
        ("web/wwwroot/lib/a/a.js", b"x", "vendored"),
        ("a.css", (b"a{b:c}" * 80 + b"\n") * 10, "text"),
        ("a.json", b"[1,2]" * 1000, "text"),
        ("a.go", b"// Code generated by protoc. DO NOT EDIT.\n", "generated"),
        ("a.js", b"/* @generated */", "generated"),
        ("a.py", b"# generated" + b"-" * 300 + b"\n# Code generated by x. DO NOT EDIT.\n", "generated"),
        ("_pb2.py", b"x = 1\n", "text"),
        ("a.py", b"# This is a generated file! Please edit source .ksy file", "generated"),
        ("d/Cargo.lock", b"x", "generated"),
        ("node_modules/a.js", b"x", "vendored"),
        ("a/vendor.js", b"x", "text"),
        ("ios/Pods/A.swift", b"x", "vendored"),
        (".yarn/releases/yarn.cjs", b"x", "vendored"),
        ("Godeps/_workspace/a.go", b"x", "vendored"),
        ("A.Designer.cs", b"x", "generated"),
        ("A.g.cs", b"x", "generated"),
        ("A.cs", b"//------\n// <auto-generated>\n//     a tool\n", "generated"),
        ("a.sql", b"-- MySQL dump 10.13  Distrib 8.0\n", "generated"),
        ("a.sql", b"--\n-- Dumping data for table `a`\n--\n", "generated"),
        ("a.py", b"# -- MySQL dump 10.13\n", "text"),
        ("a.sql", b"-- Load a database dump.\n", "text"),
        ("a.py", b"# Autogenerated by Thrift Compiler (0.9)\n", "generated"),
        ("a.js", b"#!/usr/bin/env node\n// Auto-generated by @a/intent setup\n", "generated"),
        ("a.ts", b"/**\n * This file was generated by A\n * Do not make changes to this file\n */\n", "generated"),
        ("a.css", b"/*\n * Automatically generated by tool 1.2\n */\n", "generated"),
        ("a.js", b"// Names are auto-generated by the server\n", "text"),
        ("a.js", b"// Automatically generated by default.\n", "text"),
        ("a.py", b"# Autogenerated file, any changes will be lost\n", "generated"),
        ("a.c", b"/* A Bison parser, made by GNU Bison 3.0.4.  */\n", "generated"),
        ("a.c", b'#line 2 "a.c"\n/* A lexical scanner generated by flex */\n', "generated"),
        ("a.c", b"/* ANSI-C code produced by gperf version 3.1 */\n", "generated"),
        ("a.py", b"# This file was autogenerated by some hot garbage in the `uniffi` crate.\n", "generated"),
        ("a.py", b"# What was autogenerated by others is read here.\n", "text"),
        ("A.java", b"// Generated from A.g4 by ANTLR 4.7\n", "generated"),
        ("a.c", b"/* values that are generated by flexible means */\n", "text"),
        ("a.py", b"# generated in the lab\n", "text"),
        ("dist/bundle.js", b"x", "vendored"),
        ("deps/a.c", b"x", "vendored"),
        ("tools/docbook-xsl-1.76.1/common/main.js", b"x", "vendored"),
        ("docs/version-2.0.0/a.js", b"x", "documentation"),
        ("docker/python-3.12/a.sh", b"x", "text"),
        ("assets/codemirror/addon/mode/simple.js", b"x", "vendored"),
        ("codemirror/app.js", b"x", "text"),
        ("regress/hooks.sh", b"x", "test"),
        ("Scanner/CTests.py", b"x", "test"),
        ("Latests.py", b"x", "text"),
        (".pc/fix.patch/a.c", b"x", "vendored"),
        ("src/deps/a.c", b"x", "text"),
        ("a/jquery-3.7.1.slim.js", b"x", "vendored"),
        ("a/jquery.cookie.js", b"x", "text"),
        ("tests/test_a.py", b"x", "test"),
        ("src/a_test.go", b"x", "test"),
        ("src/attest.go", b"x", "text"),
        ("src/a.spec.ts", b"x", "test"),
        ("src/main/AbcTest.java", b"x", "test"),
        ("src/main/Latest.java", b"x", "text"),
        ("src/test/java/A.java", b"x", "test"),
        ("django/test/client.py", b"x", "text"),
        ("test/client.py", b"x", "test"),
        ("Testing/a.c", b"x", "text"),
        ("tests/fixtures/a.py", b"x", "fixture"),
        ("tests/app/data/a.py", b"x", "fixture"),
        ("app/data/a.py", b"x", "text"),
        ("go/testdata/a.go", b"x", "fixture"),
        ("pkg/examples/a.py", b"x", "example"),
        ("samples/a.py", b"x", "example"),
        ("pkg/test-examples/a.py", b"x", "fixture"),
        ("pkg/benchmarks/a.py", b"x", "test"),
        ("testsDOH/a.js", b"x", "test"),
        ("testenv/Test-a.py", b"x", "test"),
        ("test_utils/a.py", b"x", "test"),
        ("x/caddytest/a.key", b"x", "test"),
        ("nettest/sub/a.go", b"x", "test"),
        ("pkg/tests-of-a/a.js", b"x", "test"),
        ("testsomething/a.js", b"x", "text"),
        ("t/certs/a.key", b"x", "test"),
        ("t/data/a.json", b"x", "fixture"),
        ("src/t/a.c", b"x", "text"),
        ("testing/framework/a.py", b"x", "test"),
        ("pkg/testing/a.py", b"x", "text"),
        ("a/Test Data/a.json", b"x", "fixture"),
        ("bench/a.py", b"x", "test"),
        ("codec.py", b'""" Codec generated from \'A/B.TXT\' with gencodec.py.\n\n"""\n', "generated"),
        ("audio/samples/a.py", b"x", "text"),
        ("{{cookiecutter.name}}/a.py", b"x", "template"),
        ("vendor/tests/a.py", b"x", "vendored"),
        ("configure", b"#! /bin/sh\n# Generated by GNU Autoconf 2.71 for a 1.0.\n", "generated"),
    ],
)
def test_first_matching_class_applies(path: str, content: bytes, file_class: str) -> None:
    assert source(path, content).file_class == file_class


def test_columns_count_code_points_without_the_byte_order_mark() -> None:
    file = source("a.py", codecs.BOM_UTF8 + "a𐐀b\nxé\r\ny\rz".encode())
    offsets = [file.utf8.index(character.encode()) for character in "a𐐀bxéyz"]
    assert [file.position(offset) for offset in offsets] == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (3, 1), (3, 3)]
    assert file.line_count == 3


def test_columns_of_a_long_line_match_a_full_count() -> None:
    text = "é𐐀a" * 5000
    file = source("a.txt", "first\n" + text)
    for characters in (0, 1, 511, 512, 513, 1024, 7000, 14_999, 15_000):
        offset = len(b"first\n") + len(text[:characters].encode())
        assert file.position(offset) == (2, characters + 1)


def test_tree_release_changes_no_result() -> None:
    file = source("a.py", "def f(:\n")
    before = (file.has_syntax_error, file.utf8, file.position(4), file.captures.keys())
    file.release()
    assert (file.has_syntax_error, file.utf8, file.position(4), file.captures.keys()) == before


def test_tree_release_frees_every_node() -> None:
    """Nodes keep their tree in memory. A worker releases files long before it frees them, so a unit would grow."""
    file = source("a.py", "def f(): pass\n")
    nodes = file.derived(lambda file: set(file.captures["def.function"]))
    references = sys.getrefcount(nodes)
    file.release()
    assert sys.getrefcount(nodes) < references


@pytest.mark.parametrize(
    ("content", "lines"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"\n\n", 2), (b"a\rb", 1)]
)
def test_lines_end_at_line_feeds(content: bytes, lines: int) -> None:
    assert source("a.txt", content).line_count == lines


def test_attributes_override_detection() -> None:
    attribute = b"language=C++"
    assert source("a.inc", b"int x;", {"attributes": attribute}).language == "cpp"
    assert source("a.min.js", b"x;", {"attributes": b"generated="}).file_class == "text"
    assert source("a.c", b"x", {"attributes": b"generated=true\0vendored=true"}).file_class == "generated"
    assert source("vendor/a.c", b"x", {"attributes": b"vendored="}).file_class == "text"
    assert source("a.c", b"x", {"attributes": b"documentation=true"}).file_class == "documentation"


@pytest.mark.parametrize(
    ("path", "file_class"),
    [
        ("tests/a.py", "fixture"),
        ("tests/data/a.py", "fixture"),
        ("examples/a.py", "example"),
        ("lib/a.py", "documentation"),
    ],
)
def test_documentation_attribute_does_not_override_other_classes(path: str, file_class: str) -> None:
    assert source(path, b"x", {"attributes": b"documentation=true"}).file_class == file_class


@pytest.mark.parametrize(
    ("path", "file_class"),
    [
        ("docs/conf.py", "documentation"),
        ("doc/a/b.js", "documentation"),
        ("a/Documentation/b.c", "documentation"),
        ("src/docs/a.py", "text"),
        ("docs.py", "text"),
        ("docs/tests/test_a.py", "test"),
        ("docs/examples/a.py", "example"),
    ],
)
def test_documentation_is_detected_by_directory_unless_unset(path: str, file_class: str) -> None:
    assert source(path, b"x").file_class == file_class
    if file_class == "documentation":
        assert source(path, b"x", {"attributes": b"documentation="}).file_class == "text"


def test_language_without_its_grammar_is_supported_without_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that is None in `sys.modules` cannot be found, like one that is not installed."""
    monkeypatch.setitem(sys.modules, "tree_sitter_ruby", None)
    has_grammar.cache_clear()
    try:
        file = source("a.rb", "def f(\n")
        assert (file.language, file.has_grammar, file.tree) == ("ruby", False, None)
    finally:
        has_grammar.cache_clear()


def test_binary_and_huge_limits_are_exact() -> None:
    for at, is_binary in ((8191, True), (8192, False)):
        assert source("a.txt", b"x" * at + b"\0").is_binary is is_binary
    for size, file_class in ((HUGE_BYTES_MIN, "text"), (HUGE_BYTES_MIN + 1, "huge")):
        assert source("a.txt", b"x" * size).file_class == file_class


def test_restricted_view_shares_only_independent_values() -> None:
    contexts = {"attributes": b"", "language": b"cpp", "packages": b"p/"}
    file = source("a.h", b"class A { };", contexts)
    without_packages, without_language = (
        file.restricted_to_contexts(frozenset({"attributes", "language"})),
        file.restricted_to_contexts(frozenset({"attributes", "packages"})),
    )  # fmt: skip
    assert (without_packages.language, without_language.language) == ("cpp", "c")
    assert set(without_packages.contexts) == {"attributes", "language"}
    assert set(file.contexts) == set(contexts)
    assert without_packages.tree is file.tree is not None
    assert without_language.tree is not file.tree
    assert set(without_packages.restricted_to_contexts(frozenset({"packages", "language"})).contexts) == {"language"}
    for view in (without_packages, without_language):
        assert file.restricted_to_contexts(frozenset(view.contexts)) is view
        assert view.restricted_to_contexts(frozenset(view.contexts)) is view
    file.release()
    assert not any("tree" in view.__dict__ for view in (file, without_packages, without_language))


def test_source_file_is_freed_without_garbage_collection() -> None:
    """Reference cycles would keep contents and trees until the next garbage collection, after many units."""
    file = source("a.h", b"class A { };", {"language": b"cpp", "packages": b"p/", "attributes": b""})
    content = file.content
    for names in (frozenset({"attributes", "language"}), frozenset({"packages"})):
        assert file.restricted_to_contexts(names).utf8 == content
    gc.collect()
    gc.disable()
    try:
        before = sys.getrefcount(content)
        del file
        assert sys.getrefcount(content) < before
        assert not [
            candidate
            for candidate in gc.get_objects()
            if isinstance(candidate, SourceFile) and candidate.content is content
        ]
    finally:
        gc.enable()


@pytest.mark.parametrize("directory", [b"test/", b"tests/x/", b"a-_.", b"data/", b"spec/tests/"])
def test_purpose_of_any_path_is_computed_in_time(directory: bytes) -> None:
    with cpu_time_below(2):
        for number in range(500):
            file_purpose(directory * (4000 // len(directory)) + b"%d/a.py" % number)


@pytest.mark.parametrize(
    ("path", "content", "count", "lines"),
    [
        (b"a.py", b"one\ntwo\r\nthree", 3, ["two\r", "three"]),
        (b"a.py", b"one\ntwo\n", 2, ["two"]),
        (b"a.py", b"one\n", 1, []),
        (b"a.py", b"", 0, []),
        (b"a.py", codecs.BOM_UTF8 + b"one\n\xc3\xa9\n", 2, ["é"]),
        (b"a.py", codecs.BOM_UTF16_LE + "one\né\n".encode("utf-16-le"), 2, ["é"]),
        (b"a.py", b"# coding: latin-1\n\xe9\n", 2, ["é"]),
        (b"a.txt", b"# coding: latin-1\n\xe9\n", 2, ["\ufffd"]),
    ],
)
def test_source_lines_match_the_lines_that_tasks_see(path: bytes, content: bytes, count: int, lines: list[str]) -> None:
    assert source_lines(path, content, {}, 2, 3) == {"count": count, "is_binary": False, "lines": lines}
    assert SourceFile(path, content, executable=False, contexts={}).line_count == count


def test_source_lines_load_no_parser() -> None:
    """Loading it takes 20 ms, a third of the time of `duplicates`."""
    call = "from codebatch_workers.runtime.source_lines import source_lines; source_lines(b'a.py', b'a', {}, 1, 1)"
    print_modules = (
        "import sys; print(*(name for name in sys.modules if '.syntax.' in name or name.startswith('tree_sitter')))"
    )
    done = subprocess.run([sys.executable, "-c", f"{call}; {print_modules}"], capture_output=True, check=True)
    package = b"codebatch_workers.syntax.language"
    assert done.stdout.split() == [package, package + b".encodings"]


def test_a_binary_file_has_no_lines() -> None:
    assert source_lines(b"a.py", b"a\0\n", {}, 1, 1) == {"count": 0, "is_binary": True, "lines": []}
