"""Tests of the resolution of imports to files of the snapshot, by each language's rules and configuration files."""

from __future__ import annotations

import pytest

from codebatch_workers.resolution.configuration_files import DOCUMENT_BYTES_MAX
from codebatch_workers.resolution.tree import PathTree
from tests.tasks.resolution.resolving import Files, answer, project_resolver, resolver, tree

PYTHON = tree(
    """
    src/app/__init__.py src/app/core.py src/app/sub/__init__.py src/app/sub/leaf.py src/app/six.py
    src/app/fast.pyx src/app/typed.pyi src/app/space/inner.py
    tools/run.py tools/help.py tools/logging.py lib/one/util.py lib/two/util.py tests/test_app.py
    tests/unit/__init__.py tests/unit/test_core.py tests/support.py pyproject.toml
    other/setup.cfg other/python/thing/__init__.py other/check.py other/mapped/__init__.py other/mapped/part.py
    other/pyproject.toml
    lib/one/deep/__init__.py lib/two/deep/__init__.py lib/one/deep/util.py lib/two/deep/util.py
    examples/requests/__init__.py
    examples/requests/api.py other/vendored/inside/__init__.py other/vendored/inside/part.py
    """
) | {
    "other/setup.cfg": "[options]\npackage_dir =\n    = python\n",
    "other/pyproject.toml": '[tool.setuptools.package-dir]\nrenamed = "mapped"\n',
}
ROOT_PACKAGE = tree("__init__.py db/__init__.py db/models/__init__.py db/models/fields.py apps/config.py")
SCRIPT = tree(
    """
    package.json tsconfig.base.json
    web/tsconfig.json web/a.ts web/b.tsx web/dir/index.js web/data.json web/made.ts web/style.css web/both.js
    web/both.ts
    web/src/lib/store.ts web/src/generic/one.ts web/generated/view.ts web/src/view.html web/src/page.ts web/old.js
    web/node_modules/dep/package.json web/node_modules/dep/lib/main.js web/node_modules/dep/extra.js
    web/main/package.json web/main/entry.js
    app/tsconfig.json app/tsconfig.app.json app/x.ts app/code/y.ts
    packages/ui/package.json packages/ui/src/index.ts packages/ui/src/button.tsx packages/ui/src/internal/a.ts
    packages/ui/plain.js packages/core/package.json packages/core/index.js packages/core/deep/b.js
    packages/events/package.json packages/events/index.js
    alone/package.json alone/index.js loop/tsconfig.json loop/other.json loop/z.ts loop/mod.ts
    """
) | {
    "package.json": '{"workspaces": ["packages/*"], "dependencies": {"@acme/core": "*"}}',
    "tsconfig.base.json": '{"compilerOptions": {"paths": {"@lib/*": ["./web/src/lib/*"]}}}',
    "web/tsconfig.json": """{
        // comments, and a trailing comma
        "extends": "../tsconfig.base", /* "extends": "x" */
        "compilerOptions": {"baseUrl": ".", "rootDirs": ["src", "generated"],
          "paths": {"~/*": ["missing/*", "src/*"], "exactly": ["src/lib/store"], "~/generic/*": ["src/generic/*"],},},
    }""",
    "web/node_modules/dep/package.json": '{"main": "./lib/main"}',
    "web/main/package.json": '{"main": "entry.js"}',
    "app/tsconfig.json": '{"files": [], "references": [{"path": "./tsconfig.app.json"}]}',
    "app/tsconfig.app.json": '{"compilerOptions": {"paths": {"@/*": ["code/*"]}}}',
    "packages/ui/package.json": """{"name": "@acme/ui", "dependencies": {"@acme/core": "^1"},
        "imports": {"#internal/*": "./src/internal/*.ts"},
        "exports": {".": {"types": "./dist/index.d.ts", "import": "./dist/index.mjs"},
                    "./*": "./src/*.tsx", "./plain": {"browser": {"default": "./plain.js"}}}}""",
    "packages/core/package.json": '{"name": "@acme/core", "main": "index.js"}',
    "packages/events/package.json": '{"name": "events"}',
    "alone/package.json": '{"name": "alone"}',
    "loop/tsconfig.json": '{"extends": "./other.json"}',
    "loop/other.json": '{"extends": "./tsconfig.json", "compilerOptions": {"baseUrl": "."}}',
}
C = tree(
    """
    c/main.c c/main.h c/string.h c/inc/y.h c/lib/deep/x.h other/y.h include/api/a.h c/include/api/a.h
    far/one/z.h far/two/z.h far/only.h include/time.h arch/x.c
    """
)
COMPILED = tree("src/a.c src/b.h src/gen/config.h third/config.h build/compile_commands.json") | {
    "build/compile_commands.json": '[{"directory": "/home/x/p/build", "file": "../src/a.c",'
    ' "command": "cc -I../third -I ../src/gen -c ../src/a.c"}]'
}
GO = tree(
    """
    go.mod main.go store/store.go store/disk.go store/store_test.go store/_skipped.go cmd/run/main.go
    nested/go.mod nested/pkg/n.go local/go.mod local/l.go vendor/github.com/v/w/w.go rpc/rpc.go
    """
) | {
    "go.mod": "module acme.org/x // the module\n\nrequire (\n\tgithub.com/l/l v1.0.0\n)\n"
    "replace (\n\tgithub.com/l/l v1.0.0 => ./local\n\tgithub.com/out/side => ../outside\n)\n",
    "nested/go.mod": 'module "acme.org/x/nested"\n',
    "local/go.mod": "module elsewhere.org/local\n",
}
GO_WORK = tree("go.work one/go.mod one/a.go two/go.mod two/sub/b.go") | {
    "go.work": "go 1.21\nuse (\n\t./one\n\t./two\n)\n",
    "one/go.mod": "module one.org/one",
    "two/go.mod": "module two.org/two",
}
GO_PATH = tree("src/github.com/a/b/store/s.go src/github.com/c/d/store/t.go src/github.com/a/b/main.go")
JAVA = tree(
    """
    m/src/main/java/org/acme/Thing.java m/src/main/java/org/acme/Other.java m/src/test/java/org/acme/ThingTest.java
    n/src/main/java/org/acme/Far.java n/src/main/java/org/other/Use.java
    android/a/src/org/dup/Dup.java android/b/Use.java a/src/org/dup/Dup.java emul/java/util/List.java
    k/org/kot/Big.kt k/org/kot/extensions.kt k/org/app/Main.kt
    """
)
RUST = tree(
    """
    Cargo.toml r/Cargo.toml r/src/lib.rs r/src/main.rs r/src/net/mod.rs r/src/net/tcp.rs r/src/text.rs r/src/cli.rs
    r/src/cli/args.rs r/src/bin/tool.rs r/src/bin/big/main.rs r/src/bin/big/part.rs r/tests/all.rs r/tests/common/mod.rs
    r/build.rs r/src/os/unix.rs
    my-crate/Cargo.toml my-crate/src/lib.rs my-crate/src/shapes.rs odd/Cargo.toml odd/source/root.rs odd/source/part.rs
    old/Cargo.toml old/src/lib.rs old/src/a.rs old/src/b.rs spare/Cargo.toml spare/src/lib.rs
    """
) | {
    "Cargo.toml": '[workspace]\nmembers = ["r"]\n[workspace.dependencies]\nmy-crate = { path = "my-crate" }\n'
    '[patch.crates-io]\nspare = { path = "spare" }\n',
    "r/Cargo.toml": '[package]\nname = "the-r"\nedition = "2021"\n[dependencies]\nmy-crate = { workspace = true }\n'
    'renamed = { path = "../odd", package = "odd" }\nserde = "1"\nspare = "1"\nold = "2"\n',
    "r/src/lib.rs": "pub mod net;\nmod text;\n",
    "r/src/main.rs": "mod cli;\n",
    "my-crate/Cargo.toml": '[package]\nname = "my-crate"\nedition.workspace = true\n',
    "odd/Cargo.toml": '[package]\nname = "odd"\nedition = "2021"\n[lib]\nname = "strange"\npath = "source/root.rs"\n',
    "old/Cargo.toml": '[package]\nname = "old"\n',
    "spare/Cargo.toml": '[package]\nname = "spare"\n',
}
RUST_BARE = tree("r/src/lib.rs r/src/net.rs my-crate/src/lib.rs my-crate/src/x.rs")


