"""Marks of slow tests. The fast loop, `-m "not slow"`, omits all tests of folders whose tests start processes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

_PROCESS_FOLDERS = frozenset({"bad_input", "cli", "commands", "execution", "faults", "oracles", "proof"})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of whole folders as slow."""
    for item in items:
        if item.path.parent.name in _PROCESS_FOLDERS:
            item.add_marker(pytest.mark.slow)
