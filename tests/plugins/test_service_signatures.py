"""Tests that the modules of workers implement the protocols that `codebatch` calls, with equal parameters."""

from __future__ import annotations

import inspect

import pytest

from codebatch.plugins import worker_services
from codebatch_workers.runtime import absence_reasons, introspection, source_lines


@pytest.mark.parametrize(
    ("protocol", "module"),
    [
        (worker_services.LanguageServices, introspection),
        (worker_services.SourceServices, source_lines),
        (worker_services.AbsenceServices, absence_reasons),
    ],
)
def test_module_has_the_functions_and_parameters_of_its_protocol(protocol: type, module: object) -> None:
    declared = {name: value for name, value in vars(protocol).items() if inspect.isfunction(value) and name[0] != "_"}
    assert declared
    parameters = {name: list(inspect.signature(value).parameters)[1:] for name, value in declared.items()}
    assert parameters == {name: list(inspect.signature(getattr(module, name)).parameters) for name in declared}
