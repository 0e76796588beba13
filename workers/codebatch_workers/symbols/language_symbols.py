"""Facts about the definitions of a language that outlines, imports, calls and occurrences need."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

import msgspec
from tree_sitter import Node

from codebatch.model.record import Names, SymbolType, Visibility
from codebatch_workers.symbols.file_exports import FileExports
from codebatch_workers.symbols.file_outline import FileOutline
from codebatch_workers.symbols.imported_names import ImportsReader
from codebatch_workers.symbols.macros import MacroRules
from codebatch_workers.syntax.language.parts import LanguagePart
from codebatch_workers.syntax.source import SourceFile

UsedNamesReader = Callable[[SourceFile, FileOutline], "Names | None"]
"""A function that returns the record with the names that a file uses, or None if there are none."""


UnmarkedCallsReader = Callable[[SourceFile], tuple[tuple[int, int], ...]]
"""A function that returns the ranges of called chains of names for which the grammar has no call, in text order."""

InnerNameRule = Callable[[Node, bytes, int, int], bool]
"""A function that returns whether a part of a token is a name.

The arguments are the node of the token, the text of the file, and the start and end of the part.
"""


class LoadTime(msgspec.Struct, frozen=True, kw_only=True):
    """The time at which imports are executed: when their file is loaded, later, or never.

    - `function_nodes`: nodes whose code runs only when they are called. In a language without them, imports are
      resolved before any code runs.
    - `is_deferred`: an import outside of these nodes is executed later.
    - `is_type_only`: an import is never executed, because its names are only for a type checker.
    - `is_erasable`: a compiler erases the import or export that contains a node, if no option prevents this.
    - `declaration_endings`: endings of the paths of files that are never executed.
    """

    function_nodes: frozenset[str] = frozenset()
    is_deferred: Callable[[Node, bytes], bool] | None = None
    is_type_only: Callable[[Node, bytes], bool] | None = None
    is_erasable: Callable[[SourceFile, Node], bool] | None = None
    declaration_endings: tuple[bytes, ...] = ()


class ParameterRules(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of functions.

    - `leading_name`: a pattern for parameters that begin with their name, which is the last group.
    - `read_name`: a function that returns the name of any other parameter. By default, the name is the whole text.
    - `placeholder`: a pattern for captured text that is not a parameter, such as `void` in C.
    - `declare_fields`: each captured field of a parameter is one, not only those of constructors.
    - `have_decorators`: decorators in a method belong to its parameters.
    """

    leading_name: re.Pattern[bytes] | None = None
    read_name: Callable[[Node, bytes], str] | None = None
    placeholder: re.Pattern[bytes] | None = None
    declare_fields: bool = False
    have_decorators: bool = False


class MarkRules(msgspec.Struct, frozen=True, kw_only=True):
    """The marks of definitions with which other code can find and call them (marks.py).

    - `descriptions`: the last parts of the names of marks that only describe a definition, in lower case. Others count.
    - `counted`: the last parts of the names of marks that count. If there are none, `descriptions` decides.
    - `read_before`: a function that returns marks in a node before a definition, for which the grammar has no node.
    - `read_around`: a function that returns marks that a node around a definition states.
    """

    descriptions: frozenset[bytes] = frozenset()
    counted: frozenset[str] = frozenset()
    read_before: Callable[[Node], Iterator[str]] | None = None
    read_around: Callable[[Node], Iterator[str]] | None = None


class TypeDeclaration(NamedTuple):
    """A declaration of a type: its number of type parameters, whether it is partial, and whether it is below `#if`."""

    type_parameters: int = 0
    is_partial: bool = False
    is_conditional: bool = False


OTHER_DECLARATION = TypeDeclaration()

TypeDeclarationsReader = Callable[[Mapping[str, Sequence[Node]], bytes, Sequence[int]], dict[int, TypeDeclaration]]
"""A function that maps the offset of a name to its declaration, from the captures, the text and all ascending offsets.

Names without a property of TypeDeclaration are left out.
"""

VisibilityRule = Callable[[str, SymbolType, str], Visibility]
"""A function that returns the visibility of a name without a keyword.

The arguments are the name, its symbol type, and the symbol type of the enclosing definition.
"""


class LanguageSymbols(LanguagePart, frozen=True, kw_only=True):
    """The definitions of a language, and the names in its code.

    - `scope_separator`: the text between the names in a qualified name.
    - `is_constructor`: returns whether a method constructs objects, by its name and that of its class. Captures show
      other constructors.
    - `parameters`: rules for the parameters of functions.
    - `visibility`: the visibility of names without a keyword. By default, they are public.
    - `type_declarations`: a function that returns properties of the declarations of types.
    - `rejects_reserved_names`: the grammar accepts a reserved word as a name only in code with errors.
    - `capitals_are_constants`: a variable in capitals is a constant.
    - `has_unnamed_types`: a field at file level belongs to a type without a name, and is not recorded.
    - `has_nested_functions`: a function in a function is not an error of the grammar.
    - `trailing_marks`: the characters after a definition that the grammar includes in it, besides white space.
    - `imports`: a function that returns the imported names of an import statement.
    - `load_time`: the time at which imports are executed.
    - `exports`: a function that returns the names that a module imports and exports.
    - `has_imports_without_calls`: no import contains a call, so that recorded calls show what a name is.
    - `has_only_strings`: the language has no names of its own. Strings can name definitions of other files.
    - `import_calls`: types of imports whose names are those of arguments, not of what is imported: `require(f())`.
    - `inner_names`: for types of tokens, a rule that finds the names that are a part of a token.
    - `nameless_nodes`: types of nodes whose identifiers are not names, such as the labels of loops.
    - `name_ends`: characters with which names can end, and which have other meanings in expressions: `?` in `empty?`.
    - `macros`: functions that read the macros of a language with a preprocessor.
    - `marks`: rules for the marks of definitions.
    - `outer_callees`: types of captured callees that contain another captured callee, which is the one that counts.
    - `unmarked_calls`: a function that returns the calls for which the grammar has no node.
    - `used_names`: a function that returns the names that a file uses without an import. The file has a tree.
    """

    MODULE: ClassVar[str] = "symbols"

    scope_separator: str = "."
    is_constructor: Callable[[str, str], bool] | None = None
    parameters: ParameterRules = ParameterRules()
    visibility: VisibilityRule | None = None
    type_declarations: TypeDeclarationsReader | None = None
    rejects_reserved_names: bool = False
    capitals_are_constants: bool = False
    has_unnamed_types: bool = False
    has_nested_functions: bool = True
    trailing_marks: bytes = b""
    imports: ImportsReader | None = None
    load_time: LoadTime = LoadTime()
    exports: Callable[[SourceFile], FileExports] | None = None
    has_imports_without_calls: bool = False
    has_only_strings: bool = False
    import_calls: frozenset[str] = frozenset()
    inner_names: Mapping[str, InnerNameRule] = {}
    nameless_nodes: frozenset[str] = frozenset()
    name_ends: bytes = b""
    macros: MacroRules | None = None
    marks: MarkRules = MarkRules()
    outer_callees: frozenset[str] = frozenset()
    unmarked_calls: UnmarkedCallsReader | None = None
    used_names: UsedNamesReader | None = None
