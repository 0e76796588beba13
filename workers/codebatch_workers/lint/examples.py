"""An example of a finding for each built-in rule that is not a rule of ruff."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLE_BY_CODE: Mapping[str, str] = {
    "bidi-control": 'if (role != "user") { // \\u202e } begin admins only\n(`\\u202e` stands for the character U+202E)',
    "byte-order-mark": "\\ufeffimport os",
    "huge-line": "const data = [0, 1, 2, …   (10,000 bytes and more without a line end)",
    "invalid-encoding": "# Gr\\xfc\\xdfe   (Latin-1 in a file that is read as UTF-8)",
    "lone-carriage-return": "print('first')\\rprint('second')",
    "merge-conflict": "<<<<<<< HEAD\nlimit = 10\n=======\nlimit = 20\n>>>>>>> topic",
    "missing-final-newline": "return 0   (the file ends here, without a line end)",
    "mixed-indentation": "    \tindented by blanks, then by a tab",
    "mixed-line-endings": "first line\\r\\n\nsecond line\\n",
    "nul-character": 'name = "a\\0b"   (with the character itself)',
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\n…\n-----END RSA PRIVATE KEY-----",
    "shadowed-name": "const item = 1;\nfor (const item of items) { use(item); }",
    "shebang-not-executable": "#!/usr/bin/env python3   (in a file that is not executable)",
    "suppression-comment": "import os  # noqa: F401  # used by a plugin",
    "suppression-date": "# codebatch: ignore[F401] until January",
    "suppression-until": "# codebatch: ignore[F401] until 2027-01-31 the plugin is not yet moved",
    "suppression-without-reason": "import os  # noqa: F401",
    "todo-comment": "# TODO: ask again later",
    "trailing-whitespace": "return 0   (and blanks behind it)",
    "unused-import": "import { a, b } from './c';\nuse(a);",
    "unused-variable": "const size = measure();\nreturn 0;",
}
