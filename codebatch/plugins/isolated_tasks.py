"""Tasks that do not come with codebatch, as a coordinator knows them: by the answers of a fork that imports them.

A module of the user's may do anything as it is imported: change the directory, the umask, signal handlers or limits,
end the process, fork, hang. So the coordinator imports none. A fork imports all that are asked about, each within a
time, and answers what the coordinator must know: what a task is, its configuration under settings, and its contexts.
Answers are remembered, so a run needs one fork. Workers import the modules themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from codebatch.errors import InvalidConfiguration
from codebatch.model.entry import Entry
from codebatch.model.plan import ContextTable
from codebatch.model.task import Json, OwnPlace, SnapshotView, TaskDescription
from codebatch.plugins.catalogue import TaskCatalogue
from codebatch.plugins.entry_points import load_declaration
from codebatch.plugins.settings import configure, contexts_of, evaluate_context, prepare
from codebatch.plugins.user_tasks import said
from codebatch.system.processes.forks import ForkFailure, call_isolated

LOAD_SECONDS_MAX = 30.0
"""Time that the import of a module may take, unless a file may take more."""

_HINT = "importing the file runs all of it: move slow code, and code that ends the process, into the function"


class TaskAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer about a task. `refusal` is why it cannot be loaded or configured, with a hint; `config` is JSON.

    `is_stable`: with its configuration as settings, it has the same configuration. `is_prepared`: it has a `prepare`.
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
    """A question about a task, which its declaration answers in a fork."""

    name: str
    answer: Callable[[TaskCatalogue], TaskAnswer]


class IsolatedTasks:
    """The tasks of a catalogue that do not come with codebatch. Methods that ask raise InvalidConfiguration."""

    def __init__(self, catalogue: TaskCatalogue, seconds: float) -> None:
        """`seconds` is the limit for the import of one module, and for one answer."""
        self._catalogue = catalogue
        self._seconds = seconds
        self._descriptions: dict[str, TaskDescription] = {}
        self._configured: dict[tuple[str, str], TaskAnswer] = {}
        self._unloadable: dict[str, TaskAnswer] = {}

    def look_ahead(self, settings: Mapping[str, Mapping[str, Json]]) -> None:
        """Ask about several tasks at once, each under its settings: one fork imports them all."""
        names = [name for name in settings if self._catalogue.is_foreign(name)]
        unknown = [name for name in names if (name, repr(settings[name])) not in self._configured]
        if not unknown:
            return
        answers = self._ask([_TaskQuestion(name, partial(_configure, name, settings[name])) for name in unknown])
        for name, answer in zip(unknown, answers, strict=True):
            self._configured[name, repr(settings[name])] = answer
            if answer.description is not None:
                self._descriptions[name] = answer.description
            if answer.is_stable:
                self._configured.setdefault((name, repr(msgspec.json.decode(answer.config))), answer)

    def describe(self, name: str) -> TaskDescription:
        """Return the part of its declaration that is data."""
        if name not in self._descriptions:
            self._answer(name, {})
        return self._descriptions[name]

    def configure(self, name: str, settings: Mapping[str, Json]) -> dict[str, Json]:
        """Return its configuration, defaults included, as JSON."""
        return msgspec.json.decode(_accepted(self._answer(name, settings)).config, type=dict[str, Json])

    def context_names(self, name: str, config: Mapping[str, Json]) -> tuple[str, ...]:
        """Return the names of its contexts as it is configured."""
        return _accepted(self._answer(name, config)).context_names

    def prepare(
        self, name: str, settings: Mapping[str, Json], *, is_project: bool
    ) -> tuple[Mapping[str, Json], str] | None:
        """Return its settings to plan with, and what is done otherwise than is written; None if it prepares none."""
        if not self._answer(name, settings).is_prepared:
            return None
        (answer,) = self._ask([_TaskQuestion(name, partial(_prepare, name, settings, is_project))])
        return msgspec.json.decode(_accepted(answer).config, type=dict[str, Json]), answer.note

    def evaluate_contexts(
        self, name: str, config: Mapping[str, Json], snapshot: SnapshotView, items: Sequence[Entry]
    ) -> dict[str, ContextTable]:
        """Return what its contexts are of items of a snapshot, by name."""
        (answer,) = self._ask([_TaskQuestion(name, partial(_evaluate, name, config, snapshot, items))])
        return _accepted(answer).contexts

    def _answer(self, name: str, settings: Mapping[str, Json]) -> TaskAnswer:
        """The answer about a task that can be loaded."""
        self.look_ahead({name: settings})
        answer = self._configured[name, repr(settings)]
        return answer if answer.description else _accepted(answer)

    def _ask(self, questions: Sequence[_TaskQuestion], besides: Iterable[str] = ()) -> list[TaskAnswer]:
        """Have one fork import the modules, those of tasks `besides` too, and then answer."""
        names = dict.fromkeys((*(question.name for question in questions), *besides))
        loads = [_TaskQuestion(name, partial(_load, name)) for name in names]
        with call_isolated(self._answer_in_fork, [*loads, *questions], TaskAnswer, seconds=self._seconds) as answers:
            loaded = [self._answered(each.name, next(answers), "cannot be loaded") for each in loads]
            is_any_of_project = any(each.description and each.description.scope == "project" for each in loaded)
            if not is_any_of_project or names.keys() >= self._catalogue.own_places.keys():
                return [self._answered(each.name, next(answers), "cannot be planned") for each in questions]
        # A task of project scope needs all own tasks, and each is imported within its own time.
        return self._ask(questions, self._catalogue.own_places)

    def _answered(self, name: str, answer: TaskAnswer | ForkFailure, problem: str) -> TaskAnswer:
        if isinstance(answer, TaskAnswer):
            return answer
        place = self._catalogue.own_places.get(name)
        where = place.python.rpartition(":")[0] if place else self._catalogue.installed[name].value
        raise InvalidConfiguration(f"the task {name!r} {problem} from {where}: {answer.reason}", hint=_HINT)

    def _answer_in_fork(self, question: _TaskQuestion) -> TaskAnswer:
        self._catalogue.isolated = None  # Of the fork's copy: there modules are imported.
        if question.name not in self._unloadable:
            try:
                return question.answer(self._catalogue)
            except InvalidConfiguration as error:
                self._unloadable[question.name] = TaskAnswer(refusal=(error.message, error.hint))
            except Exception as error:
                return TaskAnswer(refusal=(f"the task {question.name!r} cannot be planned: {said(error)}", None))
        return self._unloadable[question.name]


def _load(name: str, catalogue: TaskCatalogue) -> TaskAnswer:
    loaded = catalogue.load_own(name).declaration if name in catalogue.own_places else load_declaration(catalogue, name)
    return TaskAnswer(description=loaded.description)


def _configure(name: str, settings: Mapping[str, Json], catalogue: TaskCatalogue) -> TaskAnswer:
    declaration = load_declaration(catalogue, name)
    description = declaration.description
    try:
        config = configure(declaration, settings)
        is_stable = configure(declaration, config) == config
        names = tuple(sorted(contexts_of(declaration, config)))
    except InvalidConfiguration as error:
        return TaskAnswer(description=description, refusal=(error.message, error.hint))
    return TaskAnswer(
        description=description,
        config=msgspec.json.encode(config),
        is_stable=is_stable,
        context_names=names,
        is_prepared=declaration.prepare is not None,
    )


def _prepare(name: str, settings: Mapping[str, Json], is_project: bool, catalogue: TaskCatalogue) -> TaskAnswer:
    made = prepare(load_declaration(catalogue, name), settings, is_project=is_project)
    assert made is not None
    return TaskAnswer(config=msgspec.json.encode(made[0]), note=made[1])


def _evaluate(
    name: str, config: Mapping[str, Json], snapshot: SnapshotView, items: Sequence[Entry], catalogue: TaskCatalogue
) -> TaskAnswer:
    contexts = contexts_of(load_declaration(catalogue, name), config)
    return TaskAnswer(contexts={each: evaluate_context(context, snapshot, items) for each, context in contexts.items()})


def _accepted(answer: TaskAnswer) -> TaskAnswer:
    """An answer that is no refusal. Raises InvalidConfiguration."""
    if answer.refusal is not None:
        message, hint = answer.refusal
        raise InvalidConfiguration(message, hint=hint)
    return answer


def isolated_catalogue(
    own_places: Mapping[str, OwnPlace] | None = None, *, imports: Iterable[str] = (), file_seconds: float = 0.0
) -> TaskCatalogue:
    """The catalogue of a coordinator. `file_seconds` is what a file may take."""
    catalogue = TaskCatalogue(own_places, imports=imports)
    catalogue.isolated = IsolatedTasks(catalogue, max(LOAD_SECONDS_MAX, file_seconds))
    return catalogue