@pytest.mark.parametrize(
    ("path", "target", "resolution", "files"),
    [
        ("src/app/core.py", ".sub.leaf.name", "exact", "src/app/sub/leaf.py"),
        ("src/app/core.py", ".name", "exact", "src/app/__init__.py"),
        ("src/app/core.py", ".sub", "exact", "src/app/sub/__init__.py"),
        ("src/app/sub/leaf.py", "..core.f", "exact", "src/app/core.py"),
        ("src/app/core.py", "....above", "external", ""),
        ("src/app/core.py", "app.sub.*", "exact", "src/app/sub/__init__.py"),
        ("src/app/core.py", ".typed.T", "exact", "src/app/typed.pyi"),
        ("src/app/core.py", "app.fast.f", "exact", "src/app/fast.pyx"),
        ("src/app/core.py", "app.space.inner", "exact", "src/app/space/inner.py"),
        # `.made` is not a file: a name that a build creates is not its package. `six.moves` is a module in six.py.
        ("src/app/core.py", ".made.name", "external", ""),
        ("src/app/core.py", ".six.moves.x", "file", "src/app/six.py"),
        ("src/app/core.py", "app.plugins.foreign.x", "external", ""),
        ("tests/test_app.py", "six.moves.x", "external", ""),
        # The roots of the project: `src` next to pyproject.toml, and the directory itself.
        ("tests/test_app.py", "app.core", "exact", "src/app/core.py"),
        ("tests/unit/test_core.py", "support", "exact", "tests/support.py"),
        ("tests/test_app.py", "tools.run", "exact", "tools/run.py"),
        ("other/check.py", "thing", "exact", "other/python/thing/__init__.py"),
        ("other/check.py", "renamed.part.f", "exact", "other/mapped/part.py"),
        ("tests/test_app.py", "thing.x", "file", "other/python/thing/__init__.py"),
        # A single component names an installed module, unless a root of the project has it; never a test or an example.
        ("tests/test_app.py", "util.f", "external", ""),
        ("tests/test_app.py", "deep.util.f", "name", "lib/one/deep/util.py lib/two/deep/util.py"),
        ("tools/run.py", "requests.get", "external", ""),
        ("tools/run.py", "requests.api.get", "external", ""),
        ("examples/run.py", "requests.get", "exact", "examples/requests/__init__.py"),
        ("tests/test_app.py", "inside.part.f", "external", ""),
        ("tools/run.py", "help", "exact", "tools/help.py"),
        # A script's own directory precedes the standard library, but a module rarely hides it intentionally.
        ("tools/run.py", "logging", "file", "tools/logging.py"),
        ("tests/test_app.py", "logging", "external", ""),
        # `core` and `leaf` are not top-level modules, because their directory is a package.
        ("src/app/sub/leaf.py", "core", "external", ""),
        ("tools/run.py", "os.path", "external", ""),
    ],
)
def test_python_modules_resolve_below_roots(path: str, target: str, resolution: str, files: str) -> None:
    assert answer(PYTHON, path, "python", target) == (resolution, files)


