"""Tests that the functions of the workers' code have the types that queries rely on. mypy checks the assignments."""

from __future__ import annotations

from codebatch.plugins.worker_services import (
    AbsenceServices,
    NameServices,
    SourceServices,
    UseServices,
    absence_services,
    language_services,
    name_services,
    source_services,
    use_services,
)
from codebatch_workers.languages import project_uses
from codebatch_workers.runtime import absence_reasons, code_search, introspection, name_search, source_lines

LINES: SourceServices = source_lines
ABSENCE: AbsenceServices = absence_reasons
NAMES: NameServices = name_search
USES: UseServices = project_uses


def test_services_are_the_modules_of_the_workers() -> None:
    services: list[object] = [
        source_services(),
        absence_services(),
        name_services(),
        use_services(),
        language_services(),
    ]
    assert services == [source_lines, absence_reasons, name_search, project_uses, introspection]
    assert language_services().find_in == code_search.find_in
