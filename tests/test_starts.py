"""Every start of a process in the sources: Python processes start by `python_start`, all others are listed here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted(path for folder in ("codebatch", "workers") for path in (ROOT / folder).rglob("*.py"))

PROGRAMS = {
    "codebatch/cli/run/serve.py": "the browser of the user",
    "codebatch/coordinator/processes/helper_process.py": "a program that the user configured",
    "codebatch/coordinator/work/notifications.py": "a program that the user configured",
    "codebatch/git/checkout.py": "git",
    "codebatch/git/history.py": "git",
    "codebatch/git/linked_trees.py": "git",
    "codebatch/git/repository.py": "git",
    "codebatch/system/processes/forks.py": "a fork of this process",
    "codebatch/system/processes/processes.py": "the command line of a caller",
    "codebatch/system/processes/programs.py": "the command line of a caller",
    "codebatch/system/processes/python_start.py": "this command line again, in UTF-8 mode",
    "workers/codebatch_workers/commands/process.py": "a command of a task list",
    "workers/codebatch_workers/lint/explanations.py": "ruff",
    "workers/codebatch_workers/lint/python/ruff.py": "ruff",
}
"""Modules that start processes, with what they start if it is not a module of codebatch."""

INTERPRETERS = {
    "codebatch/engines/parsl.py": "in a hint, and the directory of Parsl's scripts, which `python_start` runs",
    "codebatch/installation.py": "in a hint, which names the environment of this copy",
    "codebatch/system/processes/python_start.py": "all starts",
}
"""Modules that use the path of the interpreter, with the reason."""

STARTS = {
    "subprocess": {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "os": {"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "startfile"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
    "pty": {"spawn", "fork"},
    "webbrowser": {"open", "open_new", "get"},
}
RUNNERS = {
    "codebatch/engines/parsl.py": "runs the file that the user gave by `--on parsl:FILE.py`",
    "codebatch/engines/parsl_script.py": "runs scripts of Parsl, in a process that `python_start` started",
    "codebatch/system/processes/python_launcher.py": "runs the module that `python_start` names",
}
"""Modules that run files or modules, or start interpreters, without `subprocess`."""


class Facts:
    """The names and imports of a module, and the lists in it that begin with the name of an interpreter."""

    def __init__(self, path: Path) -> None:
        self.names: set[str] = set()
        self.interpreter_lines: list[int] = []
        for node in ast.walk(ast.parse(path.read_bytes())):
            match node:
                case ast.Name(id=name):
                    self.names.add(name)
                case ast.Attribute(value=ast.Name(id=module), attr=name):
                    self.names.add(f"{module}.{name}")
                case ast.Import(names=aliases):
                    self.names |= {alias.name for alias in aliases}
                case ast.ImportFrom(module=str(module), names=aliases):
                    self.names |= {module, *(alias.name for alias in aliases), *(f"{module}.{a.name}" for a in aliases)}
                case ast.List(elts=[ast.Constant(value=str(first)), ast.Constant(value=str(option)), *_]):
                    if first.startswith("python") and option.startswith("-"):
                        self.interpreter_lines.append(node.lineno)
                case _:
                    pass

    @property
    def starts(self) -> set[str]:
        """The functions that start processes."""
        return {name for name in self.names if _is_start(*name.rpartition(".")[::2])}


def _is_start(module: str, name: str) -> bool:
    return name in STARTS.get(module, ()) or (module == "os" and name.startswith(("exec", "spawn")))


@pytest.fixture(scope="module")
def modules() -> dict[str, Facts]:
    """The facts about each source file."""
    return {str(path.relative_to(ROOT)): Facts(path) for path in SOURCES}


def test_each_start_of_a_process_uses_python_start_or_is_of_another_program(modules: dict[str, Facts]) -> None:
    starting = {name for name, facts in modules.items() if facts.starts}
    of_python = {name for name in starting if "python_start" in modules[name].names}
    assert starting - of_python == PROGRAMS.keys()


def test_only_python_start_names_the_interpreter(modules: dict[str, Facts]) -> None:
    def using(names: set[str]) -> set[str]:
        return {name for name, facts in modules.items() if facts.names & names}

    assert using({"sys.executable", "sys._base_executable"}) == INTERPRETERS.keys()
    assert using({"multiprocessing", "ProcessPoolExecutor", "runpy"}) == RUNNERS.keys()
    assert {name: facts.interpreter_lines for name, facts in modules.items() if facts.interpreter_lines} == {}
