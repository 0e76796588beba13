"""Types that C# files use without an import of their file: namespaces, `using`, projects, parts of types."""

# ruff: noqa: E501  # Each case is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.support.memory_project import MemoryProject
from tests.tasks.resolution.implicit_links import implicit_links

PROJECT = "<Project></Project>"
REFERENCE = r'<Project><ProjectReference Include="..\lib\lib.csproj" /></Project>'
PRICE = "namespace A.B;\npublic class Price { public static int Zero; public class Part {} }\n"
LIST_1 = "namespace A;\npublic class List<T> {}\n"


@pytest.mark.parametrize(
    ("files", "links"),
    [
        pytest.param(files, links, id=str(name))
        for name, files, *links in [
            ("own namespace", {"p.cs": PRICE, "u.cs": "namespace A.B;\nclass U { Price p; }"}, "u.cs -> p.cs exact Price"),
            ("outer namespace", {"p.cs": PRICE, "u.cs": "namespace A.B.C;\nclass U { Price p; }"}, "u.cs -> p.cs exact Price"),
            ("inner namespace", {"p.cs": PRICE, "u.cs": "namespace A;\nclass U { Price p; }"}),
            ("block namespace", {"p.cs": "namespace A { namespace B { class Price {} } }", "u.cs": "namespace A.B { class U { Price p; } }"}, "u.cs -> p.cs exact Price"),
            ("using", {"p.cs": PRICE, "u.cs": "using A.B;\nclass U { Price p; }"}, "u.cs -> p.cs exact Price"),
            ("using of another namespace", {"p.cs": PRICE, "u.cs": "using A;\nclass U { Price p; }"}),
            ("global using", {"p.cs": PRICE, "g.cs": "global using A.B;", "u.cs": "class U { Price p; }"}, "u.cs -> p.cs exact Price"),
            ("global using of another project", {"p.cs": PRICE, "x/x.csproj": PROJECT, "x/g.cs": "global using A.B;", "u.cs": "class U { Price p; }"}),
            ("using in the project file", {"lib/lib.csproj": PROJECT, "lib/p.cs": PRICE, "m/m.csproj": REFERENCE + '<Using Include="A.B" />', "m/u.cs": "class U { Price p; }"}, "m/u.cs -> lib/p.cs exact Price"),
            ("written in full", {"p.cs": PRICE, "u.cs": "class U { A.B.Price p; global::A.B.Price q; }"}, "u.cs -> p.cs exact A.B.Price"),
            ("relative to an outer namespace", {"p.cs": PRICE, "u.cs": "namespace A.C;\nclass U { B.Price p; }"}, "u.cs -> p.cs exact B.Price"),
            ("using does not import namespaces", {"p.cs": PRICE, "u.cs": "using A;\nclass U { B.Price p; }"}),
            ("nested type", {"p.cs": PRICE, "u.cs": "using A.B;\nclass U { Price.Part p; }"}, "u.cs -> p.cs exact Price"),
            ("namespace hides an outer type", {"p.cs": "class N {}", "n.cs": "namespace A.N;\nclass X {}", "u.cs": "namespace A;\nclass U { int i = N.Zero; }"}),
            ("static member", {"p.cs": PRICE, "u.cs": "using A.B;\nclass U { int i = Price.Zero; }"}, "u.cs -> p.cs exact Price"),
            ("property of the same name", {"p.cs": PRICE, "u.cs": "using A.B;\nclass U { X Price { get; } int i = Price.Zero; }"}, "u.cs -> p.cs file Price"),
            ("property that could be inherited", {"p.cs": PRICE, "u.cs": "using A.B;\nclass U : Base { int i = Price.Zero; }"}, "u.cs -> p.cs file Price"),
            ("method of the same name", {"p.cs": PRICE, "u.cs": "using A.B;\nclass U { int i = Price(); }"}),
            ("type parameter", {"p.cs": PRICE, "u.cs": "using A.B;\nclass U<Price> { Price p; }"}, "u.cs -> p.cs file Price"),
            ("nested type of the file", {"p.cs": PRICE, "u.cs": "using A.B;\nclass U { Price p; class Price {} }"}),
            ("alias of another type", {"p.cs": PRICE, "u.cs": "using A.B;\nusing Price = System.Int32;\nclass U { Price p; }"}),
            ("attribute", {"p.cs": "class RouteAttribute {}", "u.cs": "[Route(1)]\nclass U {}"}, "u.cs -> p.cs exact Route"),
            ("type named as an attribute", {"p.cs": "class RouteAttribute {}", "u.cs": "class U { Route r; }"}),
            ("arity", {"l.cs": LIST_1, "u.cs": "using A;\nclass U { List<int> a; }"}, "u.cs -> l.cs exact List"),
            ("other arity", {"l.cs": LIST_1, "u.cs": "using A;\nclass U { List a; List<int, int> b; }"}),
            ("two arities", {"l.cs": LIST_1, "m.cs": "namespace A;\nclass List {}", "u.cs": "using A;\nclass U { List a; }"}, "u.cs -> m.cs exact List"),
            ("parts", {"a.cs": "partial class P {}", "b.cs": "public partial class P {}", "u.cs": "class U { P p; }"}, "u.cs -> a.cs exact P", "u.cs -> b.cs exact P"),
            ("equal names that are no parts", {"a.cs": "class P {}", "b.cs": "class P {}", "u.cs": "class U { P p; }"}, "u.cs -> a.cs name P", "u.cs -> b.cs name P"),
            ("own type precedes another of its name", {"a.cs": "class P {}", "u.cs": "class P {}\nclass U { P p; }"}),
            ("branch of #if", {"a.cs": "#if X\nclass P {}\n#endif\n", "u.cs": "class U { P p; }"}, "u.cs -> a.cs file P"),
            ("two namespaces", {"p.cs": PRICE, "q.cs": "namespace A.C;\nclass Price {}", "u.cs": "using A.B;\nusing A.C;\nclass U { Price p; }"}),
            ("own project", {"lib/lib.csproj": PROJECT, "lib/p.cs": PRICE, "m/m.csproj": REFERENCE, "m/p.cs": PRICE, "m/u.cs": "using A.B;\nclass U { Price p; }"}, "m/u.cs -> m/p.cs exact Price"),
            ("referenced project", {"lib/lib.csproj": PROJECT, "lib/p.cs": PRICE, "x/x.csproj": PROJECT, "x/p.cs": PRICE, "m/m.csproj": REFERENCE, "m/u.cs": "using A.B;\nclass U { Price p; }"}, "m/u.cs -> lib/p.cs exact Price"),
            ("other project", {"lib/lib.csproj": PROJECT, "lib/p.cs": PRICE, "m/m.csproj": PROJECT, "m/u.cs": "using A.B;\nclass U { Price p; }"}, "m/u.cs -> lib/p.cs file Price"),
            ("reference in a comment", {"lib/lib.csproj": PROJECT, "lib/p.cs": PRICE, "m/m.csproj": f"<!-- {REFERENCE} -->", "m/u.cs": "using A.B;\nclass U { Price p; }"}, "m/u.cs -> lib/p.cs file Price"),
            ("positions of types", {"p.cs": "class P {}\nclass Q {}\nclass R {}\nclass S {}", "u.cs": "class U { object F(object x) { if (x is P) {} var q = x as Q; return (R)x; } S[] G() => null; }"}, "u.cs -> p.cs exact P", "u.cs -> p.cs exact Q", "u.cs -> p.cs exact R", "u.cs -> p.cs exact S"),
        ]
    ],
)  # fmt: skip
def test_type_is_found_by_namespace(files: Mapping[str, str], links: list[str]) -> None:
    assert implicit_links(files) == links


def test_using_of_a_type_leads_to_its_file() -> None:
    using = "using static A.B.Price;\nusing P = A.B.Price;\nusing A.B;\nusing System;\n"
    edges = [edge for edge in MemoryProject({"p.cs": PRICE, "u.cs": using}).links() if edge.path == "u.cs"]
    assert [(edge.line, edge.target, edge.resolution) for edge in edges] == [
        (1, "p.cs", "exact"),
        (2, "p.cs", "exact"),
        # Line 3 names a namespace of the tree, which is no file.
        (4, "System", "external"),
    ]
