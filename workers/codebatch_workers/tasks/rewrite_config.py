"""The table `[tasks.NAME]` of a task that consists of rewrites (SPEC.md "Changes").

Importing this module loads no parser. The check of a configuration loads one.
"""

from __future__ import annotations

import msgspec


class Rewrite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rewrite of files in the language `lang`: the pattern, the new code, and an example before and after it."""

    lang: str
    pattern: str
    rewrite: str
    bad: str
    good: str


class RewriteConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rewrites of a task. Raises ValueError if one is invalid, or does not turn its `bad` into its `good`."""

    rewrites: tuple[Rewrite, ...] = ()

    def __post_init__(self) -> None:
        from codebatch_workers.tasks.rewrite_examples import check_rewrite

        if not self.rewrites:
            raise ValueError("`rewrites` must have at least one table [[tasks.NAME.rewrites]]")
        for number, rewrite in enumerate(self.rewrites, start=1):
            try:
                check_rewrite(rewrite.pattern, rewrite.rewrite, rewrite.lang, rewrite.bad, rewrite.good)
            except ValueError as error:
                raise ValueError(f"rewrite {number}: {error}") from error
