"""Steps of a database's history: files that a framework applies once, in order, and nobody edits afterwards.

A program writes most of them (`makemigrations`, `alembic revision`, `dotnet ef migrations add`), people write the rest.
Nobody merges copies among them, but a mistake in one is a mistake like any other. The statements of its framework make
a file a migration; SQL has no such statement, so its path does.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class _Framework(NamedTuple):
    """A framework's migrations hold `needle`, match every one of `statements`, and have a path that matches `path`."""

    needle: bytes
    statements: tuple[re.Pattern[bytes], ...]
    path: re.Pattern[bytes] | None = None


_DIRECTORY = re.compile(rb"(?:^|/)migrations?/", re.IGNORECASE)
# Flyway, golang-migrate, goose, dbmate, sqlx: a number begins the name. Prisma, Diesel: it begins the directory's.
# Elsewhere a date, or a date and a time, is the name.
_SQL_PATH = re.compile(
    rb"(?:^|/)(?:migrations?|updates?|upgrades?)/(?:[^/]+/)*(?:[VU]?\d[^/]*|\d[^/]*/[^/]+)\.sql$|"
    rb"(?:^|/)(?:19|20)\d{6}(?:\d{2}|\d{4}|\d{6})?(?:[-_.][^/]*)?\.sql$",
    re.IGNORECASE,
)


def _statement(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern, re.MULTILINE)


_JAVA = _Framework(b"JavaMigration", (_statement(rb"(?:\bextends|\bimplements|:)\s*(?:Base)?JavaMigration\b"),))
_SCRIPT = _Framework(
    b"up",
    (
        _statement(rb"\bup\b\s*[:=(]"),
        _statement(rb"\b(?:knex|pgm|[qQ]ueryInterface|[qQ]ueryRunner|MigrationInterface)\b"),
    ),
    _DIRECTORY,
)
_FRAMEWORKS = {
    "csharp": (
        # Entity Framework, FluentMigrator.
        _Framework(
            b"Migration",
            (
                _statement(rb"\bclass\s+\w+\s*:\s*(?:\w+\.)*\w*Migration\s*[,{\r\n]"),
                _statement(rb"\boverride\s+void\s+Up\s*\("),
            ),
        ),
    ),
    "go": (_Framework(b"goose.AddMigration", ()),),
    "java": (_JAVA,),
    "javascript": (_SCRIPT,),
    "kotlin": (_JAVA,),
    "php": (
        # Laravel, Doctrine, Phinx, Yii.
        _Framework(
            b"Migration",
            (
                _statement(rb"\bextends\s+\\?(?:\w+\\)*\w*Migration\b"),
                _statement(rb"\bfunction\s+(?:up|change|safeUp)\s*\("),
            ),
        ),
    ),
    "python": (
        # Django, South.
        _Framework(b"Migration(", (_statement(rb"^class Migration\((?:\w+\.)*\w*Migration\b"),)),
        # Alembic.
        _Framework(b"down_revision", (_statement(rb"^revision\b[^\n=]*="), _statement(rb"^down_revision\b[^\n=]*="))),
    ),
    "ruby": (
        _Framework(
            b"ActiveRecord::Migration", (_statement(rb"^[ \t]*class [\w:]+ < (?:::)?ActiveRecord::Migration\b"),)
        ),
        _Framework(b"Sequel.migration", (_statement(rb"^Sequel\.migration\b"),)),
    ),
    "sql": (_Framework(b"", (), _SQL_PATH),),
    "typescript": (_SCRIPT,),
}


def is_migration(path: bytes, utf8: bytes, language: str) -> bool:
    """Whether a file is a step of a database's history."""
    return any(
        each.needle in utf8
        and (each.path is None or each.path.search(path) is not None)
        and all(statement.search(utf8) for statement in each.statements)
        for each in _FRAMEWORKS.get(language, ())
    )
