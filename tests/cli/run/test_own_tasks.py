"""Custom tasks of the current project, defined by a few lines of Python and of configuration."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from codebatch.model.record import Diagnostic
from codebatch.testing.tasks import run_task
from codebatch_workers.examples import banned_words, layers
from tests.support.command_line import CommandLine, set_apart, write

COUNT = """
from codebatch.model.record import Metric
def task(file):
    path, path_b64 = file.path_fields
    yield Metric(path=path, path_b64=path_b64, metric="words", value=len(file.utf8.split()))
"""
SETTINGS = "[tasks.words]\npython = 'tools/words.py:task'\n"


INVALID_RECORDS = """
import hashlib
from codebatch.model.record import Ast, Failure, FileChange, Metric
from codebatch_workers.api import SourceFile
OWN = hashlib.sha256(b"one two\\n").hexdigest()
def proposed(after, path="a.txt", before=OWN):
    return FileChange(path=path, before=before, after=after, added=0, removed=0, executable=True)
"""


def project(codebatch: CommandLine, code: str = COUNT, settings: str = SETTINGS) -> None:
    """Configure a custom task, and make a project `src` to run it on."""
    write_project(codebatch.directory, code, settings)
    set_apart(codebatch, "src")


def write_project(root: Path, code: str, settings: str = SETTINGS) -> None:
    write(root / "codebatch.toml", settings)
    write(root / "tools" / "words.py", code)
    write(root / "src" / "a.txt", "one two\n")


def test_custom_function_is_executed_for_every_file(codebatch: CommandLine) -> None:
    project(codebatch)
    first = codebatch("run", "src", "-j", "2", "--json").json
    assert codebatch("query", "outputs", "--task", "words", "--json").records == [
        {"kind": "metric", "path": "a.txt", "metric": "words", "value": 2}
    ]
    assert codebatch("run", "src", "--json").json["action"] == "up to date"
    write(codebatch.directory / "tools" / "words.py", COUNT.replace("split()", "split()) + len('x'"))
    again = codebatch("run", "src", "--json").json
    assert again["batch_id"] != first["batch_id"]
    assert codebatch("query", "outputs", "--task", "words", "--json").records[0]["value"] == 3


def test_bundled_file_task_example_works_as_documented(codebatch: CommandLine) -> None:
    settings = "[tasks.banned-words]\npython = 'tools/banned_words.py:task'\nwords = ['two']\n"
    project(codebatch, settings=settings)
    shutil.copy(banned_words.__file__, codebatch.directory / "tools")
    write(codebatch.directory / "src" / "b.py", "s = 'a𐐀b'  # two\n")
    codebatch("run", "src")
    assert codebatch("query", "diagnostics", "--code", "banned-word").lines == [
        "a.txt:1:5: warning banned-word `two` [banned-words]",
        "b.py:1:14: warning banned-word `two` [banned-words]",
    ]
    (codebatch.directory / "codebatch.toml").write_text(settings.replace("words = ['two']", "words = [1]"))
    assert "Expected `str`, got `int`" in codebatch("run", "src", "--json", status=2).error["message"]


def test_failure_of_a_function_affects_only_its_file_and_task(codebatch: CommandLine) -> None:
    project(codebatch, code="def task(file):\n    if file.path == b'b.txt': return [1]\n    return []\n")
    write(codebatch.directory / "src" / "b.txt", "b")
    ran = codebatch("run", "src", "--json", status=3).json
    assert (ran["success"], ran["error"]) == (False, "1 of 12 results failed")
    assert (ran["tasks_completed"], ran["tasks_failed"]) == (6, 1)
    assert (ran["shards_completed"], ran["shards_failed"]) == (6, 1)
    status = codebatch("status", "--json").json
    assert (status["failed_shards"], status["done_shards"]) == (1, status["total_shards"])
    assert {row["task_id"]: row["shards_failed"] for row in status["tasks"]}["words"] == 1
    assert codebatch("query", "outputs", "--kind", "failure", "--json").records == [
        {"kind": "failure", "path": "b.txt", "task": "words", "reason": "exception"}
    ]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            "Metric(path='b.txt', metric='m', value=1)",
            'the record belongs to another file: {"kind":"metric","path":"b.txt"',
        ),
        ("Metric(path='/etc/passwd', metric='m', value=1)", "the record belongs to another file"),
        ("Failure(path='a.txt', task='parse', reason='crash')", 'returning a failure: {"kind":"failure"'),
        ("Metric(path='a.txt', metric='m', value='x')", "Expected `int`, got `str`"),
        ("Metric(metric='m', value=1)", "the record belongs to another file"),
        (
            f"Ast(path='a.txt', object='{'0' * 64}', format='f')",
            "the record refers to an object that is not in the store",
        ),
        ("Ast(path='a.txt', object='../x', format='f')", "the record refers to an object that is not in the store"),
        (f"proposed('{'0' * 64}')", "the record refers to an object that is not in the store"),
        ("proposed(OWN, before='1' * 64)", "the record changes another content than that of the file"),
        ("proposed(OWN, path='b.txt')", "the record belongs to another file"),
        ("SourceFile(b'b.txt', b'', False, {}).change(b'x')", "the record belongs to another file"),
        ("file.change(None); yield proposed(OWN)", "a task can propose one change of a file, not several"),
        ("file.change([])", "TypeError: the new content must be bytes, str or None, not list"),
    ],
)
def test_invalid_record_fails_the_task_for_its_file(codebatch: CommandLine, given: str, problem: str) -> None:
    project(codebatch, code=f"{INVALID_RECORDS}def task(file): yield {given}\n")
    assert codebatch("run", "src", "--json", status=3).json["failures"] == 1
    (row,) = codebatch("errors", "--json").records
    assert (row["path"], row["task"], row["reason"]) == ("a.txt", "words", "exception")
    assert problem in row["evidence"]


def test_run_of_one_task_succeeds_unless_results_failed(codebatch: CommandLine) -> None:
    project(codebatch, code="def task(file): return [1]\n")
    snapshot = codebatch("snapshot", "src", "--json").json["snapshot_id"]
    codebatch("batch", "init", "--snapshot", snapshot)
    ran = codebatch("run", "--batch", "latest", "--task", "parse", "--json").json
    assert (ran["success"], ran["error"], ran["failures"]) == (True, None, 0)
    ran = codebatch("run", "--batch", "latest", "--task", "words", "--json", status=3).json
    assert (ran["success"], ran["error"], ran["failures"]) == (False, None, 1)


def test_record_of_an_unknown_object_fails_the_project_task(
    codebatch: CommandLine,
) -> None:
    """The content of a file is an object. A record that refers to a missing object would break later answers."""
    code = """
