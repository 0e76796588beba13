"""Commands act on the project of the current directory (SPEC.md "Projects"), even if other projects share its store."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from codebatch.cli import cli
from codebatch.cli.framework.exit import run_to_exit_status
from tests.cli.query.test_kinds import POSITIONAL, WORDS, rows
from tests.cli.test_interface import MORE_WORDS, commands_alone
from tests.support.command_line import CommandLine, wait_until, write

WITHOUT_A_DEFAULT = {"run", "join", "ast", "pin", "unpin"}
"""`run`, `join` and `ast` act on the tree, the others on a batch that must be named."""
NAMED_STORE_REFUSED = {"resume"}
"""If the store is named, these commands run only if the batch is named too."""
OF_RUNNING_BATCHES = {"cancel", "work-add", "work-pause", "work-set", "work-skip", "work-unpause"}
NEEDS_NO_BATCH = {"rules-show", "gate-run", "gate-bundle"}
"""These commands also answer without a batch, and report what is unknown."""
FILE = "src/main.py"
SPEC = Path(__file__).parents[3] / "SPEC.md"
BATCH_ID = re.compile(r"batch-\d{8}-\d{6}-\d{6}-[0-9a-f]{6}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """A store that several checkouts share, and the IDs of the first checkout's batches."""

    store: Path
    here: Path
    elsewhere: Path
    unknown: Path
    analysis: str
    work: str


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    root = tmp_path_factory.mktemp("shared")
    codebatch = CommandLine(root, {"CODEBATCH_STORE": str(root / "store")})
    ids: dict[str, list[str]] = {}
    for name, code in (("here", "eval"), ("elsewhere", "exec"), ("unknown", "print")):
        tree = root / name
        write(tree / FILE, f"import os\n\n\nclass Main:\n    def run(self, code):\n        return {code}(code)\n")
        write(tree / "work.toml", f"[tasks.first]\nrun = 'echo {name}; exit 1'\n[tasks.second]\nrun = 'true'\n")
        codebatch.shell(f"git init -q {name}")
        if name == "unknown":
            continue
        # Comparisons need two batches.
        analyses = [codebatch("run", ".", *again, "--json", cwd=tree).json for again in ((), ("--again",))]
        codebatch("work", "run", "-q", cwd=tree, status=3)
        ids[name] = [analyses[-1]["batch_id"], codebatch("status", "--json", cwd=tree).json["batch_id"]]
    analysis, work = ids["here"]
    return Shared(
        store=root / "store",
        here=root / "here",
        elsewhere=root / "elsewhere",
        unknown=root / "unknown",
        analysis=analysis,
        work=work,
    )


def commands_that_take_a_batch() -> dict[str, str]:
    """Return the kind of batch that each command uses by default: `analysis`, `work` or `any`."""
    kinds: dict[str, str] = {}
    for names, accepted, latest in rows():
        if accepted in ("analyses", "work batches", "any kind", "any kind, by id"):
            kinds.update(dict.fromkeys(names, {"batch": "any", "work batch": "work"}.get(latest, "analysis")))
    return kinds


def test_every_command_that_accepts_a_batch_is_in_the_table() -> None:
    described = json.loads(_describe_api())["commands"]
    names_of_commands = [
        {name.replace(" ", "-") for name in (command["name"], *command["aliases"])}
        for command in described
        if any("--batch" in option["names"] for option in command["options"])
        or any("BATCH" in argument["name"] for argument in command["arguments"])
    ]
    known = commands_that_take_a_batch().keys()
    assert [names for names in names_of_commands if not names & known] == []


def _describe_api() -> str:
    import contextlib
    import io

    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(out):
        assert run_to_exit_status(cli, ["api", "--json"]) == 0
    out.seek(0)
    return out.read()


def more_words(name: str) -> list[str]:
    words = {"trace": "-o made", **MORE_WORDS, **WORDS}.get(name, "")
    return words.replace("--batch latest", "").replace("latest latest", "").split()


