"""Go."""

from __future__ import annotations

import re

from codebatch.model.analysis.language_facts import LanguageFacts, ReferenceFacts

FACTS = {
    "go": LanguageFacts(
        has_all_links=True,
        has_implicit_imports=True,
        has_structural_types=True,
        structural_base="interface",
        is_native=True,
        called_methods=r"String|Error|ServeHTTP|RoundTrip|(?:Unm|M)arshal\w+|Len|Less|Swap|Read|Write|Close|Scan|Value"
        "|Format|Unwrap|Is|As",
        calls_by_type=True,
        indirect_bases=r"\btype\s+\w+\s+(?:\w+\.)?NAME\s*$",
        hides_fields=True,
        refuses_cycles=True,
        references=ReferenceFacts(dynamic_names=re.compile(rb'^import "C"', re.MULTILINE), shares_directory=True),
    ),
}
