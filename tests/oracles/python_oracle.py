"""Python compared with its own `ast` and `symtable`: definitions, scopes, imports, bases, calls."""

from __future__ import annotations

import ast
import symtable
import warnings
from collections.abc import Iterable, Iterator, Set

from codebatch_workers.symbols.outline import file_outline
from codebatch_workers.syntax.source import SourceFile
from tests.oracles.agreement import Agreement, Fact, compare

_FUNCTIONS = ("function", "method", "constructor", "property")


def agree(files: Iterable[SourceFile]) -> Agreement:
    """Compare symbols and edges with `ast` and `symtable`, for files that this interpreter can parse."""
    actual_facts: list[Fact] = []
    expected_facts: list[Fact] = []
    for file in files:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(file.text)
                table = symtable.symtable(file.text, "", "exec")
        except (SyntaxError, ValueError):
            continue
        path = file.path.decode()
        actual_facts.extend(_iter_actual_facts(file, path))
        visitor = _Visitor(path)
        visitor.visit(tree)
        expected_facts.extend(visitor.facts)
        expected_facts.extend(
            {("bound", path, *name) for name in (*_bound_names(table, "", _stored_names(tree)), *visitor.members)}
        )
    return compare(actual_facts, expected_facts)


def _iter_actual_facts(file: SourceFile, path: str) -> Iterator[Fact]:
    outline = file_outline(file)
    classes = {"", *(symbol.qualified for symbol in outline.symbols if symbol.symbol_type == "class")}
    bound = set()
    for symbol in outline.symbols:
        if symbol.symbol_type == "class" or symbol.symbol_type in _FUNCTIONS:
            kind = "class" if symbol.symbol_type == "class" else "function"
            yield kind, path, symbol.line, symbol.qualified
            yield "end", path, symbol.qualified, symbol.end_line
        if symbol.scope in classes:
            bound.add((symbol.scope, symbol.name))
    for scope, name in bound:
        yield "bound", path, scope, name
    for edge in outline.edges:
        if edge.edge_type == "imports":
            yield "import", path, edge.line, edge.source, edge.target
        elif edge.edge_type == "inherits":
            yield "base", path, edge.line, edge.source, edge.target
        elif not edge.target.startswith("."):
            yield "call", path, edge.line, edge.source, edge.target


def _bound_names(table: symtable.SymbolTable, scope: str, stored: Set[str]) -> Iterator[tuple[str, str]]:
    """Yield the names that the module, and classes outside of functions, bind. `_` is not a name.

    Since 3.12 (PEP 709), a table also has the variables of comprehensions in its scope. They are not in `stored`.
    """
    for symbol in table.get_symbols():
        name = _source_name(symbol.get_name(), table)
        if symbol.is_imported() or (symbol.is_assigned() and name in stored and name != "_"):
            yield scope, name
    for child in table.get_children():
        inner = f"{scope}.{child.get_name()}" if scope else child.get_name()
        if child.get_type() == "class":
            yield from _bound_names(child, inner, stored)
        elif child.get_type() == "function" and child.get_name() != "lambda":
            yield from (fact for fact in _bound_names(child, inner, stored) if fact[0] != inner)


def _stored_names(tree: ast.Module) -> set[str]:
    """Return the names that are stored by anything other than a comprehension or an import."""
    targets = [node.target for node in ast.walk(tree) if isinstance(node, ast.comprehension)]
    of_comprehensions = {id(node) for target in targets for node in ast.walk(target)}
    stored = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if id(node) not in of_comprehensions:
                stored.add(name)
            case ast.FunctionDef(name=str(name)) | ast.AsyncFunctionDef(name=str(name)) | ast.ClassDef(name=str(name)):
                stored.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                stored.add(name)
            case ast.MatchMapping(rest=str(name)):
                stored.add(name)
            case _:
                pass
    return stored


def _source_name(name: str, table: symtable.SymbolTable) -> str:
    """Return a private name of a class as in the source: `_C__x` is `__x`."""
    prefix = f"_{table.get_name().lstrip('_')}__"
    return name[len(prefix) - 2 :] if table.get_type() == "class" and name.startswith(prefix) else name


class _Visitor(ast.NodeVisitor):
    def __init__(self, path: str) -> None:
        self.path = path
        self.scope: list[str] = []
        self.kinds: list[str] = []
        self.facts: list[Fact] = []
        self.members: set[tuple[str, str]] = set()

    def _enter(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, kind: str) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
            if not isinstance(decorator, ast.Call):
                self._call(decorator)
        self.scope.append(node.name)
        self.kinds.append(kind)
        line = node.lineno
        self.facts.append((kind, self.path, line, ".".join(self.scope)))
        self.facts.append(("end", self.path, ".".join(self.scope), node.end_lineno or 0))
        if isinstance(node, ast.ClassDef):
            for base in node.bases:
                inner = base.func if isinstance(base, ast.Call) else base
                name = _dotted_name(inner.value if isinstance(inner, ast.Subscript) else inner)
                if name:
                    self.facts.append(("base", self.path, base.lineno, ".".join(self.scope), name))
        for child in ast.iter_child_nodes(node):
            if child not in node.decorator_list:
                self.visit(child)
        self.scope.pop()
        self.kinds.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._enter(node, "class")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._enter(node, "function")

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._enter(node, "function")

    def visit_Call(self, node: ast.Call) -> None:
        generic = node.func.value if isinstance(node.func, ast.Subscript) else None
        is_class = generic is not None and _dotted_name(generic).rpartition(".")[2][:1].isupper()
        self._call(generic if generic is not None and is_class else node.func)  # A class with type arguments.
        self.generic_visit(node)

    def _call(self, callee: ast.expr) -> None:
        name = _dotted_name(callee)
        if name:
            self.facts.append(("call", self.path, callee.end_lineno or 0, ".".join(self.scope), name))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if (
            isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
            and self.kinds[-2:] == ["class", "function"]
        ):
            self.members.add((".".join(self.scope[:-1]), node.attr))
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.facts.append(("import", self.path, alias.lineno, ".".join(self.scope), alias.name))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            target = f"{module}{'' if module.endswith('.') else '.'}{alias.name}"
            self.facts.append(("import", self.path, alias.lineno, ".".join(self.scope), target))


def _dotted_name(node: ast.expr) -> str:
    """Return `a.b.c`, or an empty string if the expression has more than names and dots."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""
