"""Access of a coordinator to foreign tasks: a fork imports the tasks and answers questions about them.

While the module of a custom task is imported, it may do anything: change the directory, umask, signal handlers or
limits, end the process, fork, or hang. So the coordinator imports no such module. A fork imports all requested modules,
each with a time limit. It returns the data that the coordinator needs: the description of a task, its configuration for
given settings, and its contexts. Answers are cached, so a run usually needs one fork. Workers import the modules
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from codebatch.errors import InvalidConfiguration, TaskProcessFailed
from codebatch.model.command_table import TaskLocation
from codebatch.model.entry import Entry
from codebatch.model.plan import ContextTable
from codebatch.model.task import JsonValue, SnapshotView, TaskDescription
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.entry_points import load_declaration
from codebatch.plugins.settings import evaluate_context, prepare_settings, task_configuration, task_contexts
from codebatch.plugins.user_tasks import exception_text
from codebatch.system.processes.forks import ForkFailure, call_isolated

LOAD_SECONDS_MAX = 30.0
"""Time limit in seconds for the import of a module.

If the time limit for one file is higher, that limit is used instead.
"""

_LOADING_HINT = "importing the file runs all of it: move slow code, and code that ends the process, into the function"


class TaskAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a question about a task.

    - `refusal`: an error message and hint, or None.
    - `config`: the configuration as JSON.
    - `is_stable`: if this configuration is used as settings, the result is the same configuration.
    - `is_prepared`: the task has a `prepare` function. `note` is its note for people.
    """

    description: TaskDescription | None = None
    refusal: tuple[str, str | None] | None = None
    config: bytes = b"{}"
    is_stable: bool = False
    context_names: tuple[str, ...] = ()
    is_prepared: bool = False
    note: str = ""
    contexts: dict[str, ContextTable] = {}


class _TaskQuestion(NamedTuple):
    """A question about a task. The fork calls `answer` with the declaration of the task."""

    name: str
    answer: Callable[[TaskCatalogue], TaskAnswer]


