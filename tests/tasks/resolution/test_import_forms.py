"""Tests of imports with comments, templates, or calls that return the file's directory around the name."""

from __future__ import annotations

import pytest

from codebatch_workers.symbols.outline import file_outline
from tests.support.source_files import source


@pytest.mark.parametrize(
    ("name", "content", "target"),
    [
        ("a.js", "const a = import(/* webpackChunkName: \"a\" */ './a.js');", "./a.js"),
        ("a.js", "const a = import(\n  // why\n  /* so */\n  './a.js'\n);", "./a.js"),
        ("a.ts", "const a = require(/* x */ './a', /* y */);", "./a"),
        ("a.js", "const a = require(`./a`);", "./a"),
        ("a.ts", "const a = import(/* @vite-ignore */ `./a.js`);", "./a.js"),
        ("a.js", "const a = import(`./${a}.js`);", ""),
        ("a.js", "const a = require(name, './a');", ""),
        ("a.js", "const a = require(/* x */ './a', './b');", "./a"),
        ("a.js", "const a = load('./a');", ""),
        ("a.lua", 'local a = require(--[[x]] "a.b")', "a.b"),
        ("a.lua", 'local ok, a = pcall(require, "a.b")', "a.b"),
        ("a.lua", "local ok, a = pcall(require, 'a.b', 'c')", "a.b"),
        ("a.lua", "local ok, a = xpcall(require, debug.traceback, 'a.b')", "a.b"),
        ("a.lua", "pcall(load, 'a.b')", ""),
        ("a.lua", "pcall(function() end)", ""),
        ("a.php", "<?php require dirname(__DIR__) . '/a.php';", "./../a.php"),
        ("a.php", "<?php require_once(dirname(__DIR__, 2) . '/a.php');", "./../../a.php"),
        ("a.php", "<?php include dirname(__FILE__) . '/a.php';", "./a.php"),
        ("a.php", '<?php include dirname(dirname(__FILE__)) . "/a.php";', "./../a.php"),
        ("a.php", "<?php include dirname(__FILE__, 3) . '/a.php';", "./../../a.php"),
        ("a.php", "<?php require __DIR__ . '/../a.php';", "./../a.php"),
        ("a.php", "<?php require /* x */ 'a.php';", "a.php"),
        ("a.php", "<?php require plugin_dir_path(__FILE__) . 'inc/a.php';", "./inc/a.php"),
        ("a.php", "<?php require_once( plugin_dir_path( __FILE__ ) . '/a.php' );", "./a.php"),
        ("a.php", "<?php require plugin_dir_path(dirname(__FILE__)) . 'a.php';", "./../a.php"),
        ("a.php", "<?php require trailingslashit(__DIR__) . 'a.php';", "./a.php"),
        ("a.php", "<?php require trailingslashit(dirname(__FILE__)) . 'a.php';", "./a.php"),
        ("a.php", "<?php require plugin_dir_path($x) . 'a.php';", ""),
        ("a.php", "<?php require trailingslashit(__FILE__) . 'a.php';", ""),
        ("a.c", '#import "a.h"\n', "a.h"),
        ("a.c", "#import <x/a.h>\n", "x/a.h"),
        ("a.cpp", '#  import /* why */ "a.h" // so\n', "a.h"),
        ("a.c", "#include_next <a.h>\n", ""),
        ("a.c", '#include /* x */ "a.h"\n', "a.h"),
        ("a.c", '#pragma "a.h"\n', ""),
        ("a.c", "#import NAME\n", ""),
        ("a.ts", 'export import q = require("./a");', "./a"),
        ("a.php", "<?php require __FILE__ . '/a.php';", ""),
        ("a.php", "<?php require $x . '/a.php';", ""),
        ("a.php", "<?php require other(__DIR__) . '/a.php';", ""),
        ("a.rb", "require( # why\n  'a'\n)", "a"),
        ("a.rb", "require File.expand_path('../x/y', __FILE__)", "./x/y"),
        ("a.rb", 'require File.expand_path("../../x/y", __FILE__)', "./../x/y"),
        ("a.rb", "require File.expand_path('../x', __dir__)", "./../x"),
        ("a.rb", "require File.expand_path 'x', File.dirname(__FILE__)", "./x"),
        ("a.rb", "require File.join(__dir__, 'x', \"y\")", "./x/y"),
        ("a.rb", "require File.join(File.dirname(__FILE__), '..', 'y')", "./../y"),
        ("a.rb", "require File.dirname(__FILE__) + '/x'", "./x"),
        ("a.rb", 'load __dir__ + "/x.rb"', "./x.rb"),
        ("a.rb", 'autoload :X, "#{__dir__}/x"', "./x"),
        ("a.rb", 'require "#{File.dirname(__FILE__)}/x"', "./x"),
        ("a.rb", 'require "#{root}/x"', ""),
        ("a.rb", "require File.join(root, 'x')", ""),
        ("a.rb", "require File.expand_path(name, __FILE__)", ""),
    ],
)
def test_import_target_is_found_in_every_form(name: str, content: str, target: str) -> None:
    edges = [edge for edge in file_outline(source(name, content)).edges if edge.edge_type == "imports"]
    assert [edge.target for edge in edges] == ([target] if target else [])
