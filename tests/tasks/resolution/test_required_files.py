"""Tests of files of Ruby, Lua, PHP and shells: required names lead to files."""

from __future__ import annotations

import pytest

from tests.tasks.resolution.resolving import answer, tree

REQUIRED = tree(
    """
    gem/gem.gemspec gem/lib/gem/part.rb gem/lib/gem.rb gem/test/t.rb app/lib/thing.rb app/run.rb far/lib/far/x.rb
    lua/a/b.lua lua/c/init.lua lua/main.lua other/a/b.lua
    php/composer.json php/src/Model/User.php php/src/x.php php/inc/helper.php php/lib/Old/Kind.php
    sh/lib.sh sh/run.sh app/test/support.rb app/test/unit/u.rb gem/lib/gem/tools/set.rb
    rocks/x-1.rockspec rocks/x/main.lua rocks/x/tools/cjson.lua rocks/x/tools/use.lua rocks/spec/fix/a1/b1.lua
    rocks/src/own.lua php/bin/start.php script/yaml.rb script/version.rb script/test/time.rb
    """
) | {"php/composer.json": '{"autoload": {"psr-4": {"Acme\\\\": ["gone/", "src/"], "Acme\\\\Whole\\\\": ""}}}'}


@pytest.mark.parametrize(
    ("path", "language", "target", "resolution", "files"),
    [
        ("gem/lib/gem.rb", "ruby", "./gem/part", "exact", "gem/lib/gem/part.rb"),
        ("gem/test/t.rb", "ruby", "gem/part", "exact", "gem/lib/gem/part.rb"),
        ("app/run.rb", "ruby", "thing", "file", "app/lib/thing.rb"),
        ("app/run.rb", "ruby", "far/x", "file", "far/lib/far/x.rb"),
        ("app/run.rb", "ruby", "json", "external", ""),
        ("lua/main.lua", "lua", "a.b", "file", "lua/a/b.lua"),
        ("lua/main.lua", "lua", "c", "file", "lua/c/init.lua"),
        ("lua/main.lua", "lua", "ffi", "external", ""),
        # A single component is the name of a library, unless the file is in a directory on the search path.
        ("rocks/x/main.lua", "lua", "cjson", "external", ""),
        ("rocks/x/tools/use.lua", "lua", "cjson", "external", ""),
        ("rocks/x/main.lua", "lua", "x.tools.cjson", "file", "rocks/x/tools/cjson.lua"),
        ("rocks/x/tools/use.lua", "lua", "own", "file", "rocks/src/own.lua"),
        ("rocks/x/main.lua", "lua", "a1.b1", "external", ""),
        ("rocks/spec/t_spec.lua", "lua", "a1.b1", "file", "rocks/spec/fix/a1/b1.lua"),
        ("app/run.rb", "ruby", "set", "external", ""),
        # A library is loaded from its `lib` directory, and a script can add its directory to the load path.
        ("gem/lib/gem/tools/use.rb", "ruby", "set", "external", ""),
        ("gem/lib/gem/tools/use.rb", "ruby", "part", "external", ""),
        ("gem/lib/gem/tools/use.rb", "ruby", "gem", "exact", "gem/lib/gem.rb"),
        ("script/use.rb", "ruby", "yaml", "external", ""),
        ("script/use.rb", "ruby", "version", "file", "script/version.rb"),
        ("script/test/use.rb", "ruby", "time", "file", "script/test/time.rb"),
        ("app/run.rb", "ruby", "support", "external", ""),
        ("app/test/unit/u.rb", "ruby", "support", "file", "app/test/support.rb"),
        ("app/run.rb", "ruby", "gem", "file", "gem/lib/gem.rb"),
        ("php/src/x.php", "php", "./../inc/helper.php", "exact", "php/inc/helper.php"),
        ("php/src/x.php", "php", "helper.php", "external", ""),
        ("php/src/x.php", "php", "inc/helper.php", "file", "php/inc/helper.php"),
        ("php/src/x.php", "php", "Acme\\Model\\User", "exact", "php/src/Model/User.php"),
        ("php/src/x.php", "php", "Acme\\Whole\\lib\\Old\\Kind", "exact", "php/lib/Old/Kind.php"),
        ("php/src/x.php", "php", "Acme\\Gone\\Old\\Kind", "file", "php/lib/Old/Kind.php"),
        ("php/src/x.php", "php", "Vendor\\Old\\Kind", "external", ""),
        ("php/src/x.php", "php", "Exception", "external", ""),
        ("sh/run.sh", "bash", "./lib.sh", "exact", "sh/lib.sh"),
        ("sh/run.sh", "bash", "$HOME/x.sh", "external", ""),
        ("sh/run.sh", "text", "./lib.sh", "external", ""),
    ],
)
def test_required_files_resolve_by_name(path: str, language: str, target: str, resolution: str, files: str) -> None:
    assert answer(REQUIRED, path, language, target) == (resolution, files)