@pytest.mark.parametrize(
    ("target", "resolution", "files"),
    [
        ("django.db.models.fields.Field", "file", "db/models/fields.py"),
        ("django.db.models", "file", "db/models/__init__.py"),
        ("django.apps.config", "file", "apps/config.py"),
        ("django.VERSION", "external", ""),
        ("jwt.db.x", "external", ""),
        ("os.db", "external", ""),
    ],
)
def test_root_package_resolves_without_its_name(target: str, resolution: str, files: str) -> None:
    assert answer(ROOT_PACKAGE, "db/models/fields.py", "python", target) == (resolution, files)


def test_root_package_resolves_by_the_project_name() -> None:
    named = ROOT_PACKAGE | {"pyproject.toml": '[project]\nname = "my-framework"\n'}
    assert answer(named, "apps/config.py", "python", "my_framework.db.x") == ("file", "db/__init__.py")
    assert answer(named, "apps/config.py", "python", "jwt.db.x") == ("external", "")


@pytest.mark.parametrize(
    ("path", "target", "resolution", "files"),
    [
        ("web/a.ts", "./b", "exact", "web/b.tsx"),
        ("web/a.ts", "./made.js", "exact", "web/made.ts"),
        ("web/a.ts", "./both", "exact", "web/both.ts"),
        ("web/old.js", "./both", "exact", "web/both.js"),
        ("web/a.ts", "./style.css?inline", "exact", "web/style.css"),
        ("web/b.tsx", "./dir", "exact", "web/dir/index.js"),
        ("web/b.tsx", "./main", "exact", "web/main/entry.js"),
        ("web/dir/index.js", "..", "external", ""),
        ("web/dir/index.js", "../data.json", "exact", "web/data.json"),
        ("web/a.ts", "../../../x", "external", ""),
        # tsconfig.json: the longest pattern wins; own `paths` replace inherited ones; `baseUrl`; `rootDirs`.
        ("web/a.ts", "~/lib/store", "exact", "web/src/lib/store.ts"),
        ("web/a.ts", "~/generic/one", "exact", "web/src/generic/one.ts"),
        ("web/a.ts", "exactly", "exact", "web/src/lib/store.ts"),
        ("web/a.ts", "@lib/store", "external", ""),
        ("web/a.ts", "src/lib/store", "exact", "web/src/lib/store.ts"),
        ("web/src/page.ts", "./view", "exact", "web/generated/view.ts"),
        ("app/x.ts", "@/y", "exact", "app/code/y.ts"),
        ("loop/z.ts", "mod", "exact", "loop/mod.ts"),
        # Packages: installed, of the workspace, by exports, and built files that represent sources.
        ("web/dir/index.js", "dep", "exact", "web/node_modules/dep/lib/main.js"),
        ("web/dir/index.js", "dep/extra", "exact", "web/node_modules/dep/extra.js"),
        ("packages/ui/src/button.tsx", "@acme/core", "exact", "packages/core/index.js"),
        ("packages/ui/src/button.tsx", "@acme/core/deep/b", "exact", "packages/core/deep/b.js"),
        ("packages/core/index.js", "@acme/ui/button", "file", "packages/ui/src/button.tsx"),
        ("packages/core/index.js", "@acme/ui/plain", "file", "packages/ui/plain.js"),
        ("packages/core/index.js", "@acme/ui", "file", "packages/ui/src/index.ts"),
        ("packages/core/index.js", "@acme/ui/src/internal/a", "external", ""),
        ("packages/ui/src/index.ts", "@acme/ui/button", "exact", "packages/ui/src/button.tsx"),
        ("packages/ui/src/index.ts", "#internal/a", "exact", "packages/ui/src/internal/a.ts"),
        ("packages/core/index.js", "alone", "file", "alone/index.js"),
        # Node has a built-in module of this name.
        ("packages/core/index.js", "events", "external", ""),
        ("web/a.ts", "react", "external", ""),
    ],
)
def test_script_imports_follow_the_compiler_and_packages(path: str, target: str, resolution: str, files: str) -> None:
    language = {"tsx": "tsx", "ts": "typescript", "js": "javascript"}[path.rpartition(".")[2]]
    assert answer(SCRIPT, path, language, target) == (resolution, files)


