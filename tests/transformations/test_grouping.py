"""The meaning of rewritten Python code, compared with the same transformation by the standard library's `ast`."""

from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st

from codebatch_workers.syntax.patterns.rewriting import compile_rewrite, rewrite_content
from codebatch_workers.syntax.source import SourceFile

_RULE = compile_rewrite("same($X, $Y)", "$Y != -$X", "python")
_FORMS = (
    "same({0}, {1})",
    "{0} + {1}",
    "{0} - {1}",
    "{0} ** {1}",
    "{0} < {1}",
    "not {0}",
    "-{0}",
    "({0} if {1} else b)",
    "(lambda: {0})",
    "{0} and {1}",
    "f({0}, k={1})",
    "[{0}, {1}]",
)
_EXPRESSIONS = st.recursive(
    st.sampled_from(["a", "1", "b.c", "'é'"]),
    lambda inner: st.builds(lambda form, *parts: form.format(*parts), st.sampled_from(_FORMS), inner, inner),
    max_leaves=6,
)


class _Rewriter(ast.NodeTransformer):
    def visit_Call(self, call: ast.Call) -> ast.expr:
        self.generic_visit(call)
        if isinstance(call.func, ast.Name) and call.func.id == "same":
            left, right = call.args
            return ast.Compare(right, [ast.NotEq()], [ast.UnaryOp(ast.USub(), left)])
        return call


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


@given(_EXPRESSIONS.filter(_is_python))
def test_rewritten_code_has_the_intended_meaning(expression: str) -> None:
    file = SourceFile(b"a.py", f"x = {expression}\n".encode(), executable=False, contexts={})
    rewritten = rewrite_content(file, [_RULE])
    assert not rewritten.left_out
    text = rewritten.content.decode()
    if "same" not in text:
        expected = _Rewriter().visit(ast.parse(file.text))
        assert ast.dump(ast.parse(text)) == ast.dump(expected), text
