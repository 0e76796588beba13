"""Suppression comments whose date has passed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, timezone

import msgspec

from codebatch.compare.conditions import EXPIRING
from codebatch.model.record import Diagnostic
from codebatch.operations.api.batch import Batch

_UNTIL = re.compile(r"`[^`]*` until ([0-9]{4}-[0-9]{2}-[0-9]{2}): ")


def utc_today() -> date:
    """Return the present day in UTC."""
    return datetime.now(timezone.utc).date()


def expired_suppressions(head: Batch, today: date) -> Iterator[Diagnostic]:
    """Yield the suppressions whose last day is before `today`, each as a new error. Raises StoreError."""
    for finding in head.diagnostics(code=EXPIRING):
        until = _UNTIL.match(finding.message)
        try:
            is_expired = until is not None and date.fromisoformat(until[1]) < today
        except ValueError:  # A custom task can report this code with any message.
            continue
        if is_expired:
            message = f"expired suppression: {finding.message}"
            yield msgspec.structs.replace(finding, severity="error", message=message)
