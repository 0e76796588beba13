"""Ruby: constants, looked up in the enclosing classes and modules, then at the outermost level.

The result is `exact` if one file defines the constant, and its path fits the constant by the rule of Zeitwerk:
`lib/a/b_c.rb` defines `A::BC`. Zeitwerk loads classes by this rule, and gems follow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from codebatch.model.record import Edge, Symbol
from codebatch_workers.languages.ruby.nesting import INHERITS_MARK, constant_name, namespaces
from codebatch_workers.resolution.implicit_rule import ImplicitImport, ImplicitImportRule, found_in
from codebatch_workers.resolution.import_rule import ImportContext
from codebatch_workers.resolution.tree import FITTING_FILES_MAX, is_test_or_example

_CONSTANT_TYPES = frozenset({"class", "constant", "module"})
# The last component of directories below which paths follow the names of constants. `app/*` are such directories, too.
_ROOT_NAMES = frozenset({"concerns", "lib", "spec", "src", "support", "test", "tests"})
# Constants of Ruby and its standard library. A file that reopens one of them does not define it.
_BUILT_IN_NAMES = frozenset(
    {
        "ARGF", "ARGV", "ArgumentError", "Array", "Base64", "BasicObject", "Benchmark", "BigDecimal", "Binding",
        "Bundler", "CGI", "CSV", "Class", "Comparable", "Complex", "Data", "Date", "DateTime", "Delegator", "Digest",
        "Dir", "ENV", "EOFError", "ERB", "Encoding", "EncodingError", "Enumerable", "Enumerator", "Errno", "Etc",
        "Exception", "FalseClass", "Fiber", "File", "FileTest", "FileUtils", "Find", "Float", "Forwardable",
        "FrozenError", "GC", "Gem", "Hash", "IO", "IOError", "IPAddr", "IndexError", "Integer", "Interrupt", "JSON",
        "Kernel", "KeyError", "LoadError", "Logger", "Marshal", "MatchData", "Math", "Method", "Minitest", "Module",
        "Monitor", "Mutex", "NameError", "Net", "NilClass", "NoMethodError", "Numeric", "Object",
        "ObjectSpace", "Observable", "Open3", "OpenSSL", "OpenStruct", "OptionParser", "Pathname", "Proc", "Process",
        "Psych", "Queue", "RSpec", "Rack", "Rails", "Rake", "Ractor", "Random", "Range", "RangeError", "Rational",
        "Refinement", "Regexp", "RegexpError", "Ripper", "RuntimeError", "SecureRandom", "SecurityError", "Set",
        "Shellwords", "Signal", "SignalException", "SimpleDelegator", "Singleton", "SizedQueue", "Socket",
        "StandardError", "StopIteration", "String", "StringIO", "StringScanner", "Struct", "Symbol", "SyntaxError",
        "SystemCallError", "SystemExit", "Tempfile", "Test", "Thread", "Time", "Timeout", "TrueClass", "TypeError",
        "UNIXSocket", "URI", "UnboundMethod", "Warning", "WeakRef", "YAML", "ZeroDivisionError", "Zlib"
    }
)  # fmt: skip


class RubyConstants(ImplicitImportRule):
    """The constants that the Ruby files of a tree define."""

    def __init__(self, context: ImportContext) -> None:
        # A file that only opens a module, to define other constants in it, is not in `_definitions`.
        self._definitions: dict[str, list[str]] = {}
        self._opened: set[str] = set()
        self._partial: set[str] = set()
        self._is_test = cache(is_test_or_example)

    def add_definitions(self, path: str, language: str, symbols: Sequence[Symbol], *, is_partial: bool) -> None:
        scopes = {constant_name(symbol.scope) for symbol in symbols if symbol.symbol_type not in ("class", "module")}
        outer = {constant_name(symbol.scope) for symbol in symbols if symbol.symbol_type in ("class", "module")}
        constants: dict[str, bool] = {}
        if is_partial:
            self._partial.add(path)
        for symbol in symbols:
            if symbol.symbol_type in _CONSTANT_TYPES:
                constant = constant_name(symbol.qualified)
                is_defined = symbol.symbol_type == "constant" or constant in scopes or constant not in outer
                constants[constant] = constants.get(constant, False) or is_defined
        self._opened.update(constants)
        for constant, is_defined in constants.items():
            # A syntax error can turn another name into the name of a class.
            if (is_defined and not is_partial) or _fits(path, constant):
                self._definitions.setdefault(constant, []).append(path)

    def resolve(
        self, path: str, language: str, name: str, scope: str, imports: Sequence[Edge]
    ) -> ImplicitImport | None:
        parts = [part for part in name.split("::") if part]
        nesting = scope.removesuffix(INHERITS_MARK).split()
        outer = [] if name.startswith("::") else nesting
        for namespace in namespaces(outer):
            first = f"{namespace}::{parts[0]}" if namespace else parts[0]
            if first in self._opened:
                break
        else:
            return None
        full = "::".join([first, *parts[1:]])
        for count in range(len(parts), 0, -1):
            constant = full if count == len(parts) else full.rsplit("::", len(parts) - count)[0]
            if constant in self._definitions:
                # Constants of a superclass precede those of the outermost level.
                is_certain = bool(namespace) or not outer or not self._can_inherit(path, scope, nesting)
                is_whole = count == len(parts)
                written = "::".join(parts[:count])
                return self._found(path, constant, written, is_certain=is_certain, is_whole=is_whole)
        return None

    def _can_inherit(self, path: str, scope: str, nesting: Sequence[str]) -> bool:
        definers = self._definitions.get(next(namespaces(nesting)), ())
        return scope.endswith(INHERITS_MARK) or any(definer != path for definer in definers)

    def _found(
        self, path: str, constant: str, written: str, *, is_certain: bool, is_whole: bool
    ) -> ImplicitImport | None:
        if constant in _BUILT_IN_NAMES:
            return None
        definers = self._definitions[constant]
        if path in definers:
            return None
        if not self._is_test(path):
            definers = [definer for definer in definers if not self._is_test(definer)]
        fitting = [definer for definer in definers if _fits(definer, constant)]
        is_certain = is_certain and path not in self._partial
        if len(definers) == 1 and (fitting or is_whole):
            return found_in(tuple(definers), written, is_certain=is_certain and bool(fitting))
        if len(fitting) == 1:
            return found_in(tuple(fitting), written, is_certain=False)
        return found_in(tuple(sorted(definers)), written) if is_whole and len(definers) <= FITTING_FILES_MAX else None


def _fits(path: str, constant: str) -> bool:
    """Return whether a path fits a constant, or a constant that contains it, by the rule of Zeitwerk.

    In the last component, only the beginning of the constant counts: many gems define `FooAction` in `foo.rb`.
    """
    names = constant.lower().replace("_", "").split("::")
    parts = path.removesuffix(".rb").lower().replace("_", "").split("/")
    for index in range(len(parts)):
        tail = parts[index:]
        is_root = index == 0 or parts[index - 1] in _ROOT_NAMES or (index > 1 and parts[index - 2] == "app")
        if is_root and len(tail) <= len(names) and tail[:-1] == names[: len(tail) - 1]:
            name = names[len(tail) - 1]
            if name == tail[-1] or (len(tail) > 1 and name.startswith(tail[-1])):
                return True
    return False


IMPLICIT = {"ruby": RubyConstants}
