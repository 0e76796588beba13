"""The environments that a worker passes to the factories of tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from codebatch.model.digest import Digest
from codebatch.model.record import Diagnostic
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.store.objects.pack_writer import PackWriter
from codebatch.system.files.memory_scratch import try_memory_scratch
from codebatch_workers.api.protocols import TaskEnvironment
from codebatch_workers.runtime.command_programs import CommandProgram
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.syntax_errors import shared_syntax_errors

_GATES_DIRECTORY = ".gates"
"""The scratch directory of the gates of changes. No task has this name."""


class TaskEnvironments:
    """The parts of environments that all tasks of a worker share."""

    def __init__(
        self,
        catalogue: TaskCatalogue,
        objects: PackWriter | None,
        read_object: Callable[[Digest], bytes] | None,
        restart_limit: Callable[[], None],
    ) -> None:
        """`restart_limit` restarts the time limit of the current step. It is called before each call of a program."""
        self._catalogue = catalogue
        self._objects = objects
        self._read_object = read_object
        self._restart_limit = restart_limit
        self._shared: dict[str, object] = {}

    def make(self, name: str, config: msgspec.Struct, scratch: Path) -> TaskEnvironment[msgspec.Struct]:
        """Return the environment of a task."""
        environment = TaskEnvironment(
            config=config, scratch=scratch, name=name, shared=self._shared, try_memory=try_memory_scratch
        )
        if name in self._catalogue.commands:
            program = CommandProgram(name, self._catalogue.commands[name], self._restart_limit)
            environment = replace(environment, program=program)
        if self._read_object is not None:
            environment = replace(environment, read_object=self._read_object)
        if self._objects is not None:
            environment = replace(environment, put_object=self._objects.add)
        return environment

    def find_syntax_errors(self, scratch: Path, file: SourceFile) -> list[Diagnostic]:
        """Return the syntax errors in a new content of a file. `scratch` is the scratch directory of all tasks."""
        directory = scratch / _GATES_DIRECTORY
        directory.mkdir(exist_ok=True)
        return shared_syntax_errors(self.make("", msgspec.Struct(), directory)).find(file)
