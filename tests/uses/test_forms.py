"""Every form of a use, in every language, through every command that answers questions about a name.

The tables in `forms` have the forms: calls, references, strings that consist of the name, and gaps (calls that are
found as references or strings only). No command may give a firm `none` for a name that is used in one of these forms,
and the commands must agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

import codebatch as api
from codebatch import Batch
from codebatch.model.text.toml import parse_toml
from codebatch.operations import ignore_note
from tests.support.command_line import write
from tests.support.inline_workers import inline, run

pytestmark = pytest.mark.slow

_FORMS = Path(__file__).parent / "forms"
_PLACEHOLDER = re.compile(r"\b(?:fname|Tname|Fname)")
_ROLES = {"call": ("call",), "reference": ("reference",), "string": ("string",), "gap": ("reference", "string")}


class Form(NamedTuple):
    """A form: its title, its kind, and a file in which the name at `place` has this form."""

    title: str
    kind: str
    path: str
    text: str
    name: str
    place: tuple[int, int]


def _read_forms() -> Iterator[Form]:
    for number, table in enumerate(sorted(_FORMS.glob("*.toml"))):
        document = parse_toml(table.read_text(encoding="utf-8"))
        tables = {kind: msgspec.convert(document.get(kind, {}), dict[str, str]) for kind in _ROLES}
        forms = [(kind, title, text) for kind, texts in tables.items() for title, text in texts.items()]
        for index, (kind, title, marked) in enumerate(forms):
            # Each name occurs in one form only, so that all forms can be in one batch.
            unique = _PLACEHOLDER.sub(rf"\g<0>{number}x{index}", marked)
            before, _, rest = unique.partition("«")
            name, _, after = rest.partition("»")
            place = (before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)
            path = f"{table.stem}/f{index}/{document['path']}"
            yield Form(f"{table.stem}: {title}", kind, path, before + name + after, name, place)


FORMS = list(_read_forms())


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Batch]:
    """A batch with a file for each form."""
    root = tmp_path_factory.mktemp("forms")
    for form in FORMS:
        write(root / "tree" / form.path, form.text)
    with inline():
        result = run(root / "tree", root / "store")
    with api.open(root / "store", note=ignore_note) as store:
        yield store.batch(result.batch.id, partial=True)


@pytest.mark.parametrize("form", FORMS, ids=[form.title for form in FORMS])
def test_no_command_misses_a_form_of_a_use(batch: Batch, form: Form) -> None:
    places = [
        (str(row["path"]), row["line"], row["column"])
        for role in _ROLES[form.kind]
        for row in batch.references(form.name, role=role).result
    ]
    assert (form.path, *form.place) in places, [
        (row["role"], row["line"], row["column"]) for row in batch.references(form.name).result
    ]
    callers = batch.callers(form.name)
    impact = batch.symbol_impact(form.name, depth=1)
    overview = batch.symbol_overview(form.name)
    assert [caller.row for caller in callers.result] == overview.result.callers
    assert callers.is_complete == overview.is_complete
    assert bool(callers.result) == (form.kind == "call")
    assert bool(impact.result.dependents) == (_role_at(batch, form) != "string")
    for answer, is_empty in ((callers, not callers.result), (impact, not impact.result.dependents)):
        assert answer.is_complete != is_empty
        assert answer.completeness.doubt.startswith("none, but ") == is_empty
    assert batch.definitions(form.name).result


def _role_at(batch: Batch, form: Form) -> str:
    rows = batch.references(form.name, role=["call", "reference", "string"]).result
    return next(str(row["role"]) for row in rows if (row["line"], row["column"]) == form.place)
