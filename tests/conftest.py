"""What the fast loop, `-m "not slow"`, leaves out: all that starts processes. The rest tells most mistakes soon."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

_OF_PROCESSES = frozenset({"bad_input", "cli", "commands", "execution", "faults", "oracles", "proof"})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of whole folders as slow."""
    for item in items:
        if item.path.parent.name in _OF_PROCESSES:
            item.add_marker(pytest.mark.slow)
