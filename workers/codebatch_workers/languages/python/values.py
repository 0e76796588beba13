"""The values of expressions in Python: names of types, loops, decorators and the types of `self`."""

from __future__ import annotations

from tree_sitter import Node

from codebatch_workers.uses.declarations import Declaration
from codebatch_workers.uses.value_rules import ValueRules

# Decorators that keep the type of the result of a function.
_TRANSPARENT_DECORATORS = frozenset(
    b"abstractmethod abc.abstractmethod cache cached_property classmethod functools.cache functools.cached_property "
    b"functools.lru_cache lru_cache overload override property staticmethod typing.overload".split()
)
_OWN_TYPES = frozenset({"Self", '"Self"', "typing.Self"})
_COLLECTIONS = """
AbstractSet AsyncIterable AsyncIterator Collection Deque FrozenSet Generator Iterable Iterator List MutableSequence
MutableSet Sequence Set Tuple deque frozenset list set tuple
"""


def _read_loop(target: Node, loop: Node, index: int, utf8: bytes) -> Declaration | None:
    """Return what `for x in xs`, `for i, x in enumerate(xs)` and `for k, x in xs.items()` state about a variable."""
    values = loop.child_by_field_name("right")
    if values is None or target.type == "identifier":
        return values and Declaration("element", values)
    function, arguments = values.child_by_field_name("function"), values.child_by_field_name("arguments")
    if index != 1 or function is None or arguments is None:
        return None
    if utf8[function.start_byte : function.end_byte] == b"enumerate" and arguments.named_children:
        return Declaration("element", arguments.named_children[0])
    mapping = function.child_by_field_name("object")
    is_items = function.type == "attribute" and utf8.endswith(b".items", function.start_byte, function.end_byte)
    return Declaration("entry", mapping) if is_items else None


def _own_types(function: Node, utf8: bytes) -> frozenset[str]:
    """Return the types that mean the class of the object, also `T` in `def f(self: T) -> T`."""
    parameters = function.child_by_field_name("parameters")
    first = parameters.named_children[0] if parameters is not None and parameters.named_children else None
    declared = None if first is None or first.type != "typed_parameter" else first.child_by_field_name("type")
    if first is None or declared is None or not utf8.startswith((b"self", b"cls"), first.start_byte):
        return _OWN_TYPES
    return _OWN_TYPES | {utf8[declared.start_byte : declared.end_byte].decode("utf-8", "replace")}


def _has_opaque_decorator(function: Node, utf8: bytes) -> bool:
    around = function.parent
    if around is None or around.type != "decorated_definition":
        return False
    decorators = (child.named_children for child in around.named_children if child.type == "decorator")
    names = (utf8[child.start_byte : child.end_byte].partition(b"(")[0] for nodes in decorators for child in nodes)
    return any(name not in _TRANSPARENT_DECORATORS and not name.endswith((b".setter", b".deleter")) for name in names)


PYTHON_VALUES = ValueRules(
    wrappers=frozenset({"ClassVar", "Final", "Optional"}),
    class_wrappers=frozenset({"Annotated", "Type", "type"}),
    unions=frozenset({"Union"}),
    qualifiers=frozenset({"ClassVar", "Final"}),
    own_types=_own_types,
    has_opaque_decorator=_has_opaque_decorator,
    collections=frozenset(_COLLECTIONS.split()),
    mappings=frozenset(["DefaultDict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "dict"]),
    copies=frozenset(["frozenset", "iter", "list", "reversed", "set", "sorted", "tuple"]),
    entering_methods=("__enter__", "__aenter__"),
    read_loop=_read_loop,
)
