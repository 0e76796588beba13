"""Tasks that call a program: the table `[tasks.NAME]` with `command`, as in SPEC.md "Command tasks"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import permutations
from typing import Literal

import msgspec

from codebatch.model.digest import Digest, digest_document, digest_pairs
from codebatch.model.entry import is_safe_path
from codebatch.model.gitignore import find_mistake
from codebatch.model.record import FileClass, Severity
from codebatch.model.task import CustomTaskLocation, JsonValue, RewriteTaskLocation
from codebatch.model.text.suggestions import closest_word

FILES_ARGUMENT = "{files}"
FILE_ARGUMENT = "{file}"
REPORT_ARGUMENT = "{report}"
PLACEHOLDERS = (FILES_ARGUMENT, FILE_ARGUMENT, REPORT_ARGUMENT)
_NAMES = tuple(placeholder.strip("{}") for placeholder in PLACEHOLDERS)
_BRACED_NAME = re.compile(r"\{(\w+)\}")

EXIT_RECORDS = "exit"
"""The value of `records` for programs whose exit status is their only finding."""

LANGUAGE_PREFIX = "lang:"
"""In `match`, the prefix of a language. Other texts are patterns of gitignore(5)."""

DEFAULT_CALL_SECONDS_MAX = 60.0

EXIT_STATUS_MAX = 255
TABLE_BYTES_MAX = 65_536
"""Maximum size of a table as JSON. Workers get it as a part of an argument, which Linux limits to 128 KiB."""


def config_files_context_name(task: str) -> str:
    """Return the name of the context that has the configuration files of a command task."""
    return f"config-files-{task}"


class CommandTable(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The settings of a task that calls a program.

    - `command`: the program and its arguments. An argument that is a placeholder means files or the path of
      the report.
    - `match`: patterns and languages that select files. Empty: all text files. `excluded_classes` is the setting
      `class`.
    - `chunk`: the maximum number of files of a call, or None.
    - `records`: the format of the report (interchange/report_formats.py), or EXIT_RECORDS.
    - `config_files`: patterns of files of the snapshot that are placed beside the checked files.
    - `link`: directories of the project that are linked in. `lock`: files of the project that determine these
      directories, or whatever else the program reads.
    - `version`: the command whose output identifies the program; False: none; None: the program with `--version`.
    - `home`: `user` keeps the user's home directory.
    - `optional`: if the program is missing, the task is left out.
    - `seconds_max`: the time limit of a call.
    - `tool` and `severity`: for findings that have none.
    - `ignore`: texts of lines that report no problem, and of messages without a file. `*` means any text.

    Raises ValueError for invalid values.
    """

    command: tuple[str, ...]
    records: JsonValue
    scope: Literal["file", "project"] = "file"
    match: tuple[str, ...] = ()
    excluded_classes: tuple[FileClass, ...] = msgspec.field(name="class", default=("generated", "minified", "vendored"))
    chunk: int | None = None
    exit_ok: tuple[int, ...] = (0,)
    config_files: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    lock: tuple[str, ...] = ()
    version: tuple[str, ...] | bool | None = None
    home: Literal["scratch", "user"] = "scratch"
    optional: bool = False
    env: dict[str, str] = {}
    seconds_max: float | None = None
    tool: str = ""
    severity: Severity = "warning"
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.command or not all(self.command) or any("\0" in argument for argument in self.command):
            raise ValueError("`command` must be a list of a program and its arguments, each without NUL")
        self._check_placeholders()
        if self.chunk is not None and self.chunk < 1:
            raise ValueError("`chunk` must be at least 1")
        if not self.exit_ok or not all(0 <= status <= EXIT_STATUS_MAX for status in self.exit_ok):
            raise ValueError(f"`exit_ok` must have at least one exit status from 0 to {EXIT_STATUS_MAX}")
        if self.seconds_max is not None and not self.seconds_max > 0:
            raise ValueError("`seconds_max` must be more than 0")
        if self.version is True or (isinstance(self.version, tuple) and not all(self.version or ("",))):
            raise ValueError("`version` must be a list of a program and its arguments, or false")
        self._check_patterns()
        self._check_paths()
        self._check_environment()
        if len(msgspec.json.encode(self)) > TABLE_BYTES_MAX:
            raise ValueError(f"the settings of a task must not be longer than {TABLE_BYTES_MAX:,} bytes")

    def _check_paths(self) -> None:
        for name, paths in (("link", self.link), ("lock", self.lock)):
            for path in paths:
                if not is_safe_path(path.rstrip("/").encode("utf-8", "surrogateescape")):
                    raise ValueError(f"{path!r} in `{name}` must be a path in the project")
        for above, below in permutations(sorted({path.rstrip("/") for path in self.link}), 2):
            if below.startswith(f"{above}/"):
                raise ValueError(f"`link` has {below!r}, which is below {above!r}: remove {below!r}")

    def _check_environment(self) -> None:
        for variable, value in self.env.items():
            if not variable or "=" in variable or "\0" in variable + value:
                raise ValueError(f"{variable!r} in `env` is not a valid variable")
            if value.startswith("$"):
                raise ValueError(
                    f"{value!r} in `env` is not expanded: write the value itself. It becomes part of cache keys, so it "
                    "must not be a secret"
                )

    def _check_placeholders(self) -> None:
        for argument in self.command:
            for placeholder in PLACEHOLDERS:
                if placeholder in argument and argument != placeholder:
                    raise ValueError(f"{placeholder} must be a whole argument, not a part of {argument!r}")
            name = _BRACED_NAME.fullmatch(argument)
            similar = closest_word(name[1].lower(), _NAMES) if name and name[1] not in _NAMES else None
            if similar is not None:
                raise ValueError(f"{argument!r} is no placeholder: did you mean '{{{similar}}}'?")
        used = [argument for argument in self.command if argument in PLACEHOLDERS]
        if self.command[0] in PLACEHOLDERS:
            raise ValueError(f"`command` must begin with a program, not with {self.command[0]}")
        if len(used) > len(set(used)):
            raise ValueError(f"`command` has {used[0]} twice")
        if FILES_ARGUMENT in used and FILE_ARGUMENT in used:
            raise ValueError(f"`command` has both {FILES_ARGUMENT} and {FILE_ARGUMENT}")
        if self.scope == "file" and not {FILES_ARGUMENT, FILE_ARGUMENT} & set(used):
            raise ValueError(
                f"`command` must have the argument {FILES_ARGUMENT} or {FILE_ARGUMENT}, unless the task has "
                'scope = "project"'
            )
        if self.scope == "project" and FILE_ARGUMENT in used:
            raise ValueError(f'with scope = "project", use {FILES_ARGUMENT} or no placeholder, not {FILE_ARGUMENT}')
        if self.records == EXIT_RECORDS and FILE_ARGUMENT not in used:
            raise ValueError(f'records = "{EXIT_RECORDS}" needs the argument {FILE_ARGUMENT}')
        if self.records == EXIT_RECORDS and REPORT_ARGUMENT in used:
            raise ValueError(f'records = "{EXIT_RECORDS}" reads no report: remove {REPORT_ARGUMENT}')

    def _check_patterns(self) -> None:
        patterns = [text for text in self.match if not text.startswith(LANGUAGE_PREFIX)]
        if len(patterns) < len(self.match):  # Exclusions can follow a language.
            patterns.insert(0, "*")
        for name, texts in (("match", patterns), ("config_files", self.config_files)):
            if (mistake := find_mistake(texts)) is not None:
                raise ValueError(
                    f"pattern {mistake.pattern!r} in `{name}` can match no path: {mistake.reason}; {mistake.hint}"
                )

    @property
    def languages(self) -> frozenset[str]:
        """The languages in `match`."""
        return frozenset(text.removeprefix(LANGUAGE_PREFIX) for text in self.match if text.startswith(LANGUAGE_PREFIX))

    @property
    def path_patterns(self) -> tuple[str, ...]:
        """The patterns in `match`."""
        return tuple(text for text in self.match if not text.startswith(LANGUAGE_PREFIX))

    @property
    def calls_one_file(self) -> bool:
        """Whether each call gets one file."""
        return FILE_ARGUMENT in self.command

    @property
    def unkeyed_input(self) -> str:
        """The reason why the cache key does not cover everything that the program reads, or an empty text."""
        if self.version is False:
            return "version = false"
        if not self.lock and self.link:
            return f"link = {list(self.link)} without lock"
        if not self.lock and self.home == "user":
            return 'home = "user" without lock'
        return ""


