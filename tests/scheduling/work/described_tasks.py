"""Task lists in the style of different authors, and the edges that their texts express, as judged by a reader.

Each constant `…_EDGES` has all edges of a list. Any other inferred edge is wrong.
"""

# ruff: noqa: E501  # The texts have the lines that their authors would write.

from __future__ import annotations

from codebatch.scheduling.inference.edges import InferenceTask

WEB_SHOP = [
    InferenceTask("001-schema", "Add the users table", "Create migrations/0007_users.sql with id, email, password_hash.\n"
              "Use PostgreSQL 15.3. See https://example.org/docs/schema.md#after-all for the naming rules."),
    InferenceTask("002-model", "User model", "Add a `User` class in app/models/user.py that maps the table of "
              "migrations/0007_users.sql."),
    InferenceTask("003-login", "Login form", "After 002-model is done, add app/login.py with a form and a POST handler.\n\n"
              "Validate e-mail addresses (bob@example.com must pass)."),
    InferenceTask("004-logout", "Logout", "Add a logout route to app/login.py. After all, users want to leave, too."),
    InferenceTask("005-docs", "Document login", "Write docs/login.md. Mention that it needs Python 3.11 and Node.js.\n"
              "See also app/settings.py for the defaults."),
    InferenceTask("006-rate-limit", "Rate limit", "Limit login attempts to 5 a minute. This depends on task 3.\n"
              "Once in a while people forget passwords; do not lock them out."),
    InferenceTask("007-ci", "CI", "Create .github/workflows/ci.yml which runs pytest on 3.10, 3.11 and 3.12 after each push."),
    InferenceTask("008-release", "Release notes", "Write CHANGELOG.md. Needs #6 and #7 to be merged."),
]  # fmt: skip
WEB_SHOP_EDGES = {
    ("002-model", "001-schema"), ("003-login", "002-model"), ("004-logout", "003-login"), ("006-rate-limit", "003-login"),
    ("008-release", "006-rate-limit"), ("008-release", "007-ci"),
}  # fmt: skip

REFACTORING = [
    InferenceTask("split-config", "Split config.py", "`src/core/config.py` has 1,900 lines. Move the parsing into a new module "
              "src/core/config_parser.py. Don't touch src/core/cli.py, that's somebody else's.\n\n```python\n"
              "from core.config import load  # after split-types\n```"),
    InferenceTask("type-hints", "Type hints", "Add type hints in src/core/config.py and src/core/cache.py. mypy --strict must pass."),
    InferenceTask("cache-ttl", "TTL for the cache", "Fix the TTL bug in src/core/cache.py (issue #2): entries live forever "
              "after a restart. Like in src/web/session.py, use time.monotonic()."),
    InferenceTask("session-cleanup", "Session cleanup", "Refactor src/web/session.py. It does not depend on cache-ttl."),
    InferenceTask("drop-py38", "Drop 3.8", "Remove everything that is only there for Python 3.8. When in doubt, ask."),
    InferenceTask("bench", "Benchmarks", "Write bench/run.py that times `load()` and `dump()`. Compare with src/core/cache.py."),
    InferenceTask("bench-ci", "Run benchmarks nightly", "Builds on \"Benchmarks\": call bench/run.py from cron. Requires drop-py38."),
    InferenceTask("lint", "Lint", "Run ruff, fix what it finds. Needs no other task."),
    InferenceTask("test", "More tests", "Coverage needs to go up to 90 %. Write tests for src/core/config.py; requires pytest 8.2."),
]  # fmt: skip
REFACTORING_EDGES = {
    ("type-hints", "split-config"), ("cache-ttl", "type-hints"), ("bench-ci", "bench"), ("bench-ci", "drop-py38"),
}  # fmt: skip