def words_without_a_batch(name: str) -> list[str]:
    return [*commands_alone()[name], *more_words(name)]


def words_with_a_batch(name: str, batch: str) -> list[str]:
    more = more_words(name)
    named = [batch] if name in POSITIONAL else ["--batch", batch]
    if name in ("diff", "regressions", "improvements", "check"):
        named = ["latest~1", batch]
    return [*commands_alone()[name], *(named + more if name in POSITIONAL else more + named)]


DEFAULTING = sorted(commands_that_take_a_batch().keys() - WITHOUT_A_DEFAULT - NAMED_STORE_REFUSED - OF_RUNNING_BATCHES)


@pytest.mark.parametrize("name", DEFAULTING)
def test_latest_batch_of_the_current_project_is_the_default(
    shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    kind = commands_that_take_a_batch()[name]
    batch = shared.analysis if kind == "analysis" else shared.work
    answers: list[object] = []
    for words in (words_without_a_batch(name), words_with_a_batch(name, batch)):
        store = tmp_path / f"store{len(answers)}"
        shutil.copytree(shared.store, store, symlinks=True)
        output_directory = tmp_path / f"made{len(answers)}"
        output_directory.mkdir()
        monkeypatch.chdir(shared.here)
        words = [str(output_directory / word) if word in ("made", "made.json") else word for word in words]
        status = run_to_exit_status(cli, [*words, "--store", str(store), "--json", "-q"])
        out, err = capsys.readouterr()
        if name == "check" and status in (0, 3):  # `check` also chooses its base itself, unless a base is named.
            answers.append(json.loads(out)["head"])
            continue
        answers.append(
            (
                status,
                _comparable(out, shared, store, output_directory),
                _comparable(err, shared, store, output_directory),
            )
        )
    without, named = answers
    assert without == named


def _comparable(text: str, shared: Shared, store: Path, output_directory: Path) -> str:
    """Replace everything that differs between calls: places, times, and IDs of new batches."""
    text = text.replace(str(store), "STORE").replace(str(output_directory), "MADE")
    text = BATCH_ID.sub(lambda match: match[0] if match[0] in (shared.analysis, shared.work) else "BATCH", text)
    return re.sub(r'"(seconds|duration_ms|at|why|created_at|size|n)": [^\n]*', r'"\1"', text)


@pytest.mark.parametrize(
    "name", sorted(commands_that_take_a_batch().keys() - WITHOUT_A_DEFAULT - NEEDS_NO_BATCH - NAMED_STORE_REFUSED)
)
def test_project_without_batch_gets_an_error_that_lists_other_projects(
    shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(shared.unknown)
    output_path = str(tmp_path / "made")
    words = [output_path if word in ("made", "made.json") else word for word in words_without_a_batch(name)]
    status = run_to_exit_status(cli, [*words, "--store", str(shared.store), "--json", "-q"])
    out, err = capsys.readouterr()
    error = json.loads(err.splitlines()[-1])["error"]
    assert out == ""
    if name in OF_RUNNING_BATCHES:
        assert (status, error["code"]) == (2, "unknown_id")
        assert "of this project is running" in error["message"]
        return
    assert (status, error["code"]) == (3, "no_batch")
    assert str(shared.unknown) in error["message"]
    assert str(shared.elsewhere) in error["hint"]
    assert str(shared.here) in error["hint"]
    assert "--batch" not in error["hint"], "the hint has an option that not every command accepts"
    assert not Path(output_path).exists()


def test_only_project_below_is_the_default_outside_of_git(codebatch: CommandLine) -> None:
    """A user may unpack two archives, and analyse one after the other from their common parent."""
    for name in ("one", "two"):
        write(codebatch.directory / name / "a.py", "import os\n")
    one = codebatch("run", "one", "--json").json["batch_id"]
    assert codebatch("findings", "--json").json["batch_id"] == one
    two = codebatch("run", "two", "--json").json
    assert two["batch_id"] != one
    error = codebatch("findings", "--json", status=3).error
    assert (error["code"], one in error["hint"]) == ("no_batch", True)
    answer = codebatch("findings", "--json", cwd=codebatch.directory / "one").json
    assert (answer["batch_id"], answer["project"]) == (one, str(codebatch.directory / "one"))


def test_answer_of_another_project_is_marked_even_with_quiet(shared: Shared, tmp_path: Path) -> None:
    line = CommandLine(shared.elsewhere, {"CODEBATCH_STORE": str(shared.store)})
    for words in (("findings",), ("query", "symbols"), ("summary",), ("def", "Main")):
        ended = line(*words, "--batch", shared.analysis, "--json", "-q")
        assert ended.json["project"] == str(shared.here)
        assert ended.notes == (
            f"batch {shared.analysis} belongs to project {shared.here}, not to the current project {shared.elsewhere}\n"
        )
        assert line(*words, "--json", "-q").notes == ""


def make_worktrees(codebatch: CommandLine, *names: str) -> Path:
    """Create a git work tree with one module, and linked work trees at the given paths. Return the main work tree."""
    main = codebatch.directory / "main"
    write(main / "m.py", "def one():\n    return 1\n")
    identity = "git -c user.name=x -c user.email=x@y"
    add = "".join(f" && git worktree add -q {name} HEAD" for name in names)
    codebatch.shell(f"cd main && git init -q . && git add . && {identity} commit -qm 1{add}")
    return main


def test_linked_worktree_uses_the_store_of_the_main_worktree(codebatch: CommandLine) -> None:
    main = make_worktrees(codebatch, "../linked")
    linked = codebatch.directory / "linked"
    first = codebatch("run", "--json", cwd=linked).json
    assert not (linked / ".codebatch").exists()
    same = codebatch("run", "--json", cwd=main).json
    assert (same["action"], same["executed"]) == ("up to date", 0)
    assert codebatch("def", "one", "--json", cwd=linked).json["batch_id"] == first["batch_id"]
    write(linked / "m.py", "def two():\n    return 2\n")
    codebatch("run", "-q", cwd=linked)
    codebatch("run", "-q", cwd=main)
    for tree, name in ((main, "one"), (linked, "two")):
        answer = codebatch("outline", "m.py", "--json", cwd=tree).json
        assert (answer["project"], answer["records"][0]["name"]) == (str(tree), name)


def test_resume_does_not_run_commands_of_another_worktree(codebatch: CommandLine) -> None:
    """`resume` in one tree never runs the commands of another tree."""
    main = make_worktrees(codebatch, "../linked")
    linked = codebatch.directory / "linked"
    for tree in (main, linked):
        write(tree / "work.toml", "[tasks.a]\nrun = 'echo $PWD; test -e fix'\n")
        codebatch("work", "run", "-q", cwd=tree, status=3)
    write(main / "fix", "")
    resumed = codebatch("resume", "--output", "all", cwd=main)
    assert f"[a] {main}\n" in resumed.notes
    assert codebatch("status", "--json", cwd=main).json["status"] == "COMPLETED"
    assert codebatch("status", "--json", cwd=linked).json["status"] == "FAILED"


def test_nested_linked_worktrees_are_excluded_from_the_project(codebatch: CommandLine) -> None:
    main = make_worktrees(codebatch, ".claude/worktrees/agent1", ".claude/worktrees/agent2")
    ended = codebatch("run", "--json", cwd=main)
    assert ended.json["files"] == 1
    note = "linked work trees of this repository are excluded: .claude/worktrees/agent1 and 1 more\n"
    assert note in ended.notes
    why = codebatch("files", "--why", ".claude/worktrees/agent1/m.py", "--json", cwd=main).json
    assert why["rule"] == ".claude/worktrees/agent1 is a linked work tree of this repository"
    codebatch.shell("cd main && git worktree add -q .agents/3 HEAD")
    assert codebatch("summary", "--json", cwd=main).json["stale"] is False, (
        "another linked work tree made the batch stale"
    )
    inside = main / ".claude" / "worktrees" / "agent1"
    assert codebatch("def", "one", "--json", cwd=inside, status=3).error["code"] == "no_batch"
    assert codebatch("run", "--json", cwd=inside).json["executed"] == 0
    assert codebatch("def", "one", "--json", cwd=inside).json["project"] == str(inside)
    codebatch.shell("git init -q main/nested && echo 'x = 1' > main/nested/n.py")
    assert codebatch("run", "--json", cwd=main).json["files"] == 2, "a nested repository must be part of the project"


def test_linked_worktrees_inside_a_submodule_are_excluded(codebatch: CommandLine) -> None:
    """The `.git` of a submodule is a file, like that of `git init --separate-git-dir`."""
    main = make_worktrees(codebatch)
    add = "git -c protocol.file.allow=always submodule -q add ../main sub && git -C sub worktree add -q .agents/1 HEAD"
    codebatch.shell(f"git init -q outer && cd outer && {add}")
    codebatch.shell("git init -q --separate-git-dir=apart main && git -C main worktree add -q .agents/1 HEAD")
    sub = codebatch.directory / "outer" / "sub"
    for tree in (sub, sub.parent, main):
        codebatch("run", "-q", cwd=tree)
        (record,) = codebatch("def", "one", "--json", cwd=tree).records
        assert record["path"] == ("sub/m.py" if tree == sub.parent else "m.py")


def test_forged_git_file_does_not_lead_to_a_store(codebatch: CommandLine) -> None:
    """Anybody can write a `.git` file, but only the owner of the repository can make it refer back to that file."""
    main = make_worktrees(codebatch, "../linked")
    codebatch("run", "-q", cwd=main)
    forged = codebatch.directory / "forged"
    write(forged / "m.py", "x = 1\n")
    shutil.copy(codebatch.directory / "linked" / ".git", forged)
    codebatch("run", "-q", cwd=forged)
    assert (forged / ".codebatch").is_dir()
    assert [row["source"] for row in codebatch("batch", "list", "--json", cwd=main).json] == [str(main)]


def test_store_above_the_project_is_used_only_if_given(codebatch: CommandLine) -> None:
    codebatch("init")
    project = codebatch.directory / "project"
    write(project / "a.py", "import os\n")
    codebatch.shell("git init -q project")
    above = codebatch.directory / ".codebatch"
    error = codebatch("findings", "--json", status=4, cwd=project).error
    assert (error["code"], f"--store {above}" in error["hint"]) == ("store_not_found", True)
    assert f"the store {above} above this project is not used; " in codebatch("run", cwd=project).notes
    assert "above" not in codebatch("run", cwd=project).notes, "the hint about the unused store was repeated"
    assert codebatch("batch", "list", "--json").json == []


def test_run_of_another_project_uses_its_store_and_suggests_valid_commands(codebatch: CommandLine) -> None:
    write(codebatch.directory / "project" / "a.py", "print(undefined)\n")
    codebatch.shell("git init -q project")
    ended = codebatch("run", "project")
    assert (codebatch.directory / "project" / ".codebatch").is_dir()
    assert not (codebatch.directory / ".codebatch").exists()
    suggested = ended.notes.splitlines()[-1].removeprefix("next: ")
    assert "F821" in codebatch.shell(suggested).text


@pytest.mark.parametrize("is_home", [True, False], ids=["home", "world-writable"])
def test_store_is_not_created_in_a_home_or_shared_directory(tmp_path: Path, is_home: bool) -> None:
    place = tmp_path / "place"
    write(place / "sub" / "a.py", "x = 1\n")
    line = CommandLine(place, {"HOME": str(place if is_home else tmp_path)})
    if not is_home:
        place.chmod(0o777)
    reason = "because it is your home directory" if is_home else "because other users may write to it (mode 0777)"
    for words in (("run",), ("init",), ("snapshot", ".")):
        error = line(*words, "--json", status=4).error
        assert error["message"] == f"will not create a store in {place} unless --store gives this location, {reason}"
    assert not (place / ".codebatch").exists()
    line("run", "-q", "--store", ".codebatch")
    error = line("findings", "--json", status=4).error
    assert (error["code"], error["hint"]) == ("store_not_found", f"use this store: --store {place}/.codebatch"), (
        "a store in this place was used without its name"
    )
    assert error["message"] == f"the store in {place} is not used unless --store gives its path, {reason}"
    assert line("run", "sub", "--json").json["files"] == 1
    assert (place / "sub" / ".codebatch").is_dir()


def test_hints_without_a_store_are_valid_commands(tmp_path: Path) -> None:
    """The home directory is a git work tree (dotfiles). A project below it is not a repository."""
    line = CommandLine(tmp_path, {"HOME": str(tmp_path)})
    write(tmp_path / "project" / "m.py", "import os\n")
    line.shell("git init -q .")
    assert line("run", "--json", status=4).error["hint"] == f"give a location: --store {tmp_path}/.codebatch"
    hint = line("findings", "--json", status=4).error["hint"]
    line.shell(hint.partition(": ")[2])
    assert line("findings", "--json", status=4).error["hint"] == f"use this store: --store {tmp_path}/.codebatch"
    hint = line("run", "--json", cwd=tmp_path / "project", status=4).error["hint"]
    line.shell(hint.partition(": ")[2].partition(";")[0])
    assert line("run", "--json", cwd=tmp_path / "project").json["files"] == 1


def test_init_creates_a_store_in_the_project(codebatch: CommandLine) -> None:
    write(codebatch.directory / "sub" / "a.py", "x = 1\n")
    codebatch.shell("git init -q .")
    made = codebatch("init", "--json", cwd=codebatch.directory / "sub").json
    assert (made["store"], made["created"]) == (str(codebatch.directory / ".codebatch"), True)
    assert codebatch("init", ".", "--json").json == {**made, "created": False}
    assert codebatch("init", "sub", "--json").json["store"] == str(codebatch.directory / "sub" / ".codebatch")
    assert codebatch("init", "new", "--json").json["store"] == str(codebatch.directory / "new")
    write(codebatch.directory / "taken" / "a.txt", "x")
    write(codebatch.directory / "taken" / ".codebatch" / "b.txt", "x")
    error = codebatch("init", "taken", "--json", status=4).error
    assert (error["code"], "remove" in error["hint"]) == ("store_foreign", False)


def test_task_list_is_found_upwards_and_runs_once_at_a_time(codebatch: CommandLine) -> None:
    below = codebatch.directory / "sub" / "below"
    below.mkdir(parents=True)
    write(codebatch.directory / "work.toml", "[tasks.a]\nrun = 'echo begun >> ran; cat fifo'\n")
    codebatch.shell("git init -q . && mkfifo fifo")
    first = codebatch.start("work", "run", "-q")
    wait_until((codebatch.directory / "ran").exists, "the task has begun")
    for words in ((), ("-f", "../../work.toml")):
        error = codebatch("work", "run", *words, "--json", status=3, cwd=below).error
        assert error["code"] == "batch_running"
    (codebatch.directory / "fifo").write_text("go on")
    codebatch.finish(first)
    assert codebatch("status", "--json", cwd=below).json["source"] == "work.toml"
    assert (codebatch.directory / "ran").read_text() == "begun\n"
    assert not (below / ".codebatch").exists()
    assert (
        codebatch("work", "run", "--unfinished", "-q", cwd=below).notes == "all selected tasks of work.toml are done\n"
    )


def test_latest_snapshot_is_of_the_current_project(codebatch: CommandLine) -> None:
    codebatch.environment["CODEBATCH_STORE"] = str(codebatch.directory / "store")
    ids = {}
    for name in ("one", "two", "three"):
        write(codebatch.directory / name / "m.py", f"import {name}\n")
        codebatch.shell(f"git init -q {name}")
        if name != "three":
            ids[name] = codebatch("snapshot", ".", "--json", cwd=codebatch.directory / name).json["snapshot_id"]
    for name, snapshot_id in ids.items():
        here = codebatch.directory / name
        for words in (("snapshot", "show"), ("batch", "init")):
            assert codebatch(*words, "--json", cwd=here).json["snapshot_id"] == snapshot_id
    here = codebatch.directory / "three"
    for line in ("snapshot show", "batch init", "files --snapshot latest"):
        error = codebatch(*line.split(), "--json", cwd=here, status=2).error
        assert (error["code"], str(here) in error["message"]) == ("unknown_id", True)
    named = codebatch("batch", "init", "--snapshot", ids["one"], "-q", cwd=here)
    assert f"belongs to project {codebatch.directory}/one, not to the current project {here}\n" in named.notes
    write(here / "m.py", "import one\n")
    codebatch("run", "-q", cwd=here)
    assert codebatch("snapshot", "show", "--json", cwd=here).json["snapshot_id"] == ids["one"], (
        "equal trees have the same snapshot"
    )


def test_removed_current_directory_has_no_default_batch(codebatch: CommandLine) -> None:
    """The directory may have been removed by `git worktree remove`.

    The named store has only batches of other projects.
    """
    write(codebatch.directory / "m.py", "import os\n")
    codebatch.environment["CODEBATCH_STORE"] = str(codebatch.directory / "store")
    batch = codebatch("run", ".", "--json").json["batch_id"]
    for words in ("findings", "status", "diff", "batch show latest", "findings --batch latest"):
        ended = codebatch.shell(f"mkdir gone && cd gone && rmdir ../gone && codebatch {words} --json", status=3)
        error = ended.error
        assert (error["code"], error["message"]) == (
            "no_batch",
            "the current directory no longer exists",
        )
        assert batch in error["hint"]
    shown = codebatch.shell(f"mkdir gone && cd gone && rmdir ../gone && codebatch findings --json --batch {batch}")
    assert shown.json["batch_id"] == batch


def test_checkouts_that_share_a_store_get_their_own_answers(codebatch: CommandLine) -> None:
    """The answers do not depend on later runs of other checkouts, even if a run has nothing to do."""
    codebatch.environment["CODEBATCH_STORE"] = str(codebatch.directory / "store")
    names = ("one", "two", "three", "four", "five")
    for name in names:
        write(codebatch.directory / name / "m.py", f"import os\n\n\ndef {name}(x):\n    return {name}(x)\n")
        codebatch.shell(
            f"git init -q {name} && cd {name} && git add . && git -c user.name=x -c user.email=x@y commit -qm 1"
        )
        codebatch("run", "-q", cwd=codebatch.directory / name)
    for name in reversed(names):
        here = codebatch.directory / name
        assert codebatch("run", "--json", cwd=here).json["action"] == "up to date"
        questions = (
            ("findings",), ("outline", "m.py"), ("def", name), ("callers", name), ("references", name),
            ("inspect", "m.py"), ("files",), ("query", "symbols"), ("summary",), ("check", "--allow-no-base"),
        )  # fmt: skip
        for question in questions:
            ended = codebatch(*question, "--json", "-q", cwd=here)
            assert (ended.json["project"], ended.json["stale"]) == (str(here), False), question
        assert codebatch("sql", "select name from functions", "-o", "csv", cwd=here).lines == ["name", name]
    write(codebatch.directory / "two" / "m.py", "def f(:\n")
    codebatch("run", "-q", cwd=codebatch.directory / "two")
    codebatch("run", "-q", cwd=codebatch.directory / "one")
    assert codebatch("check", "--json", cwd=codebatch.directory / "two", status=1).json["passed"] is False
    assert codebatch("check", "--json", cwd=codebatch.directory / "one", status=3).json["compared"] is False