@pytest.mark.parametrize(
    ("files", "path", "target", "resolution", "paths"),
    [
        (C, "c/main.c", "main.h", "exact", "c/main.h"),
        (C, "c/main.c", "./main.h", "exact", "c/main.h"),
        # The edge does not tell quotes from brackets, so this may be the compiler's own header.
        (C, "c/main.c", "string.h", "file", "c/string.h"),
        (C, "far/one/z.h", "string.h", "external", ""),
        (C, "c/main.h", "main.h", "external", ""),
        (C, "arch/x.c", "time.h", "file", "include/time.h"),
        (C, "c/main.c", "y.h", "file", "c/inc/y.h"),
        (C, "c/main.c", "api/a.h", "file", "c/include/api/a.h"),
        (C, "arch/x.c", "api/a.h", "file", "include/api/a.h"),
        (C, "c/main.c", "deep/x.h", "file", "c/lib/deep/x.h"),
        (C, "c/main.c", "z.h", "name", "far/one/z.h far/two/z.h"),
        (C, "c/main.c", "only.h", "file", "far/only.h"),
        (C, "c/main.c", "/etc/only.h", "external", ""),
        (C, "c/main.c", "openssl/ssl.h", "external", ""),
        (COMPILED, "src/a.c", "config.h", "exact", "third/config.h"),
        (COMPILED, "src/b.h", "config.h", "file", "third/config.h"),
    ],
)
def test_includes_resolve_beside_the_file_or_on_include_paths(
    files: Files, path: str, target: str, resolution: str, paths: str
) -> None:
    assert answer(files, path, "c", target) == (resolution, paths)


