"""The end of an attempt whose outputs are collected, and its start if it may be skipped because nothing has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from codebatch.errors import CodebatchError, StoreUnwritable
from codebatch.model.digest import Digest
from codebatch.model.work.command import Command
from codebatch.protocol.messages import AttemptInput
from codebatch.snapshotting.matching_files import first_unreadable, unmatched_patterns
from codebatch.store.objects.object_store import ObjectStore
from codebatch.system.processes.command_processes import ProcessNotStarted
from codebatch_workers.commands.attempt import AttemptResult
from codebatch_workers.commands.context import read_list_variables
from codebatch_workers.commands.log import AttemptLogWriter
from codebatch_workers.commands.masking import SecretMasker
from codebatch_workers.commands.task_outputs import OutputsNotCollected, collect_outputs, restore_outputs
from codebatch_workers.commands.unchanged import (
    CommandInputs,
    InputsUnknown,
    first_difference,
    inputs_digest,
    read_inputs,
)

STORE_SECONDS_MAX = 60.0
"""How long an attempt that has ended tries to store its work, for example until the user has freed space."""
_STORE_INTERVAL_SECONDS = 1.0
_Stored = TypeVar("_Stored")


def store_when_possible(store: Callable[[], _Stored], sleep: Callable[[float], None] = time.sleep) -> _Stored:
    """Return the result of `store`. If the disk refuses writes, try again for some time."""
    seconds = 0.0
    while True:
        try:
            return store()
        except StoreUnwritable:
            if seconds >= STORE_SECONDS_MAX:
                raise
            seconds += _STORE_INTERVAL_SECONDS
            sleep(_STORE_INTERVAL_SECONDS)


class AttemptOutputs:
    """The outputs of one attempt, and its inputs if it may be skipped."""

    def __init__(
        self,
        command: Command,
        root: Path,
        objects: ObjectStore,
        brief: AttemptInput,
        log: AttemptLogWriter,
        environment: Mapping[str, str],
        masker: SecretMasker,
        early_result: Callable[[], AttemptResult | None],
    ) -> None:
        """`root` is the root of the batch. `environment` is the caller's.

        If `early_result` returns a result, a request ends the attempt, and its inputs are not read to the end.
        """
        self._command = command
        self._root = root
        self._objects = objects
        self._brief = brief
        self._log = log
        self._environment = environment
        self._masker = masker
        self._early_result = early_result
        self._inputs: CommandInputs | None = None

    def reuse_success(self) -> AttemptResult | None:
        """Restore the outputs of the last success, and return the result of the attempt, if nothing has changed.

        Otherwise return None: the command has to run. The log says so if the inputs are not known.
        """
        if not self._command.skip_if_unchanged:
            return None
        try:
            self._inputs = self._read_inputs()
            success, digest = self._brief.success, inputs_digest(self._inputs)
            if success is None or success.inputs != digest:
                return None
            changed = restore_outputs(self._objects, success.outputs, self._root) if success.outputs else ""
            if changed:
                self._log.report(f"not skipped: its output {changed} has changed since its last success")
                return None
            if self._read_inputs() != self._inputs:
                return None  # A restored file, or another process, has changed an input.
        except InputsUnknown as error:
            if self._early_result() is None:  # Otherwise, a request ends the attempt.
                self._log.report(f"not skipped: {error}")
            return None
        except (OSError, CodebatchError) as error:
            reason = first_unreadable(error) if isinstance(error, OSError) else str(error)
            self._log.report(f"not skipped: the outputs of its last success cannot be restored: {reason}")
            return None
        self._log.write_note(f"not run: nothing has changed since its success in batch {success.batch}")
        return AttemptResult(type="result", reason="unchanged", outputs=success.outputs, inputs=digest)

    def finish(self, result: AttemptResult, root: Path) -> AttemptResult:
        """Return the result of the attempt with its outputs below `root` and its inputs. The outputs are durable.

        If an attempt succeeded and its outputs cannot be collected, it fails with the reason `check`. If there was
        nothing to do, patterns without files are only reported.
        """
        if result.type != "result":
            return result
        patterns = self._command.outputs or ()
        if patterns:
            try:
                outputs = store_when_possible(lambda: collect_outputs(root, patterns, self._objects))
            except (OutputsNotCollected, CodebatchError, OSError) as error:
                reason = first_unreadable(error) if isinstance(error, OSError) else str(error)
                self._log.report(f"outputs: {reason}")
                return _fail(result, is_final=True)  # Another attempt could cost again and find the same files.
            missing = unmatched_patterns(patterns, outputs.paths)
            if missing:
                self._log.report(f"outputs: no file matches {missing[0]!r}")
                if not result.reason:
                    return _fail(result, is_final=False)
            result = msgspec.structs.replace(result, outputs=outputs.digest)
        return result if result.reason else msgspec.structs.replace(result, inputs=self._unchanged_inputs())

    def _unchanged_inputs(self) -> Digest:
        """Return the digest of the inputs if they are as they were before the command ran, or an empty digest.

        Otherwise it is unknown which of both contents the command has read.
        """
        if self._inputs is None:
            return Digest("")
        try:
            changed = first_difference(self._inputs, self._read_inputs())
            why = f"its inputs changed while it ran: {changed}" if changed else ""
        except InputsUnknown as error:
            why = str(error)
        if not why:
            return inputs_digest(self._inputs)
        self._log.report(f"the next run cannot skip it: {why}")
        return Digest("")

    def _read_inputs(self) -> CommandInputs:
        tries = [self._command.for_try(number) for number in range(len(self._command.tries) + 1)]
        try:
            variables = {
                f"{name} of try {number}" if number else name: value
                for number, command in enumerate(tries)
                for name, value in read_list_variables(command, self._root, self._environment, self._masker).items()
            }
        except ProcessNotStarted as error:
            raise InputsUnknown(str(error)) from error
        return read_inputs(
            self._command, self._root, variables, self._brief.outputs, lambda: self._early_result() is None
        )


def _fail(result: AttemptResult, *, is_final: bool) -> AttemptResult:
    return msgspec.structs.replace(result, type="failed", reason="check", exit_status=None, is_final=is_final)