PLAN = [
    InferenceTask("parser", "Parser", "Write `lexer.py` and `parser.py`. No dependencies, see also grammar.md."),
    InferenceTask("evaluator", "Evaluator", "Depends on parser. Evaluate the tree that `parser.py` returns."),
    InferenceTask("stdlib", "Standard library", "Blocked by: evaluator\n\n- strings\n- lists\n- files (read only, e.g. a.txt)"),
    InferenceTask("repl", "REPL", "- [ ] prompt\n- [ ] history in ~/.repl_history\n\nWait for the evaluator, then wire it up in "
              "main.py."),
    InferenceTask("errors", "Error messages", "Errors must say line and column, and name the file. Update parser.py accordingly."),
    InferenceTask("fuzz", "Fuzzing", "Add fuzz/target.py. Once the parser is done, run it for an hour."),
    InferenceTask("playground", "Playground", "A web page. Independent of repl; needs evaluator.py compiled to wasm.\n"
              "Host it on example.com/play.html."),
    InferenceTask("docs", "Docs", "Documentation needs examples. Write docs/index.md after task 3 and 4."),
]  # fmt: skip
PLAN_EDGES = {
    ("evaluator", "parser"), ("stdlib", "evaluator"), ("repl", "evaluator"), ("errors", "parser"), ("fuzz", "parser"),
    ("docs", "stdlib"), ("docs", "repl"),
}  # fmt: skip

OPERATIONS = [
    InferenceTask("t1", "Provision the staging database", "terraform apply in infra/db.tf, size db.t3.medium, v15.4."),
    InferenceTask("t2", "Restore last night's dump", "As soon as \u201cProvision the staging database\u201d has finished, restore "
              "backups/nightly.dump and write the row counts to out/rows.json."),
    InferenceTask("t3", "Anonymise customers", "Waits for t2. Never run it on production!"),
    InferenceTask("t4", "Compare row counts", "Read out/rows.json, fail where a table is empty."),
    InferenceTask("t5", "Smoke test", "Do not start until anonymise customers is done. curl https://staging.example.com/t1/health."),
    InferenceTask("t6", "Report", "Mail ops@example.com a summary. It is fine to run this before t5; no need to wait for t4."),
    InferenceTask("t7", "Update infra/db.tf", "Change the instance class in infra/db.tf to db.t3.large, when t6 is complete."),
    InferenceTask("t8", "Tear down", "After t5, t6 and t7, destroy all of it. Unlike t1 this takes a minute."),
]  # fmt: skip
OPERATIONS_EDGES = {
    ("t2", "t1"), ("t3", "t2"), ("t4", "t2"), ("t5", "t3"), ("t7", "t6"), ("t8", "t5"), ("t8", "t6"), ("t8", "t7"),
}  # fmt: skip

FRONTEND = [
    InferenceTask("design-tokens", "Design tokens", "Create src/theme/tokens.ts. Colours come from Figma, not from src/old/colors.ts."),
    InferenceTask("button", "Button component", "New component src/components/Button.tsx; it uses src/theme/tokens.ts.\n"
              "React 18.2.0, no Next.js."),
    InferenceTask("dialog", "Dialog", "Build src/components/Dialog.tsx similar to src/components/Button.tsx. Requires design-tokens."),
    InferenceTask("i18n", "Translations", "Extract all strings to src/i18n/en.json. Afterwards nothing in src/components/Button.tsx "
              "may be hard-coded."),
    InferenceTask("a11y", "Accessibility", "Once button and dialog are there, run axe. After fixing, run it again."),
    InferenceTask("storybook", "Storybook", "Add stories. The button needs a story for each variant. Version 7.6."),
    InferenceTask("e2e", "End-to-end tests", "Create e2e/dialog.spec.ts after dialog has been merged."),
    InferenceTask("cleanup", "Clean up", "Delete src/old/colors.ts; nobody needs it. Prerequisite: e2e."),
]  # fmt: skip
FRONTEND_EDGES = {
    ("button", "design-tokens"), ("dialog", "design-tokens"), ("a11y", "button"), ("a11y", "dialog"), ("e2e", "dialog"),
    ("cleanup", "e2e"),
}  # fmt: skip

LISTS = {
    "web shop": (WEB_SHOP, WEB_SHOP_EDGES),
    "refactoring": (REFACTORING, REFACTORING_EDGES),
    "plan": (PLAN, PLAN_EDGES),
    "operations": (OPERATIONS, OPERATIONS_EDGES),
    "frontend": (FRONTEND, FRONTEND_EDGES),
}

