"""The text of JavaScript and TypeScript."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_source import LanguageSource, TemplateMarks

_TYPESCRIPT = LanguageSource(
    template_marks=TemplateMarks(),
    parameter_nodes="optional_parameter required_parameter",
    has_nested_parameters=True,
)

SOURCE: Mapping[str, LanguageSource] = {
    "javascript": LanguageSource(
        has_minifiers=True,
        has_dense_lines=True,
        template_marks=TemplateMarks(),
        parameter_nodes="array_pattern assignment_pattern identifier object_pattern rest_pattern",
        has_nested_parameters=True,
    ),
    "tsx": _TYPESCRIPT,
    "typescript": _TYPESCRIPT,
}
