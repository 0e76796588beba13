"""Access to functions of the workers' code by name, because this package must not import it."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from codebatch.protocol.launch import QUESTIONS_MODULE


def load_question(name: str, module: str = QUESTIONS_MODULE) -> Callable[..., object]:
    """Return a function of the workers' code by name, for queries of the command line that need a parser."""
    question: object = getattr(importlib.import_module(module), name)
    assert callable(question)
    return question
