"""What only the workers' code knows, asked of it by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from codebatch.protocol.launch import QUESTIONS_MODULE


def load_question(name: str, module: str = QUESTIONS_MODULE) -> Callable[..., object]:
    """A function of the workers' code, by name: how the command line asks what only that knows."""
    question: object = getattr(importlib.import_module(module), name)
    assert callable(question)
    return question
