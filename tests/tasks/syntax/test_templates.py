"""Tests of templates: their marks identify them, and they are not broken files of their language."""

from __future__ import annotations

import pytest

from codebatch_workers.syntax.templates import is_template
from tests.support.source_files import parse, source

UNCLOSED = "<div>\n{% if a %}<p>{% else %}<p class='b'>{% endif %}\n</span>\n"
HELM = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.name }}\ndata:\n"
    "{{- .Values.data | toYaml | nindent 2 }}\n"
)


@pytest.mark.parametrize(
    "content",
    [
        UNCLOSED,
        "<!DOCTYPE html>{% load static %}\n<p>a</p>\n",
        "<p>a</p>\n<p>b</p>\n<a href=\"{% url 'a' %}\">c</a>\n",
        "<p><%= name %></p>\n",
        "<%\n  if a then\n%>\n<p>\n",
        "<p>{{ name }}</p>\n",
        "<p>{{user.name|upper}}</p>\n",
        "{{#each items}}<p>{{/each}}\n",
        "{{> header}}\n<p>\n",
        '{{- if .Title }}<p>{{ end }}\n{{ template "a" . }}',
        "<p>{{{ raw }}}</p>\n",
    ],
)
@pytest.mark.parametrize("path", ["shop/templates/a.html", "a.htm"])
def test_html_with_template_marks_is_a_complete_template(path: str, content: str) -> None:
    record, errors = parse(source(path, content))
    assert (record.class_, record.parse, errors) == ("template", "ok", [])


@pytest.mark.parametrize(
    ("content", "state"),
    [
        ("<p>a {b} % c</p>\n", "ok"),
        ("<p <\n<\n", "partial"),
        ('<pre><span class="cp">{%</span> <span>load</span> <span>%}</span> {{</span> a }}</pre>\n', "ok"),
        ("<p>${{ secrets.A }}</p>\n", "ok"),
        ("<script>f({a: {b: {}}})</script>\n", "ok"),
    ],
)
def test_html_without_template_marks_is_not_a_template(content: str, state: str) -> None:
    record, _ = parse(source("templates/a.html", content))
    assert (record.class_, record.parse) == ("text", state)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("chart/templates/configmap.yaml", HELM),
        ("roles/a.yaml", "a: 1\nb:\n  - c\n{% for x in y %}\n  - {{ x }}\n{% endfor %}\nd: [\n"),
        ("a.toml", '[a]\nb = "c"\n\n[d]\n{% if e %}\nf = 1\n{% endif %}\n'),
        ("a.json", '{\n  "a": 1,\n  <% if (b) { %>\n  "c": 2\n  <% } %>\n}\n'),
        ("templates/a.json", '{\n  "a": [\n    1\n  ]\n  {{ more }}\n}\n'),
        ("a.css", "a { color: red }\n{% if b %}\nb { color: {{ c }} }\n{% endif %}\n"),
        ("a.ts", "const a = 1;\n{{#if b}}\nconst c = 2;\n{{/if}}\n"),
        ("stubs/a.php", "<?php\n\nnamespace {{ namespace }};\n\nclass {{ class }}\n{\n}\n"),
        ("lib/templates/migration.rb", "class <%= @name %> < Base\n  def change\n  end\nend\n"),
        ("a.go", "package {{ .Package }}\n\nfunc f() {}\n"),
        ("A.java", "package {{package}};\n\nclass {{ Name | capitalize }} {}\n"),
        ("a.rs", "mod {{ name }};\n"),
        ("config/settings.py", "import os\n{% if a == 'y' -%}\nimport b\n{%- endif %}\n"),
        ("config/urls.py", "from {{ a }}.views import b\n"),
    ],
)
def test_file_broken_by_template_marks_is_a_template_without_errors(path: str, content: str) -> None:
    record, errors = parse(source(path, content))
    assert (record.class_, record.parse, errors) == ("template", "partial", [])


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.js", "var = ;\nvar x = '{% a %}';\n"),
        ("a.js", "f(;\n'<% a %>',\n`{{#if a}}`,\n];\n"),
        (".github/workflows/a.yml", "a: ${{ b }}\nc: [\n"),
        (".github/workflows/a.yml", "a: [${{ b }}\n  ${{ c }}\n"),
        ("a.py", "a = {{1}}\nb = \n"),
        ("a.go", "package a\n\nvar b = [][]int{{1, 2}, {3\n"),
        ("a.rb", 'a = "{{ b }}"\n\nclass = 1\n'),
        ("a.json", '{\n"b" 2,\n"a": "{{ b }}",\n"c" 1}\n'),
    ],
)
def test_error_beside_template_marks_is_an_error(path: str, content: str) -> None:
    record, errors = parse(source(path, content))
    assert (record.class_, record.parse) == ("text", "errors")
    assert errors


@pytest.mark.parametrize("path", ["app/views/a.html.erb", "a.hbs", "a.mustache", "a.j2", "a.twig", "a.liquid", "a.ejs"])
def test_file_in_a_template_language_is_a_template(path: str) -> None:
    record, errors = parse(source(path, "<p>\n"))
    assert (record.class_, record.parse, errors) == ("template", "unsupported", [])


def test_other_classes_override_the_template_class() -> None:
    assert parse(source("tests/a.html", UNCLOSED))[0].class_ == "test"
    assert parse(source("vendor/a.hbs", "{{ a }}"))[0].class_ == "vendored"


@pytest.mark.parametrize("text", ["{%a", "<%=a", "{{a ", "{% ", "{{", "{{#", " {{\n", "{{-~\n", "{{ if{"])
def test_unterminated_template_marks_are_scanned_once(text: str) -> None:
    """If each mark searched an expression up to the end of the file, this would take hours."""
    assert is_template(source("a.html", text * (4_000_000 // len(text)))) == (text in (" {{\n", "{{-~\n", "{{ if{"))


def test_python_template_must_be_validly_encoded() -> None:
    record, (error,) = parse(source("a.py", b"{% if a %}\n# \xff\n"))
    assert (record.class_, record.parse, error.message) == ("template", "errors", "not valid UTF-8: byte 13 is 0xff")
