"""Dependencies that `auto` infers from texts: few wrong edges, and none that closes a cycle (SPEC.md "Work files")."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codebatch.model.graph import strong_components
from codebatch.scheduling.inference.edges import (
    CHANGED_SURE,
    CREATED_SURE,
    CandidateEdge,
    InferenceTask,
    infer_edges,
    select_edges,
)
from codebatch.scheduling.inference.sentences import iter_sentences, mentioned_files
from tests.scheduling.work.described_tasks import HELD_OUT, LISTS
from tests.support.resources import cpu_time_below


def edges(*tasks: InferenceTask) -> dict[tuple[str, str], float]:
    return {(edge.task, edge.on): edge.confidence for edge in infer_edges(tasks)}


def inferred_needs(text: str, *others: str) -> list[str]:
    """Return the inferred needs of a task `me` with a text. The other tasks are written as `id|title|text`."""
    tasks = [InferenceTask(id_, *rest) for id_, *rest in (other.split("|") for other in others)]
    return sorted(on for task, on in edges(*tasks, InferenceTask("me", "", text)) if task == "me")


@pytest.mark.parametrize("lists", [LISTS, HELD_OUT], ids=["tried on", "held out"])
def test_inferred_edges_match_the_texts(lists: dict[str, tuple[list[InferenceTask], set[tuple[str, str]]]]) -> None:
    """Of the 47 edges that the texts express, 45 are inferred, and no other edge is."""
    missed = set()
    for tasks, expected in lists.values():
        inferred = edges(*tasks).keys()
        assert inferred <= expected
        missed |= expected - inferred
    assert missed <= {("type-hints", "split-config"), ("train", "features")}


OTHERS = ("001-schema|The users table|Create db/users.sql", "build", "002-x|Fix the login bug in all browsers", "auth")


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("After 001-schema.", ["001-schema"]),
        ("Depends on tasks/001-schema.md", ["001-schema"]),
        ("Requires task 1 and 2.", ["001-schema", "002-x"]),
        ("Once #2 is done, go on.", ["002-x"]),
        ("Builds on `build`.", ["build"]),
        ("Blocked by: build", ["build"]),
        ("Run it after the build.", ["build"]),
        ("Do not start until the build has finished.", ["build"]),
        ("When “The users table” is ready, fill it.", ["001-schema"]),
        ("After fix the login bug in all browsers is done, ship.", ["002-x"]),
        ("It needs 001-schema, 002-x, and `auth`.", ["001-schema", "002-x", "auth"]),
        ("Fill db/users.sql with rows.", ["001-schema"]),
        ("Look at `db/users.sql`.", ["001-schema"]),
        # Texts that only look like needs:
        ("Task 003-api requires 001-schema. The page (002-x) depends on 001-schema.", []),
        ("It used to depend on 001-schema. Rather than waiting for 002-x, start now.", []),
        ("After all, users want it. After that, 001-schema may be changed.", []),
        ("See also db/users.sql.", []),
        ("Unlike db/users.sql, this is small. Do not touch db/users.sql!", []),
        ("See https://example.org/db/users.sql and mail build@001-schema.org after 5.", []),
        ("Needs Python 3.11, v1.2.3 and Node.js after 18.2.", []),
        ("The endpoint needs auth. Requires build tools.", []),
        ("Does not depend on 001-schema. It is independent of 002-x; no need to wait for build.", []),
        ("001-schema depends on this. After this, 002-x can start.", []),
        ("Before 001-schema is done, nothing works.", []),
        ("After the fix for issue #1, see PR #2 and fixes #1.", []),
        ("After build/tools is there, run auth.sh, e.g. twice.", []),
        ("```\n# after 001-schema\ncat db/users.sql\n```\n<!-- needs 002-x -->", []),
        ("Run:\n\n    Depends on: 001-schema\n\n    - needs 002-x\n\n\tafter build", []),
        ("# Run\n    Depends on: 001-schema\nDepends on: build", ["build"]),
        ("Once upon a time 001-schema was slow.", []),
        ("After 2026-01-01, or when in doubt, 002-x.", []),
        ("After 2 days; requires 1 CPU.", []),
        ("me after me", []),
        ("The test, which calls build, is slow after a while.", []),
    ],
)
def test_sentence_yields_its_needs(text: str, needs: list[str]) -> None:
    assert inferred_needs(text, *OTHERS) == needs


@pytest.mark.parametrize(
    "label",
    ["**Depends on:**", "**Depends on**:", "__Depends on:__", "*Depends on*:", "Depends on:", "- **Depends on:**",
     "**Blocked by:**", "Prerequisites:", "**Depends on the following tasks:**"],
)  # fmt: skip
def test_label_lists_needs_behind_it_and_below_it(label: str) -> None:
    both = ["001-schema", "build"]
    below = "\n  - " if label.startswith("-") else "\n- "
    assert inferred_needs(f"Words.\n\n{label} 001-schema, build", *OTHERS) == both
    assert inferred_needs(f"{label} `001-schema` and [build](build.md) (it is slow)\nWords.", *OTHERS) == both
    assert inferred_needs(f"{label}{below}001-schema{below}build: it is slow\n\nAuth.", *OTHERS) == both
    assert inferred_needs(f"{label}\n{below}[x] tasks/001-schema.md{below}task build\n\n- auth", *OTHERS) == [
        "001-schema",
        *(["auth"] if not label.startswith("-") else []),
        "build",
    ]
    assert inferred_needs(f"{label}{below}The users table{below}#2", *OTHERS) == ["001-schema", "002-x"]
    assert inferred_needs(f"{label} task 1, task 2", *OTHERS) == ["001-schema", "002-x"]


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("## Dependencies\n\n1. 001-schema\n2. auth, the package\n\n## Notes\n\n- 002-x", ["001-schema"]),
        ("### Depends on\n* 002-x\n  - not build\n* build", ["002-x", "build"]),
        ("**Dependencies:**\n- `build`\n- auth", ["build"]),
        ("**Depends on**\n- 001-schema", ["001-schema"]),
        ("Depends on:\n\n    - 001-schema\n    - build", ["001-schema", "build"]),
        ("- Do it.\n\n    Depends on: 001-schema\n\n  And\n\n    Depends on: build", ["001-schema", "build"]),
        ("    Words.\n\n    Depends on: 001-schema", ["001-schema"]),
        ("**Depends on:** none", []),
        ("**Depends on:**\n- n/a\n\nSee:\n- build", []),
        ("**Does not depend on:**\n- 001-schema", []),
        ("Not depends on: build\nNo dependencies:\n- build", []),
        ("**Needed by:** 001-schema\n**Blocks:**\n- build\n**Dependents:** build", []),
        ("Task 2 depends on:\n- build", []),
        ("**Depends on:** not build\n**Depends on:** ~~build~~\n**Depends on:** build (not any more)", []),
        ("**Depends on:**\n- build is independent of this\n- the auth team\n- build?\n- perhaps auth", []),
        ("**Depends on:**\nSome words.\n- build", []),
        ("## Dependencies\n\n## Others\n- build", []),
        ("```\n**Depends on:** build\n```\n<!--\nDepends on:\n- auth\n-->", []),
        ("Depends on:\n- lodash\n  - build", []),
        ("**Depends on:** task 3, #17", []),
        ("**Depends on:** me", []),
    ],
)
def test_only_names_in_a_list_are_needs(text: str, needs: list[str]) -> None:
    assert inferred_needs(text, *OTHERS) == needs


@pytest.mark.parametrize(
    ("text", "created", "changed"),
    [
        ("Create src/a.py and src/b.py with tests.", ["src/a.py", "src/b.py"], []),
        ("Add a new module `src/a.py`.", ["src/a.py"], []),
        ("Add a route to src/a.py.", [], ["src/a.py"]),
        ("Write the results to out/a.json.", ["out/a.json"], []),
        ("Write tests for src/a.py.", [], []),
        ("Update src/a.py according to docs/spec.md.", [], ["src/a.py"]),
        ("Fix the crash described in docs/bug.md.", [], []),
        ("Do not create src/a.py, never edit src/b.py.", [], []),
        ("Task 3 creates src/a.py.", [], []),
        ("This creates src/a.py.", ["src/a.py"], []),
        ("Create src/a.py. Then change src/a.py.", ["src/a.py"], []),
        ("Refactor ./src/a.py using src/b.py as a model.", [], ["src/a.py"]),
        ("Edit ../x.py, /etc/passwd.conf and src/*.py.", [], ["etc/passwd.conf"]),
    ],
)
def test_mentioned_files_are_created_or_changed(text: str, created: list[str], changed: list[str]) -> None:
    files = mentioned_files(text)
    assert ([*files.created], [*files.changed]) == (created, changed)


def test_reader_of_a_file_needs_its_writer() -> None:
    writer = InferenceTask("w", outputs=["migrations/*.sql", "out/"])
    inferred = edges(
        writer, InferenceTask("r", inputs=["migrations/0007.sql"]), InferenceTask("s", inputs=["*.txt"], outputs=["x"])
    )
    assert inferred == {("r", "w"): 1.0}
    directory = edges(InferenceTask("w", outputs=["gen/"]), InferenceTask("r", inputs=["gen/sub/x.ts"]))
    assert directory == {("r", "w"): 1.0}, "a directory must include all files below it"
    both = edges(InferenceTask("a", inputs=["x"], outputs=["y"]), InferenceTask("b", inputs=["y"], outputs=["x"]))
    assert both == {("a", "b"): 1.0, ("b", "a"): 1.0}


def test_tasks_that_change_the_same_file_are_ordered() -> None:
    tasks = [InferenceTask(id_, "", "Refactor src/a.py.") for id_ in "cab"]
    assert edges(*tasks) == {("a", "c"): CHANGED_SURE, ("b", "a"): CHANGED_SURE}


def test_task_that_mentions_a_file_needs_the_other_tasks_that_create_it() -> None:
    creators = [InferenceTask(id_, "", "Create src/a.py.") for id_ in "ab"]
    assert edges(*creators) == {}
    reader = InferenceTask("c", "", "Test the class of src/a.py.")
    assert edges(*creators, reader) == {("c", "a"): CREATED_SURE, ("c", "b"): CREATED_SURE}


def test_edge_that_would_close_a_cycle_is_rejected_with_its_path() -> None:
    candidates = [
        CandidateEdge("a", "b", 0.9, "x"),
        CandidateEdge("b", "c", 0.8, "y"),
        CandidateEdge("c", "d", 0.4, "z"),
    ]
    selection = select_edges(candidates, {"a": [], "b": [], "c": ["a"], "d": []})
    assert [(edge.task, edge.on) for edge in selection.edges] == [("a", "b")]
    assert [reason for _, reason in selection.rejections] == [
        "it would create a cycle: c → a → b exists", "its confidence is below 0.5",
    ]  # fmt: skip
    assert select_edges(candidates[:1], {"a": ["b"]}).edges == [], "an explicit need was inferred again"


NAMES = st.sampled_from(["001-schema", "002-model", "003", "build", "test-unit", "form"])
SENTENCES = st.sampled_from(
    ["After {} is done, go.", "Depends on {} and {}.", "Create src/{}.py.", "Update src/{}.py.", "See src/{}.py",
     "Requires task 2.", "Add a line in src/{}.py", "Once {} is there, wait for #3.", "nothing"]
)  # fmt: skip
TEXTS = st.lists(st.builds(lambda text, one, two: text.format(one, two), SENTENCES, NAMES, NAMES), max_size=4).map(
    "\n".join
)
TASKS = st.dictionaries(NAMES, TEXTS, min_size=1).map(
    lambda texts: [InferenceTask(id_, "", text) for id_, text in texts.items()]
)


@settings(max_examples=300, deadline=None)
@given(TASKS, st.data())
def test_inference_ignores_task_order_and_closes_no_cycle(tasks: list[InferenceTask], data: st.DataObject) -> None:
    ids = [task.id for task in tasks]
    written = {
        id_: data.draw(st.lists(st.sampled_from(ids[:place]), unique=True)) if place else []
        for place, id_ in enumerate(ids)
    }
    selection = select_edges(infer_edges(tasks), written)
    graph = {id_: [*written[id_], *(edge.on for edge in selection.edges if edge.task == id_)] for id_ in ids}
    assert all(len(ids) == 1 and ids[0] not in graph[ids[0]] for ids in strong_components(graph))
    shuffled = data.draw(st.permutations(tasks))
    sure = [edge for edge in infer_edges(tasks) if edge.confidence > CHANGED_SURE]
    assert sure == [edge for edge in infer_edges(shuffled) if edge.confidence > CHANGED_SURE]
    assert select_edges(sure, written) == select_edges(
        [edge for edge in infer_edges(shuffled) if edge.confidence > CHANGED_SURE], written
    )


@given(st.text(max_size=200) | st.text("afterneds `#*\"'.,/()[]{}<>:;-_|\n\t01", max_size=200))
def test_inference_accepts_any_text(text: str) -> None:
    tasks = [
        InferenceTask("001-a", text, text),
        InferenceTask(text[:20], text, "Depends on 001-a"),
        InferenceTask("b", "x", text, [text], [text]),
    ]
    assert all(0 <= edge.confidence <= 1 for edge in infer_edges(tasks))
    assert all(sentence == " ".join(sentence.split()) for sentence in iter_sentences(text))


@pytest.mark.parametrize(
    "pattern",
    [
        "after ",
        "`a",
        "add a file ",
        "a/b.py ",
        "((",
        "**a",
        "```\n",
        "depends on a, ",
        "1.",
        "/a",
        "aé.",
        "@",
        "<!--",
        "://a",
        "**Depends on:** a, ",
        "Depends on:\n",
        "Depends on:\n- a",
        "- a\n",
        "Depends on:" + " " * 500,
        "\t",
    ],
)
def test_inference_of_hostile_texts_is_fast(pattern: str) -> None:
    text = pattern * (100_000 // len(pattern))
    with cpu_time_below(6):
        infer_edges([InferenceTask("a", "t", text), InferenceTask("001-b", "u", text[1:])])


def test_inference_of_a_thousand_tasks_is_fast() -> None:
    text = "Add src/f{}.py. After {:04}-task is done, look at src/f{}.py, too. " + "Some more words about it. " * 20
    tasks = [InferenceTask(f"{n:04}-task", f"Title of {n}", text.format(n, n // 2, n // 3)) for n in range(1000)]
    with cpu_time_below(5):
        candidates = infer_edges(tasks)
        assert len(select_edges(candidates, {task.id: [] for task in tasks}).edges) > 1000