class CommandTaskLocation(msgspec.Struct, frozen=True, kw_only=True, tag="command", tag_field="type"):
    """A task that calls a program: its table, and the facts that a coordinator found out about the program.

    - `project`: the directory of the configuration.
    - `default_seconds`: the time limit of a call, if the table has none.
    - `program`: the absolute path of the program. It is empty until the program was looked up.
    - `states`: the fingerprints of the program and of other programs that the command names. Workers refuse a program
      that has changed.
    - `version`: the digest of the output of `version`, and `version_text` its first version number. `lock`: the digests
      of the files in `lock`.
    - `inputs`: the digests of files of the project that the command names. `build`: a digest of files outside of the
      project that it names. It is not part of `digest`, because machines with other builds of a program share results.
    """

    table: CommandTable
    project: str
    default_seconds: float = DEFAULT_CALL_SECONDS_MAX
    program: str = ""
    states: dict[str, tuple[int, ...]] = {}
    version: Digest | None = None
    version_text: str = ""
    lock: dict[str, Digest] = {}
    inputs: dict[str, Digest] = {}
    build: Digest = Digest("")

    @property
    def call_seconds(self) -> float:
        """The time limit of a call, in seconds."""
        return self.table.seconds_max or self.default_seconds

    @property
    def digest(self) -> Digest:
        """The digest of everything that determines results, apart from the files of the snapshot."""
        return digest_pairs(
            [
                ("table", digest_document(self.table)),
                *([] if self.version is None else [("version", self.version)]),
                *((f"lock:{path}", digest) for path, digest in self.lock.items()),
                *((f"file:{path}", digest) for path, digest in self.inputs.items()),
            ]
        )


TaskLocation = CustomTaskLocation | CommandTaskLocation | RewriteTaskLocation
"""The location of a task that the configuration of a project defines."""


class CallTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about calls, which the journal keeps: the number of selected files."""

    files: int = 0


class CommandConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a command task that a plan contains: codes to leave out, and severities by code."""

    off: tuple[str, ...] = ()
    severities: Mapping[str, Severity] = {}
