"""The text of Rust."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.syntax.language_source import LanguageSource, TemplateMarks

SOURCE: Mapping[str, LanguageSource] = {
    "rust": LanguageSource(
        template_marks=TemplateMarks(are_names=True),
        parameter_nodes="parameter self_parameter",
    ),
}