class IsolatedTasks:
    """A source of answers about the foreign tasks of a catalogue.

    Methods raise InvalidConfiguration if a task cannot be loaded.
    """

    def __init__(self, catalogue: TaskCatalogue, seconds: float) -> None:
        """Store the catalogue. `seconds` is the time limit for the import of one module, and for one answer."""
        self._catalogue = catalogue
        self._seconds = seconds
        self._descriptions: dict[str, TaskDescription] = {}
        self._configured_answers: dict[tuple[str, str], TaskAnswer] = {}
        self._loading_errors: dict[str, TaskAnswer] = {}

    def prefetch(self, settings: Mapping[str, Mapping[str, JsonValue]]) -> None:
        """Ask about several tasks in one fork, each with its settings, and cache the answers."""
        names = [name for name in settings if self._catalogue.is_external(name)]
        unknown = [name for name in names if (name, repr(settings[name])) not in self._configured_answers]
        if not unknown:
            return
        answers = self._query_in_fork(
            [_TaskQuestion(name, partial(_configure_answer, name, settings[name])) for name in unknown]
        )
        for name, answer in zip(unknown, answers, strict=True):
            self._configured_answers[name, repr(settings[name])] = answer
            if answer.description is not None:
                self._descriptions[name] = answer.description
            if answer.is_stable:
                self._configured_answers.setdefault((name, repr(msgspec.json.decode(answer.config))), answer)

    def describe(self, name: str) -> TaskDescription:
        """Return the description of a task."""
        if name not in self._descriptions:
            self._loaded_answer(name, {})
        return self._descriptions[name]

    def configure(self, name: str, settings: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return a task's configuration as JSON, including defaults."""
        return msgspec.json.decode(
            _require_accepted(self._loaded_answer(name, settings)).config, type=dict[str, JsonValue]
        )

    def context_names(self, name: str, config: Mapping[str, JsonValue]) -> tuple[str, ...]:
        """Return the names of a task's contexts for a configuration."""
        return _require_accepted(self._loaded_answer(name, config)).context_names

    def prepare(
        self, name: str, settings: Mapping[str, JsonValue], *, is_project: bool
    ) -> tuple[Mapping[str, JsonValue], str] | None:
        """Return the settings for the plan, and a note for people. None if the task has no function `prepare`.

        The note describes how the returned settings differ from the given ones.
        """
        if not self._loaded_answer(name, settings).is_prepared:
            return None
        (answer,) = self._query_in_fork([_TaskQuestion(name, partial(_prepare_answer, name, settings, is_project))])
        return msgspec.json.decode(_require_accepted(answer).config, type=dict[str, JsonValue]), answer.note

    def evaluate_contexts(
        self, name: str, config: Mapping[str, JsonValue], snapshot: SnapshotView, items: Sequence[Entry]
    ) -> dict[str, ContextTable]:
        """Return the values of a task's contexts for items of a snapshot, by name."""
        (answer,) = self._query_in_fork([_TaskQuestion(name, partial(_contexts_answer, name, config, snapshot, items))])
        return _require_accepted(answer).contexts

    def _loaded_answer(self, name: str, settings: Mapping[str, JsonValue]) -> TaskAnswer:
        """Return the answer about a task. Raises if the task cannot be loaded."""
        self.prefetch({name: settings})
        answer = self._configured_answers[name, repr(settings)]
        return answer if answer.description else _require_accepted(answer)

    def _query_in_fork(self, questions: Sequence[_TaskQuestion], other_tasks: Iterable[str] = ()) -> list[TaskAnswer]:
        """Answer questions in one fork.

        The fork first imports the modules of the questions' tasks and of `other_tasks`.
        """
        names = dict.fromkeys((*(question.name for question in questions), *other_tasks))
        loads = [_TaskQuestion(name, partial(_load_answer, name)) for name in names]
        with call_isolated(self._answer_in_fork, [*loads, *questions], TaskAnswer, seconds=self._seconds) as answers:
            loaded = [self._require_answer(question.name, next(answers), "cannot be loaded") for question in loads]
            is_any_of_project = any(
                question.description and question.description.scope == "project" for question in loaded
            )
            if not is_any_of_project or names.keys() >= self._catalogue.custom_locations.keys():
                return [
                    self._require_answer(question.name, next(answers), "cannot be planned") for question in questions
                ]
        # A task of project scope needs all custom tasks. So import each of them too, each with its own time limit.
        return self._query_in_fork(questions, self._catalogue.custom_locations)

    def _require_answer(self, name: str, answer: TaskAnswer | ForkFailure, problem: str) -> TaskAnswer:
        if isinstance(answer, TaskAnswer):
            return answer
        place = self._catalogue.custom_locations.get(name)
        location = place.python.rpartition(":")[0] if place else self._catalogue.installed[name].value
        raise TaskProcessFailed(f"the task {name!r} {problem} from {location}: {answer.reason}", hint=_LOADING_HINT)

    def _answer_in_fork(self, question: _TaskQuestion) -> TaskAnswer:
        self._catalogue.isolated_loader = None  # This is the copy in the fork, which imports modules.
        if question.name not in self._loading_errors:
            try:
                return question.answer(self._catalogue)
            except InvalidConfiguration as error:
                self._loading_errors[question.name] = TaskAnswer(refusal=(error.message, error.hint))
            except Exception as error:
                return TaskAnswer(
                    refusal=(f"the task {question.name!r} cannot be planned: {exception_text(error)}", None)
                )
        return self._loading_errors[question.name]


def _load_answer(name: str, catalogue: TaskCatalogue) -> TaskAnswer:
    loaded = (
        catalogue.load_custom(name).declaration
        if name in catalogue.custom_locations
        else load_declaration(catalogue, name)
    )
    return TaskAnswer(description=loaded.description)


def _configure_answer(name: str, settings: Mapping[str, JsonValue], catalogue: TaskCatalogue) -> TaskAnswer:
    declaration = load_declaration(catalogue, name)
    description = declaration.description
    try:
        config = task_configuration(declaration, settings)
        is_stable = task_configuration(declaration, config) == config
        names = tuple(sorted(task_contexts(declaration, config)))
    except InvalidConfiguration as error:
        return TaskAnswer(description=description, refusal=(error.message, error.hint))
    return TaskAnswer(
        description=description,
        config=msgspec.json.encode(config),
        is_stable=is_stable,
        context_names=names,
        is_prepared=declaration.prepare is not None,
    )


def _prepare_answer(
    name: str, settings: Mapping[str, JsonValue], is_project: bool, catalogue: TaskCatalogue
) -> TaskAnswer:
    prepared = prepare_settings(load_declaration(catalogue, name), settings, is_project=is_project)
    assert prepared is not None
    return TaskAnswer(config=msgspec.json.encode(prepared[0]), note=prepared[1])


def _contexts_answer(
    name: str, config: Mapping[str, JsonValue], snapshot: SnapshotView, items: Sequence[Entry], catalogue: TaskCatalogue
) -> TaskAnswer:
    contexts = task_contexts(load_declaration(catalogue, name), config)
    return TaskAnswer(contexts={key: evaluate_context(context, snapshot, items) for key, context in contexts.items()})


def _require_accepted(answer: TaskAnswer) -> TaskAnswer:
    """Return an answer. Raises InvalidConfiguration if it is a refusal."""
    if answer.refusal is not None:
        message, hint = answer.refusal
        raise InvalidConfiguration(message, hint=hint)
    return answer


def isolated_catalogue(
    locations: Mapping[str, TaskLocation] | None = None,
    *,
    imports: Iterable[str] = (),
    file_seconds: float = 0.0,
) -> TaskCatalogue:
    """Return a catalogue for a coordinator. `file_seconds` is the time limit in seconds of a task for one file."""
    catalogue = TaskCatalogue(locations, imports=imports)
    catalogue.isolated_loader = IsolatedTasks(catalogue, max(LOAD_SECONDS_MAX, file_seconds))
    return catalogue
