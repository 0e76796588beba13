"""Rules of a language that the resolution of uses needs, and the kinds of symbols that it distinguishes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal, Protocol

import msgspec
from tree_sitter import Node

from codebatch.model.analysis.uses import Certainty
from codebatch_workers.symbols.file_exports import ModuleExport
from codebatch_workers.symbols.local_names import TypeReader
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.uses.local_imports import ImportBinder
from codebatch_workers.uses.value_rules import ValueRules

CLASS_TYPES = frozenset({"class", "struct", "union", "interface", "trait", "enum", "type"})
NAMESPACE_TYPES = frozenset({"module", "namespace"})
VALUE_TYPES = frozenset({"variable", "constant", "field", "property", "enum_member"})
FUNCTION_TYPES = frozenset({"function", "method", "constructor", "macro"})


class ArgumentRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules by which the arguments of a call show which of several functions with one name it means.

    - `are_checked`: a call with too few or too many arguments does not compile.
    - `inherits_defaults`: a method can have the defaults of a method that it overrides or implements.
    - `spreads_results`: a call as the only argument can stand for several arguments.
    - `separates_defaults`: a declaration elsewhere can have the defaults of a function outside of a class.
    - `converts_truth`: truth values are also numbers and the other way round.
    - `object_is_argument`: the text before the name of a method, if the object can be the first argument.
    """

    are_checked: bool = False
    inherits_defaults: bool = False
    spreads_results: bool = False
    separates_defaults: bool = False
    converts_truth: bool = False
    object_is_argument: re.Pattern[bytes] | None = None


class ModuleRules(Protocol):
    """Modules that are named after their files. The target of an import can be such a module, or a name in it.

    - `is_module`: whether a target, in an import of the file `importer`, names the file at a path, not a name in it.
    - `package_of`: the path of the package that contains a module.
    - `outermost_package`: the path of the package `a` for a target `a.b` that leads to a path.
    - `star_visibility`: how certain it is that an import of all names binds a name. It is `name` if it does not.
    """

    def is_module(self, target: str, importer: str, path: str) -> bool: ...
    def package_of(self, path: str) -> str: ...
    def outermost_package(self, target: str, path: str) -> str: ...
    def star_visibility(self, module: SourceFile, name: str) -> Certainty: ...


FieldOrigin = Literal["declared", "assigned", "set"]
"""The code that introduces a field: a declaration, a value in the body of the class, or a value in a method."""


class LanguageRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a language.

    - `is_resolved`: uses are resolved to definitions. Otherwise, only local names and chains are known.
    - `is_sequential`: a block sees a variable only after its declaration.
    - `has_arrows`: `->` separates the names of a chain.
    - `own_object`, `base_object`: the names that mean the object or class of the enclosing method, and its base class,
      for the common rules.
    - `has_overloads`: a class or scope can define several functions with one name.
    - `modules`: modules that are named after their files, or None if imports have other targets.
    - `read_export`: returns the export that has a name in it, such as `export { name as other }`, or None.
    - `constructor_member`: the member of each object that is its class, not the constructor that a class defines.
    - `has_bindings`: the bindings of a file (`syntax/bindings.py`) have every name that the file binds. The common
      rules need this. A language without it needs a resolver of its own.
    - `builtins`: names that every file can use without a definition.
    - `read_type`: reads the declared types of names, see `LocalNames`.
    - `names_of_class_bodies`: names that each class binds in its body.
    - `field_origin`: returns the origin of a field with a name. By default, fields are declared.
    - `capitals_construct`: a call of a name with a capital letter constructs an object.
    - `values`: names and statements that show the class of a value (`value_rules.py`).
    - `calls_construct`: a call of a class constructs an object. This is a common rule, see `resolver.py`.
    - `call_objects`: maps the names of special functions to the object that a call returns: one of the base class, the
      first argument, or the object that the name itself means.
    - `namespace_separator`: the text behind a name that means a namespace.
    - `shares_packages`: the files of a package see the symbols of each other.
    - `is_local_name`: returns whether an unresolved name is a local variable. By default, its definitions in the file
      show this.
    - `bind_import`: returns the name that an import binds, or None if the common rules apply.
    - `arguments`: how arguments show which function a call means, or None if they do not.
    - `not_overridable`: the text up to the end of the name of a method, if no other method overrides it. This does not
      apply to the methods of interfaces and traits.
    - `groups_parameters`: several parameters can share one type, as in `a, b int`.
    - `signatures`: nodes and decorators that declare a function whose code another definition has.
    - `labels`: nodes whose field `name`, or first child, names an argument or a key.
    """

    is_resolved: bool = True
    is_sequential: bool = False
    has_arrows: bool = False
    own_object: frozenset[str] = frozenset()
    base_object: frozenset[str] = frozenset()
    has_overloads: bool = False
    modules: ModuleRules | None = None
    read_export: Callable[[Node, bytes], ModuleExport | None] | None = None
    has_bindings: bool = False
    constructor_member: str = ""
    builtins: frozenset[str] = frozenset()
    read_type: TypeReader | None = None
    names_of_class_bodies: frozenset[str] = frozenset()
    field_origin: Callable[[Node], FieldOrigin] | None = None
    capitals_construct: bool = False
    values: ValueRules = ValueRules()
    calls_construct: bool = False
    call_objects: Mapping[str, Literal["bases", "first_argument", "itself"]] = {}
    namespace_separator: bytes = b""
    shares_packages: bool = False
    is_local_name: Callable[[Node], bool] | None = None
    bind_import: ImportBinder | None = None
    arguments: ArgumentRules | None = None
    not_overridable: re.Pattern[bytes] | None = None
    groups_parameters: bool = False
    signatures: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()


LINK_CERTAINTY: Mapping[object, Certainty] = {
    "exact": "exact",
    "file": "inferred",
    "name": "name",
    "external": "external",
}
"""The certainty that a link between files gives to the uses that follow it, by the resolution of the link."""