@pytest.mark.parametrize(
    ("files", "path", "target", "resolution", "paths"),
    [
        (GO, "main.go", "acme.org/x/store", "exact", "store/disk.go store/store.go"),
        (GO, "cmd/run/main.go", "acme.org/x", "exact", "main.go"),
        (GO, "main.go", "acme.org/x/gone", "external", ""),
        (GO, "main.go", "acme.org/x/nested/pkg", "file", "nested/pkg/n.go"),
        (GO, "nested/pkg/n.go", "acme.org/x/nested/pkg", "exact", "nested/pkg/n.go"),
        (GO, "main.go", "github.com/l/l", "exact", "local/l.go"),
        (GO, "main.go", "github.com/v/w", "exact", "vendor/github.com/v/w/w.go"),
        (GO, "main.go", "github.com/out/side", "external", ""),
        (GO, "main.go", "github.com/other/store", "external", ""),
        (GO, "main.go", "rpc", "external", ""),
        (GO_WORK, "one/a.go", "two.org/two/sub", "exact", "two/sub/b.go"),
        (GO_PATH, "src/github.com/a/b/main.go", "github.com/c/d/store", "file", "src/github.com/c/d/store/t.go"),
        (GO_PATH, "src/github.com/a/b/main.go", "store", "external", ""),
    ],
)
def test_go_packages_resolve_within_modules(files: Files, path: str, target: str, resolution: str, paths: str) -> None:
    assert answer(files, path, "go", target) == (resolution, paths)


_MAIN = "m/src/main/java/org/acme"


@pytest.mark.parametrize(
    ("path", "target", "resolution", "files"),
    [
        (f"{_MAIN}/Other.java", "org.acme.Thing.Inner", "exact", f"{_MAIN}/Thing.java"),
        ("m/src/test/java/org/acme/ThingTest.java", "org.acme.Thing", "exact", f"{_MAIN}/Thing.java"),
        ("m/src/test/java/org/acme/x/Y.java", "org.acme.Thing.method", "exact", f"{_MAIN}/Thing.java"),
        (f"{_MAIN}/Other.java", "org.acme.*", "exact", f"{_MAIN}/Other.java {_MAIN}/Thing.java"),
        (f"{_MAIN}/Other.java", "org.acme.Thing.*", "exact", f"{_MAIN}/Thing.java"),
        ("n/src/main/java/org/other/Use.java", "org.acme.Thing", "file", f"{_MAIN}/Thing.java"),
        ("android/b/Use.java", "org.dup.Dup", "file", "android/a/src/org/dup/Dup.java"),
        (f"{_MAIN}/Other.java", "org.dup.Dup", "name", "a/src/org/dup/Dup.java android/a/src/org/dup/Dup.java"),
        (f"{_MAIN}/Other.java", "java.util.List", "external", ""),
        ("k/org/app/Main.kt", "org.kot.Big", "exact", "k/org/kot/Big.kt"),
        # A function may be in any file of its package.
        ("k/org/app/Main.kt", "org.kot.helper", "name", "k/org/kot/Big.kt k/org/kot/extensions.kt"),
    ],
)
def test_java_and_kotlin_packages_resolve_to_directories(path: str, target: str, resolution: str, files: str) -> None:
    assert answer(JAVA, path, "kotlin" if path.endswith(".kt") else "java", target) == (resolution, files)


