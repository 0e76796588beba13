"""Database migrations: files that a framework applies once, in order. They are not edited afterwards.

Programs write most migrations (`makemigrations`, `alembic revision`, `dotnet ef migrations add`). Duplicates in
migrations are irrelevant, but other findings matter. A migration is recognized by statements of its framework. A
migration in SQL is recognized by its path.
"""

from __future__ import annotations

from codebatch_workers.syntax.language_syntax import LanguageSyntax


def is_migration(path: bytes, utf8: bytes, language: str) -> bool:
    """Return whether a file is a database migration."""
    return any(
        framework.needle in utf8
        and (framework.path is None or framework.path.search(path) is not None)
        and all(statement.search(utf8) for statement in framework.statements)
        for framework in LanguageSyntax.of(language).migrations
    )
