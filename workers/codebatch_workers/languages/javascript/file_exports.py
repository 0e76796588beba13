"""Imported and exported names of a JavaScript or TypeScript file, as ES modules and CommonJS modules declare them.

The text of an import specifier is kept as written. Exports in namespaces and in `declare module "x"` do not count.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from codebatch_workers.languages.javascript.declared_names import bound_names
from codebatch_workers.symbols.file_exports import ALL_NAMES, DEFAULT_NAME, WHOLE_MODULE, FileExports, ModuleExport
from codebatch_workers.symbols.imported_names import LocalImport, literal_text, node_text
from codebatch_workers.syntax.source import SourceFile

_EXPRESSIONS_AROUND_MAX = 4
_WRAPPING_NODES = frozenset({"as_expression", "await_expression", "non_null_expression", "parenthesized_expression"})
_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function"})
_PLAIN_NAMES = frozenset({"identifier", "type_identifier"})
_WRITTEN_VALUES = frozenset({"array", "call_expression", "class", "new_expression", "object"}) | _FUNCTION_VALUES


def file_exports(file: SourceFile) -> FileExports:
    """Return the imports and exports of a file. Without a tree, a file has none."""
    return FileExports() if file.tree is None else file.derived(_read_exports)


def _read_exports(file: SourceFile) -> FileExports:
    assert file.tree is not None
    imports = [*_iter_imports(file), *_iter_calls(file)]
    imports.sort(key=lambda imported: imported.start)
    exports: list[ModuleExport] = []
    for statement in file.tree.root_node.named_children:
        if statement.type == "export_statement":
            exports.extend(_iter_exports(statement, file.utf8))
        elif statement.type == "expression_statement":
            exports.extend(_iter_assigned(statement.named_children[0], file.utf8) if statement.named_children else ())
    return FileExports(tuple(imports), tuple(exports))


# -- Imports -----------------------------------------------------------------------------------------------------------


def _iter_imports(file: SourceFile) -> Iterator[LocalImport]:
    utf8 = file.utf8
    for statement in file.captures.get("import", ()):
        if statement.type == "import_alias":
            names = statement.named_children
            if len(names) > 1:
                yield _bound_name(file, names[0], "", node_text(names[1], utf8))
            continue
        source = statement.child_by_field_name("source")
        for clause in statement.named_children:
            if clause.type == "import_require_clause":
                required = clause.child_by_field_name("source")
                if required is not None and clause.named_children:
                    yield _bound_name(file, clause.named_children[0], literal_text(required, utf8), WHOLE_MODULE)
            elif clause.type == "import_clause" and source is not None:
                yield from _iter_clause(file, clause, literal_text(source, utf8))


def _iter_clause(file: SourceFile, clause: Node, module: str) -> Iterator[LocalImport]:
    for part in clause.named_children:
        if part.type == "identifier":
            yield _bound_name(file, part, module, DEFAULT_NAME)
        elif part.type == "namespace_import":
            yield from (_bound_name(file, name, module, ALL_NAMES) for name in part.named_children)
        elif part.type == "named_imports":
            for specifier in part.named_children:
                name = specifier.child_by_field_name("name")
                if name is not None:
                    local = specifier.child_by_field_name("alias") or name
                    yield _bound_name(file, local, module, _module_member(name, file.utf8))


def _iter_calls(file: SourceFile) -> Iterator[LocalImport]:
    """Yield the names that `const x = require("m")` and `const { a: b } = await import("m")` bind."""
    for literal in file.captures.get("importer", ()):
        call = None if literal.parent is None else literal.parent.parent
        module = "" if call is None else _required_module(call, file.utf8)
        if call is None or not module:
            continue
        is_required = not file.utf8.startswith(b"import", call.start_byte)
        value, member, is_awaited = _value_of_call(call, file.utf8)
        declarator = value.parent
        if declarator is None or declarator.type != "variable_declarator" or not (is_required or is_awaited):
            continue
        name = declarator.child_by_field_name("name")
        if name is None or declarator.child_by_field_name("value") != value:
            continue
        if name.type == "identifier":
            yield _bound_name(file, name, module, member or (WHOLE_MODULE if is_required else ALL_NAMES))
        elif name.type == "object_pattern" and not member:
            yield from _iter_destructured(file, name, module)


def _iter_destructured(file: SourceFile, pattern: Node, module: str) -> Iterator[LocalImport]:
    for part in pattern.named_children:
        if part.type == "shorthand_property_identifier_pattern":
            yield _bound_name(file, part, module, node_text(part, file.utf8))
        elif part.type == "pair_pattern":
            key, value = part.child_by_field_name("key"), part.child_by_field_name("value")
            if key is not None and value is not None and value.type == "identifier":
                yield _bound_name(file, value, module, _module_member(key, file.utf8))


def _value_of_call(call: Node, utf8: bytes) -> tuple[Node, str, bool]:
    """Return the expression around a call that has the value of the module or of one member of it.

    Return also the name of this member, and whether the expression awaits the call.
    """
    value, member, is_awaited = call, "", False
    for _ in range(_EXPRESSIONS_AROUND_MAX):
        above = value.parent
        if above is None:
            break
        if above.type == "member_expression" and not member and above.child_by_field_name("object") == value:
            name = above.child_by_field_name("property")
            member = "" if name is None else node_text(name, utf8)
        elif above.type not in _WRAPPING_NODES:
            break
        is_awaited = is_awaited or above.type == "await_expression"
        value = above
    return value, member, is_awaited


def _required_module(call: Node, utf8: bytes) -> str:
    """Return the specifier of `require("m")` or `import("m")`, or an empty text."""
    function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
    if function is None or arguments is None or node_text(function, utf8) not in ("require", "import"):
        return ""
    literal = next((argument for argument in arguments.named_children if argument.type != "comment"), None)
    return literal_text(literal, utf8) if literal is not None and literal.type == "string" else ""


def _bound_name(file: SourceFile, local: Node, module: str, member: str) -> LocalImport:
    start = local.start_byte
    return LocalImport(node_text(local, file.utf8), module, member, file.line(start), start)


def _module_member(name: Node, utf8: bytes) -> str:
    return literal_text(name, utf8) if name.type == "string" else node_text(name, utf8)


# -- Exports -----------------------------------------------------------------------------------------------------------


def _iter_exports(statement: Node, utf8: bytes) -> Iterator[ModuleExport]:
    source = statement.child_by_field_name("source")
    module = "" if source is None else literal_text(source, utf8)
    declaration, value = statement.child_by_field_name("declaration"), statement.child_by_field_name("value")
    marks = {child.type for child in statement.children if not child.is_named}
    if declaration is not None:
        names = [utf8[start:end].decode("utf-8", "replace") for start, end in _declared_names(declaration)]
        if "default" in marks:
            yield ModuleExport(DEFAULT_NAME, names[0] if names else DEFAULT_NAME)
        else:
            yield from (ModuleExport(name, name) for name in names)
    elif value is not None:
        yield ModuleExport(DEFAULT_NAME, _local_name(value, utf8))
    for part in statement.named_children:
        if part.type == "export_clause":
            yield from _iter_clause_exports(part, module, utf8)
        elif part.type == "namespace_export" and part.named_children:
            yield ModuleExport(_module_member(part.named_children[0], utf8), "", module, ALL_NAMES)
        elif part.type == "identifier" and "=" in marks:
            yield ModuleExport(WHOLE_MODULE, node_text(part, utf8))
    if "*" in marks:
        yield ModuleExport(ALL_NAMES, "", module, ALL_NAMES)


def _iter_clause_exports(clause: Node, module: str, utf8: bytes) -> Iterator[ModuleExport]:
    for specifier in clause.named_children:
        name = specifier.child_by_field_name("name")
        if name is None:
            continue
        member = _module_member(name, utf8)
        exported = specifier.child_by_field_name("alias")
        exported_name = member if exported is None else _module_member(exported, utf8)
        yield (ModuleExport(exported_name, "", module, member) if module else ModuleExport(exported_name, member))


def _declared_names(declaration: Node) -> list[tuple[int, int]]:
    """Return the ranges of the names that an exported declaration defines."""
    if declaration.type == "ambient_declaration":
        return [name for inner in declaration.named_children for name in _declared_names(inner)]
    if declaration.type in ("lexical_declaration", "variable_declaration"):
        declarators = [child.child_by_field_name("name") for child in declaration.named_children]
        return [name for declarator in declarators if declarator is not None for name in bound_names(declarator)]
    name = declaration.child_by_field_name("name")
    if name is None and declaration.type == "import_alias":
        name = next(iter(declaration.named_children), None)
    if name is not None and name.type == "nested_identifier":
        name = name.child_by_field_name("object")
    return [] if name is None else [(name.start_byte, name.end_byte)]


def _local_name(value: Node, utf8: bytes) -> str:
    """Return the local name that an exported value has, DEFAULT_NAME if it has none, or an empty text if unknown."""
    if value.type in _PLAIN_NAMES:
        return node_text(value, utf8)
    if value.type in _WRITTEN_VALUES:
        name = value.child_by_field_name("name")
        return DEFAULT_NAME if name is None else node_text(name, utf8)
    return ""


def _iter_assigned(expression: Node, utf8: bytes) -> Iterator[ModuleExport]:
    """Yield what an assignment to `module.exports` or to a member of it exports."""
    targets: list[str] = []
    value = expression
    while value.type == "assignment_expression":
        left, right = value.child_by_field_name("left"), value.child_by_field_name("right")
        if left is None or right is None:
            return
        targets.append(node_text(left, utf8))
        value = right
    for target in targets:
        if target == "module.exports":
            yield from _iter_module_value(value, utf8)
        elif target.startswith(("exports.", "module.exports.")):
            name = target.rpartition(".")[2]
            if target in (f"exports.{name}", f"module.exports.{name}"):
                yield _assigned_export(name, value, utf8)


def _iter_module_value(value: Node, utf8: bytes) -> Iterator[ModuleExport]:
    if value.type != "object":
        yield _assigned_export(WHOLE_MODULE, value, utf8)
        return
    for part in value.named_children:
        if part.type == "shorthand_property_identifier":
            name = node_text(part, utf8)
            yield ModuleExport(name, name)
        elif part.type == "pair":
            key, member = part.child_by_field_name("key"), part.child_by_field_name("value")
            if key is not None and member is not None and key.type != "computed_property_name":
                yield _assigned_export(_module_member(key, utf8), member, utf8)
        elif part.type == "method_definition" and (key := part.child_by_field_name("name")) is not None:
            yield ModuleExport(node_text(key, utf8), node_text(key, utf8))
        elif part.type == "spread_element":
            inner = part.named_children[0] if part.named_children else part
            yield ModuleExport(ALL_NAMES, "", _required_module(inner, utf8), ALL_NAMES)


def _assigned_export(name: str, value: Node, utf8: bytes) -> ModuleExport:
    module = _required_module(value, utf8) if value.type == "call_expression" else ""
    if module:
        return ModuleExport(name, "", module, WHOLE_MODULE)
    if value.type in _FUNCTION_VALUES and name != WHOLE_MODULE:
        return ModuleExport(name, name)
    return ModuleExport(name, node_text(value, utf8) if value.type == "identifier" else "")