@pytest.mark.parametrize(
    ("path", "target", "resolution", "files"),
    [
        ("r/src/net/tcp.rs", "crate::text::Line", "exact", "r/src/text.rs"),
        # The root is the file that declares `mod net;` or `mod cli;`.
        ("r/src/net/tcp.rs", "crate::Error", "exact", "r/src/lib.rs"),
        ("r/src/cli/args.rs", "crate::Error", "exact", "r/src/main.rs"),
        ("r/src/os/unix.rs", "crate::Error", "name", "r/src/lib.rs r/src/main.rs"),
        ("r/src/net/mod.rs", "self::tcp", "exact", "r/src/net/tcp.rs"),
        ("r/src/net/mod.rs", "super::text", "exact", "r/src/text.rs"),
        ("r/src/net/tcp.rs", "super::Listener", "exact", "r/src/net/mod.rs"),
        ("r/src/net/tcp.rs", "super::super::text::*", "exact", "r/src/text.rs"),
        ("r/src/net/tcp.rs", "self::*", "exact", "r/src/net/tcp.rs"),
        ("r/src/cli.rs", "self::args", "exact", "r/src/cli/args.rs"),
        ("r/src/lib.rs", "net::tcp::Socket", "exact", "r/src/net/tcp.rs"),
        ("r/src/lib.rs", "os/unix.rs", "exact", "r/src/os/unix.rs"),
        # Every crate has its root: binaries, tests, build scripts.
        ("r/src/bin/tool.rs", "the_r::text::Line", "exact", "r/src/text.rs"),
        ("r/src/bin/big/part.rs", "crate::x", "exact", "r/src/bin/big/main.rs"),
        ("r/tests/all.rs", "self::common", "exact", "r/tests/common/mod.rs"),
        ("r/build.rs", "crate::x", "exact", "r/build.rs"),
        # Crates by manifest: of the workspace, renamed, patched, by name alone, of the registry.
        ("r/src/lib.rs", "my_crate::shapes::Circle", "exact", "my-crate/src/shapes.rs"),
        ("r/src/lib.rs", "::my_crate::f", "exact", "my-crate/src/lib.rs"),
        ("r/src/lib.rs", "renamed::part::P", "exact", "odd/source/part.rs"),
        ("r/src/lib.rs", "spare::f", "exact", "spare/src/lib.rs"),
        ("r/src/lib.rs", "old::a::A", "file", "old/src/a.rs"),
        ("r/src/lib.rs", "serde::Serialize", "external", ""),
        ("r/src/lib.rs", "std::fmt", "external", ""),
        ("old/src/a.rs", "b::B", "exact", "old/src/b.rs"),
    ],
)
def test_rust_paths_resolve_to_modules_of_crates(path: str, target: str, resolution: str, files: str) -> None:
    assert answer(RUST, path, "rust", target) == (resolution, files)


def test_rust_without_manifests_resolves_by_directories() -> None:
    assert answer(RUST_BARE, "r/src/net.rs", "rust", "crate::f") == ("exact", "r/src/lib.rs")
    assert answer(RUST_BARE, "r/src/net.rs", "rust", "my_crate::x::X") == ("file", "my-crate/src/x.rs")