import hashlib
from codebatch.model.record import Ast
def task(file):
    yield Ast(path='a.txt', object=hashlib.sha256(file.content).hexdigest(), format='content')
"""
    project(codebatch, code=code)
    codebatch("run", "src")
    (row,) = codebatch("query", "outputs", "--kind", "ast", "--json").records
    assert codebatch("cat-object", row["object"]).stdout == b"one two\n"
    assert "ast" in codebatch("inspect", "a.txt", "--all").text
    other = f"yield Ast(path='a.txt', object={'f' * 64!r}, format='f')"
    project(codebatch, code=f"from codebatch.model.record import Ast\ndef task(project): {other}\n")
    codebatch("run", "src", status=3)
    (row,) = codebatch("errors", "--json").records
    assert (row["task"], row["reason"]) == ("words", "exception")
    assert "the record refers to an object that is not in the store" in row["evidence"]


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.exit(1)",
        "raise KeyboardInterrupt",
        "raise BaseException('no')",
        "class Evil(Exception):\n  def __str__(self): raise ValueError\nraise Evil",
    ],
)
def test_module_that_exits_is_an_invalid_configuration(codebatch: CommandLine, code: str) -> None:
    project(codebatch, code=code)
    error = codebatch("run", "src", "--json", status=2).error
    assert error["code"] == "invalid_configuration"
    assert str(codebatch.directory / "tools" / "words.py") in error["message"]
    assert not (codebatch.directory / ".codebatch").exists()


@pytest.mark.parametrize(
    "code",
    [
        "import os; print('one'); os.write(1, b'two'); os.system('echo three')",
        "import os; os.close(1)",
        "import sys; sys.stdout.close(); sys.stderr = None",
    ],
)
def test_import_side_effects_of_a_module_do_not_reach_the_answer(codebatch: CommandLine, code: str) -> None:
    project(codebatch, code=f"{code}\n{COUNT}")
    ended = codebatch("run", "src", "--json")
    assert ended.json["status"] == "COMPLETED"
    if "print" in code:
        assert {"one", "two", "three"} <= set(ended.notes.replace("two", "\ntwo\n").split())


@pytest.mark.parametrize(
    "nonsense",
    [b"\xff" * 8, b"\0\0\0\1\xff", pytest.param(b"\0\1\0\0", marks=pytest.mark.slow)],
    ids=["a length beyond all bounds", "a message that is none", "the beginning of one that never ends"],
)
def test_task_that_writes_to_every_descriptor_loses_only_its_worker(codebatch: CommandLine, nonsense: bytes) -> None:
    """The file fails for the task that was running, unless the worker had finished it before the garbage was read."""
    code = f"""
