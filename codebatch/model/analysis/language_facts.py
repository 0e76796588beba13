"""Facts about a language by which queries decide whether their answers are complete."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

MentionStyle = Literal["quoted", "plain", "none"]


class ReferenceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts by which a check decides whether a change breaks an import or a use of a name.

    - `dynamic_names`: code that can define names which it does not contain.
    - `exports`: the exports of a file. A file with equal exports still exports its names. If None, all are exported.
    - `star_export`: an export of all names of another file. If None, the target of such an import ends with `*`.
    - `fallible_block`: the first line of a block that expects a use to fail. If None, only the line of a use decides.
    - `optional_block`: the same for imports.
    - `own_modules`: the modules of the language itself. The names of all modules are separated by dots.
    - `module_file`: the end of the path of a file whose private names are visible in it and in the modules below it.
      At the root of a tree of modules, it is the whole path.
    - `package_clause`: files with equal clauses see all names of each other, and other files the public ones.
    - `shares_directory`: the files of a directory define names together.
    """

    dynamic_names: re.Pattern[bytes] | None = None
    exports: re.Pattern[bytes] | None = None
    star_export: re.Pattern[bytes] | None = None
    fallible_block: re.Pattern[bytes] | None = None
    optional_block: re.Pattern[bytes] | None = None
    own_modules: frozenset[str] = frozenset()
    module_file: re.Pattern[str] | None = None
    package_clause: re.Pattern[bytes] | None = None
    shares_directory: bool = False


class LanguageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a language.

    - `mentions`: how a text names other files. In code, only string literals count (`quoted`). In data and commands,
      plain values count too (`plain`). In prose and lists of patterns, nothing counts (`none`).
    - `has_hash_comments`: lines that begin with `#` are comments. In other languages, those with `//`, `/*` or `<!--`
      are taken for comments.
    - `is_markup`: trees show no uses of names in attributes and embedded code.
    - `has_all_links`: imports are resolved. Uses without an import are resolved too, or do not exist.
    - `has_implicit_imports`: a file can use names of other files without an import.
    - `ignores_case`: names of functions, methods and classes are compared without case.
    - `maps_module_roots`: settings can map the beginning of a module name to any directory.
    - `has_structural_types`: a type has each interface whose methods it has, without a declaration.
    - `structural_base`: types with this base are implemented by each type that has their methods; for `interface`, all
      interfaces.
    - `merges_declarations`: all declarations of a class with one qualified name are one class, also in several files.
    - `attribute_ending`: the end of the names of attribute classes, which uses may leave out.
    - `is_native`: code can be called from, and can call, every other language.
    - `unparsed_users`: languages without a grammar whose files can import or use files of this language.
    - `unlinked_title`: the displayed name, if files define names but their uses of other files are not resolved.
    - `called_functions`: a pattern for names of functions outside of types that a runtime or framework calls.
    - `called_methods`: a pattern for names of methods that the language or its runtime calls without the name.
    - `base_mark`: the beginning of the mark of a method that names the base whose code calls it: `impl Base`.
    - `calls_by_type`: `Type.f(x)` calls the method of `x`, which can be the one of a subtype.
    - `has_methods_in_literals`: the key of a literal can be a method of a class or interface.
    - `indirect_bases`: a pattern for code that can derive a type from the type `NAME`, but does not declare `NAME` as
      its base: a class that is made at run time, a macro. Aliases `Other = NAME` exist in all languages.
    - `hides_fields`: a field does not override one of a base that has its name.
    - `refuses_cycles`: compilers refuse import cycles of packages, and compile the files of a package together.
    - `references`: the facts by which a check finds broken references. If None, references are not checked.
    - `test_mark`: marks of tests in source files, besides the code that they test.
    - `test_block`: such tests, up to the block with their code. The groups `test` and `module` are their names.
    """

    mentions: MentionStyle = "quoted"
    has_hash_comments: bool = False
    is_markup: bool = False
    has_all_links: bool = False
    has_implicit_imports: bool = False
    ignores_case: bool = False
    maps_module_roots: bool = False
    has_structural_types: bool = False
    structural_base: str = ""
    merges_declarations: bool = False
    attribute_ending: str = ""
    is_native: bool = False
    unparsed_users: frozenset[str] = frozenset()
    unlinked_title: str = ""
    called_functions: str = "main|Main|init"
    called_methods: str = ""
    base_mark: str = ""
    calls_by_type: bool = False
    has_methods_in_literals: bool = False
    indirect_bases: str = ""
    hides_fields: bool = False
    refuses_cycles: bool = False
    references: ReferenceFacts | None = None
    test_mark: re.Pattern[bytes] | None = None
    test_block: re.Pattern[bytes] | None = None
