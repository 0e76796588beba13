"""Formats of capsules and answers: sealed records, for an engine that executes a part (SPEC.md "Engines")."""

from __future__ import annotations

from codebatch.model.capsule import AnswerHeader, CapsuleHeader, CapsuleObject
from codebatch.model.part import ExternalOutcome
from codebatch.store.sealed_records import SealedFormat

capsule_format = SealedFormat(b"cbcaps\0\1", CapsuleHeader, CapsuleObject)
answer_format = SealedFormat(b"cbansw\0\1", AnswerHeader, ExternalOutcome)
