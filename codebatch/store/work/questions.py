"""Questions on disk: write-once files in `questions/` of a work batch, named by the attempt (SPEC.md "Questions")."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

from codebatch.errors import StoreUnwritable
from codebatch.model.documents import DocumentError
from codebatch.model.work.question import Question, decode_question, encode_question
from codebatch.store import layout
from codebatch.store.documents import read_document_bytes
from codebatch.store.layout import QuestionNameParts
from codebatch.system.files.files import StoreFiles


class QuestionStore:
    """The questions of one work batch. Each is read from disk only once."""

    def __init__(self, files: StoreFiles, batch_root: Path) -> None:
        self._files = files
        self._directory = batch_root / layout.QUESTIONS
        self._known: dict[str, Question | None] = {}

    def read(self) -> list[tuple[QuestionNameParts, Question]]:
        """Return the questions that appeared since the last call.

        Questions of the same attempt are in the order in which they were asked.

        Unreadable questions are skipped. Their attempts keep waiting, and users can cancel these attempts.
        """
        places = {}
        for name in self._files.listing(self._directory):
            if name not in self._known and (place := layout.parse_question_name(name)) is not None:
                places[place] = name
        questions: list[tuple[QuestionNameParts, Question]] = []
        for place, name in sorted(places.items()):
            question = self._known[name] = self._read_question(name, place)
            if question is not None:
                questions.append((place, question))
        return questions

    def item_questions(self, item: tuple[str, int]) -> Sequence[Question]:
        """Return the questions of all attempts of an item, ordered by round, epoch and number.

        `item` is (shard, number in the shard).
        """
        self.read()
        places = [(layout.parse_question_name(name), question) for name, question in self._known.items() if question]
        return [question for place, question in sorted(places, key=_question_sort_key) if place and place[:2] == item]

    def publish(self, place: QuestionNameParts, question: Question) -> None:
        """Publish a question. On return it is on disk. Idempotent. Raises StoreUnwritable."""
        self._files.make_directory(self._directory)
        hidden = self._directory / f".{uuid.uuid4().hex}.tmp"
        self._files.write_new(hidden, encode_question(question))
        try:
            name = layout.question_name(place)
            is_created = self._files.create_exclusive(hidden, self._directory / name)
            # If the file exists, an earlier call has published the same question.
            if not is_created and self._read_question(name, place) != question:
                raise StoreUnwritable(f"file {self._directory / name} already exists and contains another question")
        finally:
            self._files.remove(hidden)
        self._files.sync_directory(self._directory)

    def _read_question(self, name: str, place: QuestionNameParts) -> Question | None:
        path = self._directory / name
        try:
            question = decode_question(read_document_bytes(self._files, path))
        except (FileNotFoundError, DocumentError):
            return None
        matches_name = (question.round, question.epoch, question.number) == place[2:]
        return question if matches_name else None


def _question_sort_key(entry: tuple[QuestionNameParts | None, Question]) -> tuple[QuestionNameParts | None, str]:
    return entry[0], entry[1].text
