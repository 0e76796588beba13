"""What a condition implies: which fields must be one of some texts wherever it holds. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def implied_texts(node: ast.expr) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Pairs of a name and the texts of which its value must be one, of all that a condition asks for at once."""
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from implied_texts(value)
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Eq()], comparators=[ast.Constant(value=str(text))]):
            yield name, (text,)
        case ast.Compare(left=ast.Constant(value=str(text)), ops=[ast.Eq()], comparators=[ast.Name(id=name)]):
            yield name, (text,)
        case ast.Compare(
            left=ast.Name(id=name),
            ops=[ast.In()],
            comparators=[ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements)],
        ):
            texts = tuple(each.value for each in elements if isinstance(each, ast.Constant))
            if len(texts) == len(elements) and all(isinstance(text, str) for text in texts):
                yield name, tuple(map(str, texts))
        case _:
            pass