import os
import random
def task(file):
    if file.path == b'b.txt':
        for descriptor in range(3, 64):
            try: os.write(descriptor, {nonsense!r})
            except OSError: pass
"""
    project(codebatch, code=code)
    for name in ("b", "c", "d"):
        write(codebatch.directory / "src" / f"{name}.txt", f"{name}\n")
    answer = codebatch.shell("codebatch run src --json -j 1 || test $? = 3").json
    rows = codebatch("errors", "--json").records
    failed = {"COMPLETED": set(), "PARTIAL": {"b.txt"}}[answer["status"]]
    assert {row["path"] for row in rows} == failed


@pytest.mark.parametrize("awaited", ["main_thread().join()", "Event().wait()"])
def test_worker_of_a_custom_task_exits_cleanly_within_the_time_limit(codebatch: CommandLine, awaited: str) -> None:
    """Files are flushed, exit functions are called, and threads are waited for, until a time limit."""
    code = f"""
import threading
from pathlib import Path
left = Path({str(codebatch.directory)!r})
kept = []
def wait():
    threading.{awaited}
    (left / "thread").touch()
def task(file):
    kept.append((left / "file").open("w"))
    kept[0].write("said")
    threading._register_atexit((left / "registered").touch)
    threading.Thread(target=wait).start()
"""
    project(codebatch, code=code)
    interpreters = CommandLine(codebatch.directory, prefix=("env",))  # The workers of this command are not forked.
    assert interpreters("run", "src", "--json").json["status"] == "COMPLETED"
    assert (codebatch.directory / "registered").exists()
    if "main_thread" in awaited:
        assert (codebatch.directory / "thread").exists()
        assert (codebatch.directory / "file").read_text() == "said"


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ("[tasks.words]\npython = 'tools/words.py'\n", "must be a file and a function"),
        ("[tasks.words]\npython = '../words.py:task'\n", "outside the project"),
        ("[tasks.words]\npython = 'tools/none.py:task'\n", "does not exist"),
        ("[tasks.words]\npython = 'tools/words.py:none'\n", "words.py: AttributeError"),
        ("[tasks.words]\npython = 'tools/words.py:task'\nx = 1\n", "has no setting 'x'"),
        ("[tasks.lint]\npython = 'tools/words.py:task'\n", "an installed package already provides a task 'lint'"),
        ("[tasks.W]\npython = 'tools/words.py:task'\n", "not a valid task name"),
    ],
)
def test_invalid_task_is_rejected_before_the_store_is_created(
    codebatch: CommandLine, settings: str, problem: str
) -> None:
    project(codebatch, settings=settings)
    assert problem in codebatch("run", "src", "--json", status=2).error["message"]
    assert not (codebatch.directory / ".codebatch").exists()


def test_configuration_of_an_analysed_tree_defines_no_tasks(codebatch: CommandLine) -> None:
    write_project(codebatch.directory / "theirs", code="raise SystemExit('run')")
    assert codebatch("run", "theirs", "--json").json["status"] == "COMPLETED"
    assert b"words" not in codebatch("pipeline", "full", "--json").stdout


def test_config_show_has_the_path_of_a_task(codebatch: CommandLine) -> None:
    project(codebatch)
    shown = codebatch("config", "show", "--json").json["tasks"]["value"]
    assert shown["words"]["python"].endswith("/tools/words.py:task")


LAYERS = "[tasks.layers]\npython = 'tools/layers.py:task'\nlayers = ['app/views', 'app/core']\n"


def test_bundled_project_task_example_works_as_documented(codebatch: CommandLine) -> None:
    write(codebatch.directory / "codebatch.toml", LAYERS)
    set_apart(codebatch, "src")
    (codebatch.directory / "tools").mkdir()
    shutil.copy(layers.__file__, codebatch.directory / "tools")
    for path, content in {
        "app/__init__.py": "",
        "app/views/__init__.py": "from app.core import base\n",
        "app/core/__init__.py": "",
        "app/core/base.py": "import os\nfrom app import views\n",
    }.items():
        write(codebatch.directory / "src" / path, content)
    codebatch("run", "src", "-j", "2")
    assert codebatch("query", "diagnostics", "--code", "layers").lines == [
        "app/core/base.py:2:1: error layers app/core imports app/views/__init__.py of app/views [layers]"
    ]


def test_project_function_can_read_records_of_all_tasks_and_files(codebatch: CommandLine) -> None:
    project(
        codebatch,
        code="""
