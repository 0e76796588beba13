"""Rules of resolution that one file decides: which of two files is meant, and when a name is outside the project."""

from __future__ import annotations

import json

import pytest

from tests.tasks.resolution.resolving import Files, answer, tree

_TWO_WORKSPACES: Files = {
    **tree("one/lib/index.js one/app/a.js two/lib/index.js"),
    "one/package.json": '{"workspaces": ["*"]}',
    "two/package.json": '{"workspaces": ["*"]}',
    "one/lib/package.json": '{"name": "lib"}',
    "two/lib/package.json": '{"name": "lib"}',
    "one/app/package.json": '{"name": "app", "dependencies": {"lib": "1"}}',
}


def _with_dependency(section: str, version: str, root: str = "{}") -> Files:
    return {
        **tree("lib/index.js app/a.js"),
        "package.json": root,
        "lib/package.json": '{"name": "lib"}',
        "app/package.json": json.dumps({"name": "app", section: {"lib": version}}),
    }


def _with_options(options: dict[str, object], paths: str) -> Files:
    return {**tree(paths), "tsconfig.json": json.dumps({"compilerOptions": options})}


@pytest.mark.parametrize(
    ("files", "path", "language", "target", "expected"),
    [
        # The name of the project confirms that the root is the package, with `-` and `.` as `_`.
        (
            {**tree("__init__.py x.py y.py"), "pyproject.toml": '[project]\nname = "my.big-pkg"\n'},
            *("y.py", "python", "my_big_pkg.x"),
            ("file", "x.py"),
        ),
        (tree("__init__.py x.py y.py"), "y.py", "python", "my_big_pkg.x", ("external", "")),
        # A package with `exports` hides its other files.
        (
            {
                **tree("node_modules/p/i.js node_modules/p/h.js a.js"),
                "node_modules/p/package.json": '{"exports": "./i.js"}',
            },
            *("a.js", "javascript", "p/h.js"),
            ("external", ""),
        ),
        (
            {**tree("node_modules/p/i.js node_modules/p/h.js a.js"), "node_modules/p/package.json": "{}"},
            *("a.js", "javascript", "p/h.js"),
            ("exact", "node_modules/p/h.js"),
        ),
        # Of two packages with one name, the one of the same workspace is meant.
        (_TWO_WORKSPACES, "one/app/a.js", "javascript", "lib", ("exact", "one/lib/index.js")),
        # Sections and versions that declare a dependency on a package of the tree.
        (
            _with_dependency("optionalDependencies", "1", '{"workspaces": ["*"]}'),
            *("app/a.js", "javascript", "lib"),
            ("exact", "lib/index.js"),
        ),
        (_with_dependency("dependencies", "portal:../lib"), "app/a.js", "javascript", "lib", ("exact", "lib/index.js")),
        (_with_dependency("dependencies", "1.0.0"), "app/a.js", "javascript", "lib", ("file", "lib/index.js")),
        # Compiler options.
        (
            _with_options({"rootDirs": ["src", "gen"]}, "src/a.ts gen/x.ts"),
            *("src/a.ts", "typescript", "./x"),
            ("exact", "gen/x.ts"),
        ),
        (
            _with_options({"baseUrl": "src", "paths": {"@/*": ["lib/*"]}}, "a.ts src/lib/x.ts lib/x.ts"),
            *("a.ts", "typescript", "@/x"),
            ("exact", "src/lib/x.ts"),
        ),
        # The longest replaced module path decides. Directories without Go files are no packages.
        (
            {
                **tree("x/d/e/f.go y/e/f.go main.go"),
                "go.mod": "module m\nreplace a.b/c => ./x\nreplace a.b/c/d => ./y\n",
            },
            *("main.go", "go", "a.b/c/d/e"),
            ("exact", "y/e/f.go"),
        ),
        (tree("x/m.go x/a/b/readme.txt y/a/b/f.go"), "x/m.go", "go", "h.com/a/b", ("file", "y/a/b/f.go")),
        # Tests in Ruby require files of both test directories.
        (tree("test/helper.rb spec/x_spec.rb"), "spec/x_spec.rb", "ruby", "helper", ("file", "test/helper.rb")),
        (tree("test/helper.rb bin/x.rb"), "bin/x.rb", "ruby", "helper", ("external", "")),
        # An empty prefix of autoloading can stand for any namespace.
        (
            {**tree("lib/Foo/Bar.php a.php"), "composer.json": '{"autoload": {"psr-4": {"": "src/"}}}'},
            *("a.php", "php", "Foo\\Bar"),
            ("file", "lib/Foo/Bar.php"),
        ),
        (
            {**tree("lib/Foo/Bar.php a.php"), "composer.json": '{"autoload": {"psr-4": {"Own\\\\": "src/"}}}'},
            *("a.php", "php", "Foo\\Bar"),
            ("external", ""),
        ),
    ],
)
def test_rule_decides_which_file_is_meant(
    files: Files, path: str, language: str, target: str, expected: tuple[str, str]
) -> None:
    assert answer(files, path, language, target) == expected
