"""Ruby: files are linked by the constants that they use."""

# ruff: noqa: E501  # Each project is one line.

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.tasks.resolution.implicit_links import implicit_links

A = "class A\n  def f; end\nend\n"
A_B = "module A\n  class B\n    X = 1\n  end\nend\n"
TOP_B = "class B\n  Y = 1\nend\n"

PROJECTS: list[tuple[str, Mapping[str, str], list[str]]] = [
    ("outermost class", {"lib/a.rb": A, "lib/b.rb": "class B\n  A.new\nend\n"}, ["lib/b.rb -> lib/a.rb exact A"]),
    ("written in full", {"lib/a/b.rb": A_B, "lib/c.rb": "A::B.new\n"}, ["lib/c.rb -> lib/a/b.rb exact A::B"]),
    ("absolute", {"lib/a/b.rb": A_B, "lib/c.rb": "module A\n  ::A::B.new\nend\n"}, ["lib/c.rb -> lib/a/b.rb exact A::B"]),
    ("enclosing module", {"lib/a/b.rb": A_B, "lib/a/c.rb": "module A\n  class C\n    B.new\n  end\nend\n"}, ["lib/a/c.rb -> lib/a/b.rb exact B"]),
    ("constant of a class", {"lib/a/b.rb": A_B, "lib/a/c.rb": "module A\n  B::X\nend\n"}, ["lib/a/c.rb -> lib/a/b.rb exact B::X"]),
    ("nesting as written", {"lib/a/b.rb": A_B, "lib/b.rb": TOP_B, "lib/a/c.rb": "class A::C\n  B.new\nend\n"}, ["lib/a/c.rb -> lib/b.rb exact B"]),
    ("inner before outer", {"lib/a/b.rb": A_B, "lib/b.rb": TOP_B, "lib/a/c.rb": "module A\n  class C\n    B.new\n  end\nend\n"}, ["lib/a/c.rb -> lib/a/b.rb exact B"]),
    ("one name, two scopes", {"lib/a/b.rb": A_B, "lib/b.rb": TOP_B, "lib/c.rb": "module A\n  B\nend\nmodule C\n  B\nend\n"}, ["lib/c.rb -> lib/a/b.rb exact B", "lib/c.rb -> lib/b.rb exact B"]),
    ("superclass is outside of the class", {"lib/a/b.rb": "module A\n  class B\n    class B\n    end\n  end\nend\n", "lib/b.rb": TOP_B, "lib/c.rb": "class A::B::C < B\nend\n"}, ["lib/c.rb -> lib/b.rb exact B"]),
    ("a superclass can define it", {"lib/a.rb": A, "lib/b.rb": "class B < Gem::C\n  A.new\nend\n"}, ["lib/b.rb -> lib/a.rb file A"]),
    ("an included module can define it", {"lib/a.rb": A, "lib/b.rb": "class B\n  include C\n  A.new\nend\n"}, ["lib/b.rb -> lib/a.rb file A"]),
    ("a reopened class can inherit", {"lib/a.rb": A, "lib/b.rb": "class B < C\n  def f; end\nend\n", "lib/b_ext.rb": "class B\n  A.new\nend\n"}, ["lib/b_ext.rb -> lib/a.rb file A"]),
    ("path does not fit", {"lib/x.rb": A, "lib/b.rb": "A.new\n"}, ["lib/b.rb -> lib/x.rb file A"]),
    ("acronym", {"app/models/http_api.rb": "class HTTPApi\nend\n", "lib/b.rb": "HTTPApi.new\n"}, ["lib/b.rb -> app/models/http_api.rb exact HTTPApi"]),
    ("suffix of a class", {"lib/a/go.rb": "module A\n  class GoAction\n  end\nend\n", "lib/b.rb": "A::GoAction.run\n"}, ["lib/b.rb -> lib/a/go.rb exact A::GoAction"]),
    ("reopened", {"lib/a.rb": A, "lib/ext.rb": A, "lib/b.rb": "A.new\n"}, ["lib/b.rb -> lib/a.rb file A"]),
    ("several files", {"lib/x.rb": A, "lib/y.rb": A, "lib/b.rb": "A.new\n"}, ["lib/b.rb -> lib/x.rb name A", "lib/b.rb -> lib/y.rb name A"]),
    ("reopened in a test", {"lib/a.rb": A, "spec/a_spec.rb": A, "lib/b.rb": "A.new\n"}, ["lib/b.rb -> lib/a.rb exact A"]),
    ("defined only in a test", {"spec/a_spec.rb": A, "lib/b.rb": "A.new\n"}, []),
    ("test", {"lib/a.rb": A, "spec/a_spec.rb": "RSpec.describe A do\nend\n"}, ["spec/a_spec.rb -> lib/a.rb exact A"]),
    ("module that is only opened", {"lib/a/b.rb": A_B, "lib/a/c.rb": "module A\n  class C\n  end\nend\n", "lib/d.rb": "A.f\n"}, []),
    ("reopened core class", {"lib/core_ext/string.rb": "class String\n  def f; end\nend\n", "lib/b.rb": "String.new\n"}, []),
    ("constant of a gem in an opened module", {"lib/rspec.rb": "module Gem2\n  def f; end\nend\n", "lib/b.rb": "Gem2::Core.run\n"}, []),
    ("syntax error", {"lib/x.rb": "class [[X]] < A\nend\n" + A, "lib/b.rb": "A.new\n"}, []),
    ("own class", {"lib/a.rb": A, "lib/b.rb": "class A\n  def g; end\nend\nA.new\n"}, []),
    ("comments and strings", {"lib/a.rb": A, "lib/b.rb": "# A\nputs 'A'\n"}, []),
    ("interpolation", {"lib/a.rb": A, "lib/b.rb": 'puts "#{A}"\n'}, ["lib/b.rb -> lib/a.rb exact A"]),
]  # fmt: skip


@pytest.mark.parametrize(("files", "links"), [project[1:] for project in PROJECTS], ids=[each[0] for each in PROJECTS])
def test_constants_are_linked(files: Mapping[str, str], links: list[str]) -> None:
    assert implicit_links(files) == links