API = [
    InferenceTask(
        "API-1", "Pagination", "GET /items must take ?page= and ?size=. Edit api/items.go and api/items_test.go."
    ),
    InferenceTask(
        "API-2",
        "Sorting",
        "GET /items?sort=name. We'll need to touch api/items.go again, so start when API-1 is merged.",
    ),
    InferenceTask(
        "API-3",
        "OpenAPI document",
        "Generate openapi/spec.yaml from the handlers. Should include API-1 and API-2, ideally.",
    ),
    InferenceTask(
        "API-4", "Client", "Regenerate client/ from openapi/spec.yaml (v3.1.0). After that, bump the version to 2.4.0."
    ),
    InferenceTask("API-5", "Changelog", "Update CHANGELOG.md with what API-1..API-4 did. Requires approval by legal."),
    InferenceTask(
        "API-6", "Deprecate v1", "Do not remove anything yet; after 2026-01-01 we will. Add a header in api/v1.go."
    ),
    InferenceTask(
        "API-7", "Load test", "k6 script in load/items.js. Can run after API-2 has landed, or once staging is back."
    ),
]
API_EDGES = {("API-2", "API-1"), ("API-4", "API-3"), ("API-7", "API-2")}

MODEL = [
    InferenceTask(
        "data-import",
        "Import",
        "Write scripts/import.py which loads data/raw.csv into sqlite. Then after importing, vacuum.",
    ),
    InferenceTask(
        "data-clean", "Clean the data", "Needs data-import. Drop rows where age < 0; write the rest to data/clean.csv."
    ),
    InferenceTask(
        "features",
        "Features",
        "From data/clean.csv compute the features listed in notes/features.md; save to data/features.parquet.",
    ),
    InferenceTask(
        "train", "Train", "Train on data/features.parquet with seed 42. When the loss stops falling for 3 epochs, stop."
    ),
    InferenceTask("evaluate", "Evaluate", "Evaluate after train. Report F1. Needs a GPU."),
    InferenceTask(
        "report",
        "Report",
        "Make report/report.md: what evaluate said, and plots. Depends on evaluate and features being done.",
    ),
    InferenceTask(
        "notebook", "Notebook", "An exploratory notebook nb/explore.ipynb, for whoever wants to look at data/clean.csv."
    ),
]
MODEL_EDGES = {
    ("data-clean", "data-import"),
    ("features", "data-clean"),
    ("train", "features"),
    ("evaluate", "train"),
    ("report", "evaluate"),
    ("report", "features"),
    ("notebook", "data-clean"),
}

KERNEL = [
    InferenceTask("1", "Kernel config", "Enable CONFIG_FOO in arch/x86/defconfig, see Documentation/foo.rst"),
    InferenceTask("2", "Driver", "Add drivers/foo/foo.c and drivers/foo/Kconfig; depends on FOO_CORE in Kconfig."),
    InferenceTask(
        "3", "Selftests", "Add tools/testing/foo.sh. The test requires 2 CPUs and needs root. Run after boot."
    ),
    InferenceTask("4", "MAINTAINERS", "Add an entry to MAINTAINERS for drivers/foo/foo.c, after 80 columns wrap."),
    InferenceTask(
        "5",
        "Cover letter",
        "Once tasks 2, 3 and 4 are in place write the cover letter. Version 5 after v4 was rejected.",
    ),
    InferenceTask("6", "Fix review", "Fix drivers/foo/foo.c as asked in mail <a@b.example>. Blocked by #5."),
]
KERNEL_EDGES = {("4", "2"), ("5", "2"), ("5", "3"), ("5", "4"), ("6", "5"), ("6", "2")}

HELD_OUT = {"api": (API, API_EDGES), "model": (MODEL, MODEL_EDGES), "kernel": (KERNEL, KERNEL_EDGES)}
"""Lists that were written before the rules were tried on them, by an author who knew the rules.

The rules were corrected once afterwards.
"""