from codebatch.model.record import Metric
def task(project):
    for file in project.files:
        kinds = {kind for task in ("parse", "analyze", "symbols", "lint") for _, found in project.records(task)
                 for kind in map(type, found)}
        yield Metric(path=file.text, metric="kinds", value=len(kinds))
        yield Metric(path=file.text, metric="bytes read", value=len(project.read(project.find(file.path))))
""",
    )
    write(codebatch.directory / "src" / "b.py", "import os\nx = 1\n")
    codebatch("run", "src")
    values = {
        (record["path"], record["metric"]): record["value"]
        for record in codebatch("query", "outputs", "--task", "words", "--json").records
    }
    assert values == {
        ("a.txt", "kinds"): 5, ("a.txt", "bytes read"): 8, ("b.py", "kinds"): 5, ("b.py", "bytes read"): 16
    }  # fmt: skip
    assert codebatch("status", "--json").json["tasks"][-1]["type"] == "project"


@pytest.mark.parametrize(
    ("code", "evidence"),
    [
        ("def task(project): return [1]", "a task must return records, not int"),
        ("def task(project): return project.records('none')", "the task must declare that it needs 'none'"),
        ("def task(project): raise SystemExit('no')", "SystemExit: no"),
        (
            "from codebatch.model.record import Metric as M\ndef task(project): yield M(path='x', metric='m', value=1)",
            "not a file of the snapshot",
        ),
        (
            "import codebatch.model.record as r\ndef task(project): yield r.Failure(path='a', task='', reason='crash')",
            'returning a failure: {"kind":"failure","path":"a"',
        ),
    ],
)
def test_failed_project_function_affects_only_itself_and_is_retried(
    codebatch: CommandLine, code: str, evidence: str
) -> None:
    project(codebatch, code=code)
    ended = codebatch("run", "src", "--json", status=3)
    assert ended.error["message"] == "1 of 7 results failed"
    (failure,) = codebatch("errors", "--json").records
    assert {key: failure[key] for key in ("path", "task", "reason")} == {
        "path": ".", "task": "words", "reason": "exception"
    }  # fmt: skip
    assert evidence in failure["evidence"]
    inspected = codebatch("inspect", "src/a.txt", "--json", status=3)
    assert {record["path"] for record in inspected.records} == {"a.txt"}
    assert inspected.json["complete"] is False, "an answer without the results of `words` must be incomplete"
    assert codebatch("resume", "--json", status=3).error["message"] == "1 of 7 results failed"


def test_project_function_that_reads_a_missing_object_fails(codebatch: CommandLine) -> None:
    objects = codebatch.directory / ".codebatch" / "objects"
    code = f"""
from pathlib import Path
def task(project):
    for pack in Path({str(objects)!r}).glob("*.pack"):
        pack.unlink()
    return project.read(project.files[0])
