"""The text of Python."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.languages.python.type_calls import replace_type_calls
from codebatch_workers.syntax.language_source import LanguageSource, TemplateMarks

SOURCE: Mapping[str, LanguageSource] = {
    "python": LanguageSource(
        declares_encoding=True,
        repair_parsed=replace_type_calls,
        template_marks=TemplateMarks(are_names=True),
        parameter_nodes="default_parameter dictionary_splat_pattern identifier list_splat_pattern "
        "typed_default_parameter typed_parameter",
    ),
}
