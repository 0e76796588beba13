"""Rules of a language for the objects that expressions have as their values."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from tree_sitter import Node

from codebatch_workers.uses.declarations import LoopReader


class ValueRules(msgspec.Struct, frozen=True, kw_only=True):
    """The names of types, functions and methods that show the class of a value. Names of types have no prefix.

    - `wrappers`: types whose objects have the class, or the elements, of their first type argument.
    - `class_wrappers`: other types with the class, but not the elements, of their first type argument.
    - `unions`: types whose objects have the class of one of their type arguments.
    - `qualifiers`: types that, without a type argument, leave the class to the value.
    - `own_types`: returns the types as written that mean, in a function, the class of its object.
    - `has_opaque_decorator`: returns whether a decorator can change the type of the result of a function.
    - `collections`: types whose first type argument is the type of their elements.
    - `mappings`: types whose first and last type arguments are those of their keys and values.
    - `copies`: functions that return a collection with the elements of their argument.
    - `calling_methods`: methods of a collection that pass each element to a function.
    - `entering_methods`: methods of an object whose result `with` binds.
    - `read_loop`: returns what a loop states about its variables, see `LoopReader`.
    """

    wrappers: frozenset[str] = frozenset()
    class_wrappers: frozenset[str] = frozenset()
    unions: frozenset[str] = frozenset()
    qualifiers: frozenset[str] = frozenset()
    own_types: Callable[[Node, bytes], frozenset[str]] | None = None
    has_opaque_decorator: Callable[[Node, bytes], bool] | None = None
    collections: frozenset[str] = frozenset()
    mappings: frozenset[str] = frozenset()
    copies: frozenset[str] = frozenset()
    calling_methods: frozenset[str] = frozenset()
    entering_methods: tuple[str, ...] = ()
    read_loop: LoopReader | None = None
