"""The text of PHP."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_source import LanguageSource, TemplateMarks

SOURCE: Mapping[str, LanguageSource] = {
    "php": LanguageSource(
        template_marks=TemplateMarks(are_names=True),
        parameter_nodes="property_promotion_parameter simple_parameter variadic_parameter",
    ),
}
