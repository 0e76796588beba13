"""Database migrations: files that a framework applies once, in order. They are not edited afterwards.

Programs write most migrations (`makemigrations`, `alembic revision`, `dotnet ef migrations add`). Duplicates in
migrations are irrelevant, but other findings matter. A migration is recognized by statements of its framework. A
migration in SQL is recognized by its path.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class _Framework(NamedTuple):
    """A framework for migrations.

    Its migrations contain `needle`, match all of `statements`, and have a path that matches `path`.
    """

    needle: bytes
    statements: tuple[re.Pattern[bytes], ...]
    path: re.Pattern[bytes] | None = None


_DIRECTORY = re.compile(rb"(?:^|/)migrations?/", re.IGNORECASE)
# The path of a migration in SQL contains a number or date. In Flyway, golang-migrate, goose, dbmate and sqlx, file
# names begin with a number. In Prisma and Diesel, names of directories do. In other tools, file names begin with a
# date, with or without a time.
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
    """Return whether a file is a database migration."""
    return any(
        framework.needle in utf8
        and (framework.path is None or framework.path.search(path) is not None)
        and all(statement.search(utf8) for statement in framework.statements)
        for framework in _FRAMEWORKS.get(language, ())
    )
