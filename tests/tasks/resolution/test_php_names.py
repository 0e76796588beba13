"""Classes and functions that PHP files use by namespace, by their full name, or by an import."""

# ruff: noqa: E501  # Each case is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.support.memory_project import MemoryProject
from tests.tasks.resolution.implicit_links import implicit_links

PRICE = "<?php\nnamespace A\\B;\nclass Price {}\nfunction total() {}\n"


def use(code: str, namespace: str = "A\\B") -> dict[str, str]:
    """Return a project with `Price` and a file that uses it."""
    return {"p.php": PRICE, "u.php": f"<?php\nnamespace {namespace};\n{code}"}


@pytest.mark.parametrize(
    ("files", "links"),
    [
        pytest.param(files, links, id=str(name))
        for name, files, *links in [
            ("own namespace", use("new Price;"), "u.php -> p.php exact Price"),
            ("case", use("new PRICE;"), "u.php -> p.php exact PRICE"),
            ("other namespace", use("new Price;", "A")),
            ("inner namespace", use("new Price;", "A\\B\\C")),
            ("full name", use("new \\A\\B\\Price;", "X"), "u.php -> p.php exact \\A\\B\\Price"),
            ("relative name", use("new B\\Price;", "A"), "u.php -> p.php exact B\\Price"),
            ("namespace keyword", use("new namespace\\Price;"), "u.php -> p.php exact namespace\\Price"),
            ("imported namespace", use("use A\\B;\nnew B\\Price;", "X"), "u.php -> p.php exact B\\Price"),
            ("alias of a namespace", use("use A\\B as Z;\nnew Z\\Price;", "X"), "u.php -> p.php exact Z\\Price"),
            ("imported class hides that of the namespace", use("use X\\Price;\nnew Price;")),
            ("alias hides that of the namespace", use("use X\\Y as Price;\nnew Price;")),
            ("group import hides that of the namespace", use("use X\\{Y, Price};\nnew Price;")),
            ("imported function does not hide a class", use("use function X\\Price;\nnew Price;"), "u.php -> p.php exact Price"),
            ("own class", use("class Price {}\nnew Price;")),
            ("self", use("class Q { function f(): self { return new static; } }")),
            ("no function as class", use("new total;")),
            ("no class as function", use("Price();")),
            ("function", use("total();"), "u.php -> p.php exact total"),
            ("imported function", use("use function X\\total;\ntotal();")),
            ("method", use("$x->total(); X::total();")),
            ("global function", {"h.php": "<?php\nfunction help() {}", "u.php": "<?php\nnamespace A;\nhelp();"}, "u.php -> h.php file help"),
            ("global class", {"h.php": "<?php\nclass Help {}", "u.php": "<?php\nnamespace A;\nnew Help; new \\Help;"}, "u.php -> h.php file \\Help"),
            ("two files", {**use("new Price;"), "q.php": PRICE}, "u.php -> p.php name Price", "u.php -> q.php name Price"),
            ("autoloaded file of two", {**use("new Price;"), "src/Price.php": PRICE, "composer.json": '{"autoload": {"psr-4": {"A\\\\B\\\\": "src/"}}}'}, "u.php -> src/Price.php exact Price"),
            ("class in a comment or a text", use("// new Price\n$x = 'A\\B\\Price';")),
            ("positions of classes", use("#[Price] class Q { use Price; }"), "u.php -> p.php exact Price"),
            ("base", use("class Q extends Price {}"), "u.php -> p.php exact Price"),
            ("types", use("function f(?Price $p): ?int {}"), "u.php -> p.php exact Price"),
            ("return type", use("fn(): Price|int => 1;"), "u.php -> p.php exact Price"),
            ("catch", use("try {} catch (Price $e) {}"), "u.php -> p.php exact Price"),
            ("instanceof", use("$x instanceof Price;"), "u.php -> p.php exact Price"),
            ("constant", use("Price::X;"), "u.php -> p.php exact Price"),
            ("static property", use("Price::$x;"), "u.php -> p.php exact Price"),
            ("class named as its namespace", {"c.php": "<?php\nnamespace A;\nclass A {}", "u.php": "<?php\nnamespace A;\nnew A;"}, "u.php -> c.php exact A"),
        ]
    ],
)  # fmt: skip
def test_name_is_found_by_namespace(files: Mapping[str, str], links: list[str]) -> None:
    assert implicit_links(files) == links


@pytest.mark.parametrize(
    ("code", "link"),
    [
        ("use A\\B\\Price;", ("p.php", "exact")),
        ("use A\\B\\price as Q;", ("p.php", "exact")),
        ("use function A\\B\\total;", ("p.php", "exact")),
        ("use A\\B\\Other;", ("A\\B\\Other", "external")),
        # The file has the name of the class, but it is known to define another one.
        ("use X\\src\\Box;", ("X\\src\\Box", "external")),
        # A global function is not a class of that name.
        ("use Help;", ("Help", "external")),
    ],
)
def test_import_is_found_by_the_name_of_the_class(code: str, link: tuple[str, str]) -> None:
    files = {
        "p.php": PRICE,
        "src/Box.php": "<?php\nnamespace Y;\nclass Box {}",
        "h.php": "<?php\nfunction help() {}",
        "u.php": f"<?php\nnamespace X;\n{code}",
    }
    edges = [edge for edge in MemoryProject(files).links() if edge.path == "u.php"]
    assert [(edge.target, edge.resolution) for edge in edges] == [link]