HOSTILE = {
    "tsconfig.json": [
        '{"extends": ["./tsconfig.json", "./a/../tsconfig.json"], "compilerOptions": {"baseUrl": "../../.."}}',
        '{"compilerOptions": {"paths": {"*": "x", "y*": [1, "../../../../etc/*"]}, "rootDirs": [[]], "baseUrl": 7}}',
        "[" * 100_000,
        '"' + '\\"' * 500_000,
        "/*" * 500_000,
        '{"compilerOptions": {"paths": ' + '{"a":' * 10_000,
    ],
    "package.json": [
        '{"name": ["a"], "exports": {"./*": [{"a": {"b": [[["./../../../x"]]]}}]}, "imports": 3, "workspaces": [[]]}',
        '{"name": "y", "workspaces": ["' + "**/" * 2_000 + '*"], "exports": ' + '{"a":' * 500 + "1" + "}" * 500 + "}",
    ],
    "pyproject.toml": [
        "[tool.setuptools]\npackages = 3\npackage-dir = {'' = '../..'}\n[tool.poetry]\npackages = [{from = 3}]",
        "a." * 200_000 + "b = 1",
        "[" * 100_000,
    ],
    "Cargo.toml": [
        "[package]\nname = 3\n[lib]\npath = '../../../x'\n[dependencies]\ny = []\nx = {path = '/etc'}\n[[bin]]"
    ],
    "go.mod": ["module\nreplace => ../../..\nreplace y => ./..\n(\n)\nrequire ("],
    "go.work": ["use ../..\nuse ./\nuse ("],
    "composer.json": ['{"autoload": {"psr-4": {"": [3], "y": "../../.."}}}'],
    "compile_commands.json": [
        '[{"directory": "/", "file": "../../a", "command": "cc -I \'"}]',
        '[{"directory": "/x", "file": "a.c", "arguments": ["-I", "-I/../..", "-I"]}, {"file": "/x/y.c"}]',
        "{}",
    ],
    "setup.py": ["find_packages(" * 10_000 + "'../../..'"],
}
IMPORTING_FILES = {
    "python": "a.py",
    "typescript": "a.ts",
    "rust": "a.rs",
    "go": "a.go",
    "c": "a.c",
    "php": "a.php",
    "java": "a.java",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_configuration_file_resolves_nothing_outside(name: str) -> None:
    paths = {name, "y.ts", "y/index.js", "y/package.json", *IMPORTING_FILES.values()}
    for content in HOSTILE[name]:
        found = project_resolver(PathTree(paths, {name: content.encode()}.get))
        for language, path in IMPORTING_FILES.items():
            for target in (
                "y",
                "y/z",
                "../y",
                "#y",
                "a",
                "y.z",
                "y::z",
                "crate::y",
                "y\\z",
                "./y",
                "",
                ".",
                "..",
                "*",
                "::",
            ):
                assert set(found.resolve(path, language, target).paths) <= paths


def test_hostile_patterns_resolve_in_time() -> None:
    """Naively, each `**` would multiply the time by the depth of the path, and each import would try every pattern."""
    deep = "/".join(["a"] * 60)
    globs = ", ".join('"' + "**/a/" * count + 'b"' for count in range(1, 60))
    patterns = ", ".join(f'"{number}*": ["x"]' for number in range(20_000))
    patterned = resolver(
        {
            "package.json": f'{{"workspaces": [{globs}], "dependencies": {{"deep": "1"}}}}',
            "tsconfig.json": f'{{"compilerOptions": {{"paths": {{{patterns}, "19999": ["./a.ts"]}}}}}}',
            f"{deep}/package.json": '{"name": "deep"}',
            f"{deep}/index.js": "",
            "a.ts": "",
        }
    )
    assert patterned.resolve("a.ts", "typescript", "deep").resolution == "file"
    assert patterned.resolve("a.ts", "typescript", "19999").paths == ("a.ts",)
    for number in range(300):
        assert patterned.resolve("a.ts", "typescript", f"y{number}").resolution == "external"


def test_oversized_configuration_file_is_ignored() -> None:
    content = b'{"compilerOptions": {"baseUrl": "."}}'
    for padding, expected in ((0, ("b.ts",)), (DOCUMENT_BYTES_MAX, ())):
        found = project_resolver(
            PathTree(["tsconfig.json", "b.ts", "c/a.ts"], {"tsconfig.json": content + b" " * padding}.get)
        )
        assert found.resolve("c/a.ts", "typescript", "b").paths == expected
