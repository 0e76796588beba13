"""Database migrations: files that a framework applies once, in order. They are not edited afterwards.

Programs write most migrations (`makemigrations`, `alembic revision`, `dotnet ef migrations add`). Duplicates in
migrations are irrelevant, but other findings matter. A migration is recognized by statements of its framework. A
migration in SQL is recognized by its path.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class _MigrationFramework(NamedTuple):
    """A framework for migrations.

    Its migrations contain `needle`, match all of `statements`, and have a path that matches `path`.
    """

    needle: bytes
    statements: tuple[re.Pattern[bytes], ...]
    path: re.Pattern[bytes] | None = None


_MIGRATIONS_DIRECTORY = re.compile(rb"(?:^|/)migrations?/", re.IGNORECASE)
# The path of a migration in SQL contains a number or date. In Flyway, golang-migrate, goose, dbmate and sqlx, file
# names begin with a number. In Prisma and Diesel, names of directories do. In other tools, file names begin with a
# date, with or without a time.
_SQL_MIGRATION_PATH = re.compile(
    rb"(?:^|/)(?:migrations?|updates?|upgrades?)/(?:[^/]+/)*(?:[VU]?\d[^/]*|\d[^/]*/[^/]+)\.sql$|"
    rb"(?:^|/)(?:19|20)\d{6}(?:\d{2}|\d{4}|\d{6})?(?:[-_.][^/]*)?\.sql$",
    re.IGNORECASE,
)


def _statement_pattern(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern, re.MULTILINE)


_JAVA_FRAMEWORK = _MigrationFramework(
    b"JavaMigration", (_statement_pattern(rb"(?:\bextends|\bimplements|:)\s*(?:Base)?JavaMigration\b"),)
)
_JAVASCRIPT_FRAMEWORK = _MigrationFramework(
    b"up",
    (
        _statement_pattern(rb"\bup\b\s*[:=(]"),
        _statement_pattern(rb"\b(?:knex|pgm|[qQ]ueryInterface|[qQ]ueryRunner|MigrationInterface)\b"),
    ),
    _MIGRATIONS_DIRECTORY,
)
_FRAMEWORKS_BY_LANGUAGE = {
    "csharp": (
        # Entity Framework, FluentMigrator.
        _MigrationFramework(
            b"Migration",
            (
                _statement_pattern(rb"\bclass\s+\w+\s*:\s*(?:\w+\.)*\w*Migration\s*[,{\r\n]"),
                _statement_pattern(rb"\boverride\s+void\s+Up\s*\("),
            ),
        ),
    ),
    "go": (_MigrationFramework(b"goose.AddMigration", ()),),
    "java": (_JAVA_FRAMEWORK,),
    "javascript": (_JAVASCRIPT_FRAMEWORK,),
    "kotlin": (_JAVA_FRAMEWORK,),
    "php": (
        # Laravel, Doctrine, Phinx, Yii.
        _MigrationFramework(
            b"Migration",
            (
                _statement_pattern(rb"\bextends\s+\\?(?:\w+\\)*\w*Migration\b"),
                _statement_pattern(rb"\bfunction\s+(?:up|change|safeUp)\s*\("),
            ),
        ),
    ),
    "python": (
        # Django, South.
        _MigrationFramework(b"Migration(", (_statement_pattern(rb"^class Migration\((?:\w+\.)*\w*Migration\b"),)),
        # Alembic.
        _MigrationFramework(
            b"down_revision",
            (_statement_pattern(rb"^revision\b[^\n=]*="), _statement_pattern(rb"^down_revision\b[^\n=]*=")),
        ),
    ),
    "ruby": (
        _MigrationFramework(
            b"ActiveRecord::Migration",
            (_statement_pattern(rb"^[ \t]*class [\w:]+ < (?:::)?ActiveRecord::Migration\b"),),
        ),
        _MigrationFramework(b"Sequel.migration", (_statement_pattern(rb"^Sequel\.migration\b"),)),
    ),
    "sql": (_MigrationFramework(b"", (), _SQL_MIGRATION_PATH),),
    "typescript": (_JAVASCRIPT_FRAMEWORK,),
}


def is_migration(path: bytes, utf8: bytes, language: str) -> bool:
    """Return whether a file is a database migration."""
    return any(
        framework.needle in utf8
        and (framework.path is None or framework.path.search(path) is not None)
        and all(statement.search(utf8) for statement in framework.statements)
        for framework in _FRAMEWORKS_BY_LANGUAGE.get(language, ())
    )
