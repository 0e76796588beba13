"""Mentions of files by path or module name: which texts name a file, and where in a text they count."""

# Each mention is one line.

from __future__ import annotations

import pytest

from codebatch.query.answers.path_mentions import file_names, find_mentions

# The file, the file with the text, its language, and the text. A text ends with the number of lines that name the file.
MENTIONS = [
    ("w.js", "a.js", "javascript", "new Worker(new URL('./w.js', import.meta.url));", 1),
    ("src/w.js", "src/a.js", "javascript", "navigator.serviceWorker.register('/w.js');", 1),
    ("src/w.js", "src/a.js", "javascript", "require.resolve('./w');", 1),
    ("src/w.js", "src/a.js", "javascript", "jest.mock('./w');", 1),
    ("src/w.js", "lib/a.js", "javascript", "jest.mock('./w');", 0),
    ("src/w.js", "lib/a.js", "javascript", "jest.mock('../src/w');", 1),
    ("src/w.ts", "src/a.ts", "typescript", "await import(`./w.js`);", 1),
    ("src/w.ts", "src/a.ts", "typescript", "// see ./w.ts", 0),
    ("src/w.ts", "src/a.ts", "typescript", "const w = other.w;", 0),
    ("src/w.ts", "src/a.ts", "typescript", "const x = 'w';", 0),
    ("src/components/w/index.ts", "src/a.ts", "typescript", "lazy('./components/w');", 1),
    ("src/components/w.ts", "src/a.ts", "typescript", "load('@/components/w');", 1),
    ("a/b/mod.py", "c.py", "python", "importlib.import_module('a.b.mod')", 1),
    ("a/b/mod.py", "c.py", "python", "TASKS = ['a.b.mod']", 1),
    ("a/b/mod.py", "c.py", "python", "HANDLER = 'a.b.mod:main'", 1),
    ("a/b/mod.py", "c.py", "python", "HANDLER = 'a.b.mod.main'", 1),
    ("a/b/mod.py", "c.py", "python", "HANDLER = 'x.mod.main'", 0),
    ("a/b/mod.py", "c.py", "python", "# a.b.mod", 0),
    ("a/b/mod.py", "c.py", "python", "x = a.b.mod", 0),
    ("mod.py", "c.py", "python", "__import__('mod')", 1),
    ("mod.py", "c.py", "python", "x = 'mod'", 0),
    ("a/b/__init__.py", "c.py", "python", "INSTALLED = ['a.b']", 1),
    ("tools/gen.py", "c.py", "python", "os.system('python tools/gen.py --all')", 1),
    ("tools/gen.py", "c.py", "python", "subprocess.run(['python', 'tools/gen.py'])", 1),
    ("tools/gen.py", "Makefile", "make", "\tpython tools/gen.py > out", 1),
    ("tools/gen.py", "x.yml", "yaml", "run: python tools/gen.py", 1),
    ("tools/gen.py", "x.yml", "yaml", "# run: python tools/gen.py", 0),
    ("tools/gen.py", "x.yml", "yaml", "run: python other/gen.py", 1),
    ("pkg/cli.py", "pyproject.toml", "toml", 'x = "pkg.cli:main"', 1),
    ("lib/w.js", "package.json", "json", '{"main": "lib/w.js"}', 1),
    ("lib/w.js", "package.json", "json", '{"main": "./lib/w"}', 1),
    ("lib/w.js", "package.json", "json", '{"build": "node lib/w.js --all"}', 1),
    ("lib/w.js", "package.json", "json", '{"w": "1.0"}', 0),
    ("web/w.js", "web/index.html", "html", '<script src="w.js?v=1"></script>', 1),
    ("web/w.css", "web/index.html", "html", '<link rel=stylesheet href=w.css>', 1),
    ("web/w.html", "web/a.css", "css", "a { color: red }", 0),
    ("web/w.css", "web/a.css", "css", "@import url(w.css);", 1),
    ("web/w.scss", "web/a.js", "javascript", "require('./w.css');", 1),
    ("src/w.rs", "src/a.rs", "rust", 'include_str!("w.rs");', 1),
    ("sql/w.sql", "src/a.rs", "rust", 'include_str!("../sql/w.sql");', 1),
    ("src/w.c", "CMakeLists.txt", "cmake", "add_executable(x src/w.c)", 1),
    ("src/w.c", "src/a.c", "c", '#include "w.c"', 1),
    ("src/w.c", "src/a.c", "c", '#include "w.h"', 0),
    ("lib/w.sh", "run.sh", "bash", "source lib/w.sh", 1),
    ("lib/w.rb", "a.rb", "ruby", "autoload :W, 'lib/w'", 1),
    ("w.py", "README.md", "markdown", "Run `w.py`.", 0),
    ("w.py", "a.py", "python", "open('https://example.org/w.py')", 0),
    ("views/w.html", "a.py", "python", "render('w.html')", 1),
]  # fmt: skip


@pytest.mark.parametrize(("path", "source", "language", "text", "lines"), MENTIONS)
def test_text_names_a_file(path: str, source: str, language: str, text: str, lines: int) -> None:
    names = file_names(path, is_unique=True)
    assert len(list(find_mentions(text.encode(), names, source, language))) == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [("'lib/w.js'", 1), ("'./w.js'", 0), ("'w.js'", 1), ("'dist/w.js'", 0), ("'../lib/w.js'", 1), ("'/x/lib/w.js'", 0)],
)
def test_file_name_that_several_files_have_needs_fitting_directories(text: str, lines: int) -> None:
    names = file_names("lib/w.js", is_unique=False)
    assert len(list(find_mentions(f"load({text});".encode(), names, "src/a.js", "javascript"))) == lines


def test_line_counts_once_and_lines_are_numbered() -> None:
    names = file_names("w.js", is_unique=True)
    text = b"x\nload('w.js', 'w.js')\n\nload('w.js')\n"
    assert list(find_mentions(text, names, "a.js", "javascript")) == [2, 4]
