"""Bounded parsing of untrusted YAML: tables, lists and scalars. Aliases, merges and tags that call code are errors.

The parser's events are read one by one, and an alias is an error. So nested aliases are never expanded to a huge
document. Deep nesting is rejected while it is read, because libyaml takes quadratic time for nested brackets. Scalars
follow YAML 1.1, as in most programs.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from codebatch.model.text.line_numbers import TableWithLines

if TYPE_CHECKING:
    import yaml

_DEPTH_MAX = 100
# Since 6.0.4, PyYAML has a limit of nesting too.
_PYYAML_DEPTH_MESSAGE = "exceeded maximum nesting depth"
_TEXT_CHARACTERS_SHOWN_MAX = 40


class YamlError(ValueError):
    """The text is invalid YAML, or YAML that is not accepted. The message is the reason. `line` is counted from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def parse_yaml(text: str, *, length_max: int, line: int = 1, texts: Collection[str] = ()) -> object:
    """Return the only document of a YAML text, or None if there is none. Raises YamlError.

    Tables are TableWithLines. `line` is the number of the text's first line in its file. `texts` are top-level keys
    whose values are text. If the value of such a key is a scalar or a list of scalars, each scalar is read as text:
    `1.0` becomes "1.0". Only null becomes None.
    """
    if len(text) > length_max:
        raise YamlError(f"it has {len(text):,} characters, more than {length_max:,}", line)
    import yaml  # Imported here because only callers with such files need it.

    loader_type: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        loader = loader_type(text)
        try:
            return _YamlBuilder(loader, line, texts).build_document()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = error.problem or error.context or "it cannot be read"
        if message == _PYYAML_DEPTH_MESSAGE:
            message = "it is nested too deeply"
        raise YamlError(message, line + (mark.line if mark else 0)) from error
    except yaml.YAMLError as error:  # A character that YAML does not allow.
        raise YamlError(str(error).split("\n", 1)[0], line) from error
    except RecursionError as error:
        raise YamlError("it is nested too deeply", line) from error


class _YamlBuilder:
    def __init__(self, loader: yaml.SafeLoader | yaml.CSafeLoader, first_line: int, texts: Collection[str]) -> None:
        self._loader = loader
        self._first_line = first_line
        self._texts = texts
        self._open: list[TableWithLines | list[object]] = []
        # First characters of plain scalars that may be something else than text, such as numbers. An empty scalar is
        # null.
        self._first_characters = {*loader.yaml_implicit_resolvers, ""}
        # For each open table: the key whose value comes next, or None. For each open list: the key of the list.
        self._keys: list[str | None] = []

    def build_document(self) -> object:
        import yaml

        documents: list[object] = []
        loader = self._loader
        while loader.check_event():
            event = loader.get_event()
            if isinstance(event, yaml.ScalarEvent):
                self._add_scalar(event, documents)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._start_collection(event, documents)
            elif isinstance(event, yaml.CollectionEndEvent):
                self._open.pop()
                self._keys.pop()
            elif isinstance(event, yaml.AliasEvent):
                raise self._error_at(
                    f"it uses the alias *{event.anchor}; aliases are not supported, write the value out", event
                )
            elif isinstance(event, yaml.DocumentStartEvent) and documents:
                raise self._error_at("it has more than one document", event)
        return documents[0] if documents else None

    def _start_collection(self, event: yaml.CollectionStartEvent, documents: list[object]) -> None:
        import yaml

        is_table = isinstance(event, yaml.MappingStartEvent)
        if event.tag is not None and event.tag not in ("!", f"tag:yaml.org,2002:{'map' if is_table else 'seq'}"):
            raise self._error_at(f"unsupported tag {_truncate(event.tag)}", event)
        collection: TableWithLines | list[object] = TableWithLines(self._event_line(event)) if is_table else []
        key = self._keys[-1] if self._keys else None
        self._add_value(collection, event, documents)
        self._open.append(collection)
        self._keys.append(None if is_table else key)
        if len(self._open) > _DEPTH_MAX:
            raise self._error_at("it is nested too deeply", event)

    def _add_scalar(self, event: yaml.ScalarEvent, documents: list[object]) -> None:
        is_key = bool(self._open) and isinstance(self._open[-1], TableWithLines) and self._keys[-1] is None
        value = self._scalar_value(event)
        if not is_key:
            self._add_value(event.value if value is not None and self._is_text() else value, event, documents)
            return
        table = self._open[-1]
        assert isinstance(table, TableWithLines)
        if not isinstance(value, str):
            raise self._error_at(f"the key {_truncate(event.value)} is not text: quote it", event)
        if value in table:
            raise self._error_at(f"duplicate key {value!r}, first on line {table.lines[value]}", event)
        table.lines[value] = self._event_line(event)
        table[value] = None
        self._keys[-1] = value

    def _is_text(self) -> bool:
        """Return whether the current scalar belongs to a key in `texts`, so that it is read as text."""
        is_below = len(self._open) == 1 or (len(self._open) == 2 and isinstance(self._open[1], list))
        return is_below and self._keys[-1] in self._texts

    def _add_value(self, value: object, event: yaml.Event, documents: list[object]) -> None:
        if not self._open:
            documents.append(value)
            return
        container, key = self._open[-1], self._keys[-1]
        if isinstance(container, list):
            container.append(value)
        elif key is None:
            raise self._error_at("a key is a list or a table", event)
        else:
            container[key] = value
            self._keys[-1] = None

    def _scalar_value(self, event: yaml.ScalarEvent) -> object:
        import yaml

        tag = event.tag
        is_plain = event.implicit[0]
        if tag is None and not (is_plain and event.value[:1] in self._first_characters):
            tag = "tag:yaml.org,2002:str"
        elif tag is None or tag == "!":
            tag = str(self._loader.resolve(yaml.ScalarNode, event.value, event.implicit))  # type: ignore[no-untyped-call]
        name = tag.removeprefix("tag:yaml.org,2002:")
        if name == "str":
            if not event.value.isascii() and any("\ud800" <= character <= "\udfff" for character in event.value):
                # The parser of PyYAML that is written in Python accepts surrogates.
                raise self._error_at("it has an incomplete surrogate pair", event)
            return event.value
        if name not in ("null", "bool", "int", "float", "timestamp"):
            problem = (
                "merge keys (<<) are not supported: write the values out"
                if name == "merge"
                else f"unsupported tag {_truncate(tag)}"
            )
            raise self._error_at(problem, event)
        node = yaml.ScalarNode(tag, event.value)
        try:
            value: object = self._loader.construct_object(node)
        except (ValueError, OverflowError, KeyError, IndexError) as error:
            raise self._error_at(f"{_truncate(event.value)} is not a valid {name}", event) from error
        return value

    def _event_line(self, event: yaml.Event) -> int:
        return self._first_line + (event.start_mark.line if event.start_mark else 0)

    def _error_at(self, message: str, event: yaml.Event) -> YamlError:
        return YamlError(message, self._event_line(event))


def _truncate(text: str) -> str:
    return text if len(text) <= _TEXT_CHARACTERS_SHOWN_MAX else f"{text[:_TEXT_CHARACTERS_SHOWN_MAX]}…"