"""
    project(codebatch, code=code)
    # This is more than the cache of read objects keeps.
    (codebatch.directory / "src" / "a.txt").write_bytes(random.Random(1).randbytes(100_000))
    codebatch("run", "src", status=3)
    (failure,) = codebatch("errors", "--json").records
    assert (failure["path"], failure["task"], failure["reason"]) == (".", "words", "object")


def test_project_task_includes_its_needs_and_has_no_shards(codebatch: CommandLine) -> None:
    write(codebatch.directory / "src" / "a.py", "import b\n")
    write(codebatch.directory / "src" / "b.py", "")
    codebatch("run", "src", "--task", "dependencies")
    rows = {row["task_id"]: row["status"] for row in codebatch("tasks", "--json").json}
    assert rows == {
        "parse": "done", "analyze": "pending", "symbols": "done", "lint": "pending", "dependencies": "done",
        "duplicates": "pending",
    }  # fmt: skip
    assert codebatch("query", "outputs", "--task", "dependencies").lines[0] == "a.py:1: (file) depends b.py (exact)"
    for command in (("shards",), ("run-shard", "--shard", "0")):
        ended = codebatch(*command, "--task", "dependencies", "--json", status=2)
        assert ended.error["message"] == "the task dependencies runs once per project and has no shards"


def test_run_task_executes_a_task_in_user_tests(tmp_path: Path) -> None:
    records = run_task(tmp_path, f"{banned_words.__file__}:task", {"a/b.txt": "one two"}, {"words": ["two"]})
    findings = [(record.path, record.message) for record in records if isinstance(record, Diagnostic)]
    assert findings == [("a/b.txt", "`two`")]
    (tmp_path / "other").mkdir()
    with pytest.raises(RuntimeError, match="Expected `array`, got `int`"):
        run_task(tmp_path / "other", f"{banned_words.__file__}:task", {"a": ""}, {"words": 1})


WORDS_IF_ALLOWED = COUNT.replace("def task(file):", "import os\ndef task(file):\n    os.stat({!r})\n    os.stat('/')")
SUM = """
from codebatch.model.record import Metric
def task(project):
    words = sum(metric.value for _, metrics in project.records("words", "metric") for metric in metrics)
    yield Metric(path="a.txt", metric="all words", value=words)
"""


def test_resume_reexecutes_a_project_function_with_changed_input(codebatch: CommandLine) -> None:
    allowance = codebatch.directory / "allowed"
    settings = SETTINGS + "[tasks.sum]\npython = 'tools/sum.py:task'\n"
    project(codebatch, code=WORDS_IF_ALLOWED.format(str(allowance)), settings=settings)
    write(codebatch.directory / "tools" / "sum.py", SUM)
    write(codebatch.directory / "src" / "b.txt", "three four five")

    def words() -> list[int]:
        return [record["value"] for record in codebatch("query", "outputs", "--task", "sum", "--json").records]

    codebatch("run", "src", status=3)
    assert words() == [0]
    codebatch("resume", status=3)
    assert words() == [0]
    allowance.touch()
    assert codebatch("resume", "--json").json["status"] == "COMPLETED"
    assert words() == [5]


@pytest.mark.parametrize(
    ("code", "seconds", "reason"),
    [
        ("import os\ndef task(project): os.abort()", 100.0, "crash"),
        ("def task(project):\n    while True: pass", 1.0, "timeout"),
        # The file stays too large until the worker has read it, however long that takes.
        ("def task(project):\n    large = b'x' * (600 << 20)\n    while large: pass", 100.0, "memory"),
    ],
    ids=["crash", "timeout", "memory"],
)
def test_project_function_that_kills_its_worker_fails_without_others(
    codebatch: CommandLine, code: str, seconds: float, reason: str
) -> None:
    project(codebatch, code=code, settings=f"project_seconds_max = {seconds}\n" + SETTINGS)
    codebatch("run", "src", "--memory-mb", "400", status=3)
    (failure,) = codebatch("errors", "--json").records
    assert (failure["path"], failure["task"], failure["reason"]) == (".", "words", reason)
    assert failure["evidence"]
    assert [row["status"] for row in codebatch("tasks", "--json").json] == ["done"] * 6 + ["failed"]
