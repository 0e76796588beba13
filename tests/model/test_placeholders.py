"""Placeholders: a value reaches a program unchanged and is never executed (SPEC.md "Work files").

Real shells run the scripts: if a script is accepted, it must print exactly the value.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codebatch.model.work.placeholders import (
    ARGUMENT_BYTES_MAX,
    PLACEHOLDER_NAMES,
    PlaceholderError,
    expand_arguments,
    longest_argument,
    placeholder_problems,
    shell_script,
    shell_variables,
)
from tests.support.resources import cpu_time_below

HOSTILE = "a  b\t*\n'\"`touch pwned` $(touch pwned) ${x} ; touch pwned # \\ {id} é"
SHELLS = [shell for shell in ("sh", "bash", "dash") if shutil.which(shell)]
TEXTS = st.text(
    st.characters(exclude_characters="\0", categories=("L", "M", "N", "P", "S", "Z", "Cc", "Cf")), max_size=40
) | st.text("'\"`$(){};|&<>\\ \n\t-*~!#ab", max_size=40)


def _run_script(script: str, value: str, shell: str = "sh") -> subprocess.CompletedProcess[bytes]:
    values = dict.fromkeys((*PLACEHOLDER_NAMES, "value", "value.os", "line"), value)
    with tempfile.TemporaryDirectory() as directory:
        completed = subprocess.run(
            [shell, "-c", shell_script(script)],
            env={"PATH": os.environ["PATH"], **shell_variables(values)},
            cwd=directory,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
        )
        assert list(Path(directory).iterdir()) == []
    return completed


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    TEXTS,
    st.sampled_from(["{text}", "{value.os}", "{line}", "{{id}}{text}", "-{text}.json", "$(printf %s {text}; echo .)"]),
)
@example("--help", "{text}")
@example("'; touch pwned; '", "{text}")
def test_shell_reproduces_a_placeholder_value_exactly(value: str, word: str) -> None:
    completed = _run_script(f'x={word}; printf %s "$x"', value)
    expected = re.sub(
        r"\{(?:text|value\.os|line)\}", lambda _: value, word.replace("$(printf %s {text}; echo .)", "{text}.")
    )
    expected = expected.replace("{{id}}", "{id}", 1) if "{{id}}" in word else expected
    assert (completed.stdout.decode(), completed.stderr, completed.returncode) == (expected, b"", 0)


FRAGMENTS = st.sampled_from(
    ["'", '"', "`", "$(", ")", "(", "${x:-", "}", "$((1+", "))", "#", " #", "\\", "\\\n", "\n", "cat <<E ",
     "cat <<-'E' ", "\nE\n", "\n\tE\n", "<<", ": ", "case a in a) ", ";; esac", "; ", " a ", "$", "$'", "$$",
     "{", "{{id}}", "x=", "1", "| cat <&0 ", "${#x}", "\\'", '\\"', "\\E", "\\$"]
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=200, deadline=None)
@given(st.lists(FRAGMENTS, max_size=9).map("".join))
@example("cat <<E\na\\\nE\n")
@example("x=$(case a in a) echo '")
@example(': "${x:-\'}" ')
@example("x=$((:) ")
@example(': <<\\"\n\n')
@example("$'\\'\nE\ncat <<E #'")
def test_accepted_placeholder_yields_its_value_in_any_context(shell: str, before: str) -> None:
    script = f"{before}\n\nprintf '<%s>' {{text}}"
    if placeholder_problems(script):
        with pytest.raises(PlaceholderError):
            shell_script(script)
        return
    completed = _run_script(script, HOSTILE, shell)
    assert completed.returncode != 0 or completed.stdout.endswith(f"<{HOSTILE}>".encode())


@pytest.mark.parametrize(
    ("script", "inside"),
    [
        ("echo '{id}'", "single quotes"),
        ('echo "a {title} b"', "double quotes"),
        ("echo $'{id}'", "single quotes after a $"),
        ("x=`echo {id}`", "backquotes"),
        ("echo ${x:-{id}}", "${…}"),
        ("echo $(({text} + 1))", "$((…))"),
        ("true # {id}", "a comment"),
        ("cat <<EOF\n{id}\nEOF", "a here-document"),
        ("cat <<-'EOF'\n\tEO\n{id}", "a here-document"),
        ('x="$(echo "{id}")"', "double quotes"),
        ("x=$(case a in a) echo {id};; esac)", "text whose quoting only a shell can determine"),
        ("ec\\\nho '{id}'", "text whose quoting only a shell can determine"),
    ],
)
def test_quoted_placeholder_is_reported(script: str, inside: str) -> None:
    (problem,) = placeholder_problems(script)
    assert problem.text.endswith(f"}} inside {inside}")
    assert "$CODEBATCH_V_" in problem.hint


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo {id}", 'echo "$CODEBATCH_V_ID"'),
        ("cp a out/{id}.json", 'cp a out/"$CODEBATCH_V_ID".json'),
        ('x="$(echo {text})"', 'x="$(echo "$CODEBATCH_V_TEXT")"'),
        ("cat <<E >a\nx\nE\nwc {text_file}", 'cat <<E >a\nx\nE\nwc "$CODEBATCH_V_TEXT_FILE"'),
        ("git commit -m \"$(cat <<'E'\n{x}\nE\n)\"; echo {id}",
         "git commit -m \"$(cat <<'E'\n{x}\nE\n)\"; echo \"$CODEBATCH_V_ID\""),
        ("echo a#{id}", 'echo a#"$CODEBATCH_V_ID"'),
        ("awk '{print $1}' {{id}} {fiel} ${id} \\{id} {}", "awk '{print $1}' {id} {fiel} ${id} \\{id} {}"),
        ("echo '{{id}}'", "echo '{id}'"),
    ],
)  # fmt: skip
def test_script_text_is_converted_to_shell(script: str, expected: str) -> None:
    assert placeholder_problems(script) == []
    assert shell_script(script) == expected


def test_argument_list_is_expanded() -> None:
    values = {"id": "a", "title": "{id} $(x)", "text": "", "text_file": "/t"}
    run = ["x", "{id}", "{title}-{text}", "{{id}}", "{{fiel}}", "{}", "{print $1}", "${id}", "{text_file}"]
    assert placeholder_problems(run) == []
    assert expand_arguments(run, values) == [
        "x", "a", "{id} $(x)-", "{id}", "{fiel}", "{}", "{print $1}", "${id}", "/t",
    ]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_files_placeholder_yields_an_argument_per_file(files: list[str]) -> None:
    script = shell_script("printf '%s\\0' {files}")
    completed = subprocess.run(["sh", "-c", script, "sh", *files], check=True, capture_output=True)
    assert completed.stdout.decode().split("\0")[:-1] == files
    assert expand_arguments(["a", "{files}", "b"], {}, files) == ["a", *files, "b"]


@given(TEXTS)
def test_argument_placeholder_yields_its_exact_value(value: str) -> None:
    assert expand_arguments(["{text}", "<{text}>"], {"text": value}) == [value, f"<{value}>"]


@pytest.mark.parametrize(
    ("run", "text", "hint"),
    [
        (
            ["a", "{titel}"],
            "has {titel}, which is not a placeholder",
            "did you mean {title}? (for a literal {titel} write {{titel}})",
        ),
        (["a{zzz}"], "has {zzz}, which is not a placeholder", "placeholders: {id}, {title}, {text}, {text_file}"),
        (["{report}"], "has {report}, which this version does not support yet", "placeholders: {id}, {title}"),
        (["{id.python}"], "has {id.python}, which is not a placeholder", "it"),
        (["-x{files}"], "has {files} inside a word, but {files} expands to several words", "separate argument"),
        (["/bin/sh", "-ec", "echo {title}"], "has {title} in a script, where the value would be executed", "use $1"),
    ],
)
def test_invalid_placeholder_in_a_list_is_reported(run: list[str], text: str, hint: str) -> None:
    (problem,) = placeholder_problems(run)
    assert problem.text == text
    assert hint in problem.hint
    assert placeholder_problems([*run[:2], "{{id}} {id}"]) == placeholder_problems(run[:2])


@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
def test_unrepresentable_value_is_rejected(value: str) -> None:
    with pytest.raises(PlaceholderError):
        expand_arguments(["{text}"], {"text": value})
    with pytest.raises(PlaceholderError):
        shell_variables({"text": value})


def test_non_unicode_path_is_passed_unchanged() -> None:
    path = os.fsdecode(b"/tmp/caf\xe9")
    assert expand_arguments(["{text_file}"], {"text_file": path}) == [path]
    assert shell_variables({"text_file": path}) == {"CODEBATCH_V_TEXT_FILE": path}


def test_placeholder_without_a_value_is_rejected() -> None:
    with pytest.raises(PlaceholderError, match=r"unknown placeholder \{text\}"):
        expand_arguments(["{text}"], {"id": "a"})


def test_longest_argument_matches_the_system_limit() -> None:
    fits = "x" * (ARGUMENT_BYTES_MAX - len("CODEBATCH_V_TEXT="))
    assert longest_argument(": {text}", {"text": fits}) == ARGUMENT_BYTES_MAX
    assert longest_argument(["a", "é{text}"], {"text": fits}) == len(fits) + 2
    assert _run_script("printf %s {text}", fits).stdout.decode() == fits
    assert shell_variables({"text": fits + "x", "id": "a"}) == {"CODEBATCH_V_ID": "a"}
    assert longest_argument(": ", {"text": fits + "x"}) == 2


def test_long_script_is_parsed_in_linear_time() -> None:
    script = "cat <<E\n$(\"'`{ # \\ \nE\n" * 20_000 + "echo {id}"
    with cpu_time_below(5):
        assert placeholder_problems(script) == []
