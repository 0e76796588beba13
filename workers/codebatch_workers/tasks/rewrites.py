"""Tasks that consist of rewrites: patterns and the code that replaces their matches (SPEC.md "Changes")."""

from __future__ import annotations

from collections.abc import Iterator

from codebatch.model.analysis.language_groups import with_variants
from codebatch.model.change import NOT_REWRITTEN_CODE
from codebatch.model.record import Record
from codebatch_workers.api.protocols import FileFailure, TaskEnvironment
from codebatch_workers.syntax.edited_files import EditedFile
from codebatch_workers.syntax.patterns.finders import PatternError, TooManySteps
from codebatch_workers.syntax.patterns.rewriting import RewriteRule, compile_rewrite, rewrite_content
from codebatch_workers.syntax.source import SourceFile
from codebatch_workers.tasks.lint import NOT_WRITTEN_BY_HAND
from codebatch_workers.tasks.rewrite_config import Rewrite, RewriteConfig
from codebatch_workers.tasks.syntax_errors import SyntaxErrors, shared_syntax_errors


def create(environment: TaskEnvironment[RewriteConfig]) -> RewriteTask:
    """Return the task."""
    rules = [rule for rewrite in environment.config.rewrites for rule in _compile_variants(rewrite)]
    return RewriteTask(rules, shared_syntax_errors(environment))


def _compile_variants(rewrite: Rewrite) -> Iterator[RewriteRule]:
    """Yield the rule for the language of a rewrite, and for each variant in which the pattern is valid."""
    for language in with_variants((rewrite.lang,)):
        try:
            yield compile_rewrite(rewrite.pattern, rewrite.rewrite, language)
        except PatternError:
            if language == rewrite.lang:
                raise


class RewriteTask:
    """The task: a change of each file in which a pattern matches, and a finding for each match that is left out."""

    def __init__(self, rules: list[RewriteRule], errors: SyntaxErrors) -> None:
        self._rules = rules
        self._errors = errors

    def run_file(self, file: SourceFile) -> list[Record | EditedFile]:
        """Return the change of a file. Raises FileFailure if a pattern matches in too many ways."""
        if file.file_class in NOT_WRITTEN_BY_HAND:
            return []
        try:
            content, left_out = rewrite_content(file, self._rules, self._find_error_lines)
        except TooManySteps as error:
            raise FileFailure("a pattern matches in too many ways") from error
        except ValueError as error:
            return [_report(file, 1, str(error))]
        changes = [] if content == file.content else [file.change(content)]
        return [*changes, *(_report(file, match.line, match.reason) for match in left_out)]

    def _find_error_lines(self, file: SourceFile) -> list[int]:
        """Return the lines of the errors that an exact parser finds. For most languages, there is none."""
        is_exact = file.syntax.has_exact_parser
        return [error.line for error in self._errors.find(file)] if is_exact else []


def _report(file: SourceFile, line: int, reason: str) -> Record:
    return file.report(line, f"a pattern matches, but: {reason}", code=NOT_REWRITTEN_CODE)
