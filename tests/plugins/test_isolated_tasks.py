"""Tests of custom tasks in the coordinator: it learns their declarations without importing them or being affected."""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

import pytest

from codebatch.coordinator.analysis.planning import check_overrides, effective_config, prepare_tasks, resolve_tasks
from codebatch.errors import InvalidConfiguration
from codebatch.model.plan import ContextTable
from codebatch.operations.project.configuration import load_configuration
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.entry_points import clear_package_caches, describe_task, load_declaration
from codebatch.plugins.isolated_tasks import IsolatedTasks, isolated_catalogue
from tests.support.source_files import Snapshot

TASK = "def task(file):\n    return []\n"


def _catalogue(root: Path, **modules: str) -> TaskCatalogue:
    """Return the catalogue of a project with custom tasks. The module of each begins with the given code."""
    for name, code in modules.items():
        (root / f"{name}.py").write_text(f"{code}\n{TASK if 'def task' not in code else ''}")
    table = "".join(f'[tasks.{name}]\npython = "{name}.py:task"\n' for name in modules)
    (root / "codebatch.toml").write_text(table)
    return load_configuration(root).catalogue


def _process_state() -> dict[str, object]:
    umask = os.umask(0o022)
    os.umask(umask)
    return {
        "directory": os.getcwd(),
        "umask": umask,
        "handlers": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "timer": signal.getitimer(signal.ITIMER_REAL),
        "limits": resource.getrlimit(resource.RLIMIT_NOFILE),
        "path": list(sys.path),
        "environment": dict(os.environ),
        "modules": {name for name in sys.modules if name.startswith("codebatch_own")},
    }


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.chdir('/')",
        "import os; os.umask(0o777)",
        "import signal\nfor each in (1, 2, 15): signal.signal(each, signal.SIG_IGN)",
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "import signal, os; signal.signal(signal.SIGCHLD, lambda *_: os.wait())",
        "import signal; signal.setitimer(signal.ITIMER_REAL, 1000)",
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))",
        "import sys; sys.path.clear()",
        "import os; os.environ.clear()",
        "import os; os.fork()",
        "import os, threading; threading.Thread(target=threading.Event().wait).start()",
    ],
)
def test_import_side_effects_of_a_module_do_not_reach_the_coordinator(tmp_path: Path, code: str) -> None:
    before = _process_state()
    catalogue = _catalogue(tmp_path, words=code)
    check_overrides(catalogue, {"words": {}})
    assert resolve_tasks(catalogue, ("parse", "words"))[1].name == "words"
    assert _process_state() == before


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os._exit(0)", r"its process ended \(exit status 0\)"),
        ("import os\nif os.fork(): os._exit(0)", r"its process ended \(exit status 0\)"),
        ("import os; os.kill(os.getpid(), 11)", r"its process ended \(killed by SIGSEGV\)"),
        ("import sys; sys.exit(1)", r"ImportError: it ends the process \(SystemExit: 1\)"),
    ],
)
def test_module_that_fails_to_load_is_an_invalid_configuration(tmp_path: Path, code: str, reason: str) -> None:
    catalogue = _catalogue(tmp_path, good="", words=code)
    with pytest.raises(InvalidConfiguration, match=rf"the task 'words' cannot be loaded from \S*words\.py: {reason}"):
        check_overrides(catalogue, {"good": {}, "words": {}})
    assert describe_task(catalogue, "good").scope == "file", "another broken task affects a task that can be loaded"


def test_module_that_exceeds_the_time_limit_is_an_invalid_configuration(tmp_path: Path) -> None:
    catalogue = _catalogue(tmp_path, words="import signal\nwhile True: signal.pause()")
    catalogue.isolated_loader = IsolatedTasks(catalogue, 0.1)
    with pytest.raises(InvalidConfiguration, match=r"the task 'words' cannot be loaded .* it took longer than 0\.1 s"):
        check_overrides(catalogue, {"words": {}})


def test_project_task_is_rejected_if_a_needed_module_exits(tmp_path: Path) -> None:
    catalogue = _catalogue(tmp_path, total="def task(project):\n    return []", words="import os; os._exit(0)")
    with pytest.raises(InvalidConfiguration, match="the task 'words' cannot be loaded"):
        describe_task(catalogue, "total")


def test_configuration_is_validated_by_the_code_of_the_task(tmp_path: Path) -> None:
    code = (
        "import msgspec\nclass Config(msgspec.Struct):\n    words: tuple[str, ...] = ('a',)\n"
        "    def __post_init__(self):\n        if 'no' in self.words: raise ValueError('no no')\n"
        "def task(file, config: Config):\n    return []"
    )
    catalogue = _catalogue(tmp_path, words=code)
    assert effective_config(catalogue, "words", {}) == {"words": ["a"]}
    assert effective_config(catalogue, "words", {"words": ["b"]}) == {"words": ["b"]}
    with pytest.raises(InvalidConfiguration, match=r"\[tasks.words\]: no no"):
        effective_config(catalogue, "words", {"words": ["no"]})
    with pytest.raises(InvalidConfiguration, match="the task 'words' has no setting 'word'"):
        effective_config(catalogue, "words", {"word": 1})


def test_loading_a_module_in_the_coordinator_raises_assertion_error(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        load_declaration(_catalogue(tmp_path, words=""), "words")


PLUGIN = """
import os
import msgspec
from codebatch.model.task import TaskDeclaration
os.chdir('/')
os.umask(0o777)
class Config(msgspec.Struct, forbid_unknown_fields=True):
    size: int = 1
def prepare(config, is_project):
    return Config(size=config.size + 1), 'one more'
def context(snapshot):
    return lambda entry: entry.path.upper()
TASK = TaskDeclaration(
    name='plugged', version='3', summary='s', implementation='plugged:create', records=('metric',), needs=('parse',),
    config=Config, prepare=prepare, contexts={'upper': context},
    configured_contexts=lambda config: {'of-size': lambda snapshot: lambda entry: b'%d' % config.size},
)
"""


def test_installed_third_party_task_is_planned_without_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugged.py").write_text(PLUGIN)
    (tmp_path / "plugged-1.0.dist-info").mkdir()
    (tmp_path / "plugged-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (tmp_path / "plugged-1.0.dist-info" / "entry_points.txt").write_text("[codebatch.tasks]\nplugged = plugged:TASK\n")
    monkeypatch.syspath_prepend(tmp_path)
    clear_package_caches()
    before = _process_state()
    catalogue = isolated_catalogue()
    description = describe_task(catalogue, "plugged")
    assert (description.version, description.records, description.needs) == ("3", ("metric",), ("parse",))
    prepared = prepare_tasks(catalogue, ("parse", "plugged"), {}, is_project=True)
    assert prepared == ({"plugged": {"size": 2}}, ["one more"])
    tasks = resolve_tasks(catalogue, ("parse", "plugged"), prepared[0])
    assert tasks[1].contexts == ("of-size", "upper")
    assert catalogue.isolated_loader is not None
    snapshot = Snapshot("a", "b")
    assert catalogue.isolated_loader.evaluate_contexts("plugged", tasks[1].config, snapshot, snapshot.entries) == {
        "upper": ContextTable(values=(b"A", b"B"), items=(0, 1)),
        "of-size": ContextTable(values=(b"2",), items=(0, 0)),
    }
    with pytest.raises(InvalidConfiguration, match="the task 'plugged' has no setting 'sise'"):
        check_overrides(catalogue, {"plugged": {"sise": 1}})
    assert _process_state() == before
    assert "plugged" not in sys.modules
