"""C and C++: included files are searched in the directory of the including file, then in include directories.

Compilers know the include directories, but trees seldom list them. A result is `exact` in two cases. The file is in the
directory of the including file, or a compile_commands.json in the tree leads to it. Otherwise, conventional directories
are searched in each directory above the including file: `include/`, `src/`, and the directory itself. If this fails,
any file whose last path components equal the included path fits.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from codebatch_workers.resolution.import_rule import ImportContext, ImportRule
from codebatch_workers.resolution.tree import (
    EXTERNAL_IMPORT,
    ResolvedImport,
    exact_import,
    fitting_import,
    iter_ancestors,
    join_path,
    nearest_paths,
    parent_directory,
    relative_to,
)

_COMPILE_COMMANDS_FILE = "compile_commands.json"
_COMPILE_COMMANDS_MAX = 200_000
_CONVENTIONAL_DIRECTORIES = ("include", "", "src", "inc")
_INCLUDE_OPTION = re.compile(r"-(?:I|isystem|iquote|idirafter)(.*)", re.DOTALL)

# Headers of the C standards and of POSIX. They come with the compiler, not with the project.
_STANDARD_HEADER_NAMES = """
aio.h arpa/inet.h assert.h complex.h cpio.h ctype.h dirent.h dlfcn.h errno.h fcntl.h fenv.h float.h fmtmsg.h
fnmatch.h ftw.h glob.h grp.h iconv.h inttypes.h iso646.h langinfo.h libgen.h limits.h locale.h malloc.h math.h
memory.h monetary.h mqueue.h ndbm.h net/if.h netdb.h netinet/in.h netinet/tcp.h nl_types.h poll.h pthread.h pwd.h
regex.h sched.h search.h semaphore.h setjmp.h signal.h spawn.h stdalign.h stdarg.h stdatomic.h stdbit.h stdbool.h
stdckdint.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h strings.h stropts.h sys/ioctl.h sys/ipc.h
sys/mman.h sys/msg.h sys/param.h sys/resource.h sys/select.h sys/sem.h sys/shm.h sys/socket.h sys/stat.h
sys/statvfs.h sys/time.h sys/times.h sys/types.h sys/uio.h sys/un.h sys/utsname.h sys/wait.h syslog.h tar.h
termios.h tgmath.h threads.h time.h trace.h uchar.h ulimit.h unistd.h utime.h utmpx.h wchar.h wctype.h wordexp.h
"""
_STANDARD_HEADERS = frozenset(_STANDARD_HEADER_NAMES.split())


class _CompileCommand(msgspec.Struct):
    directory: str = ""
    file: str = ""
    command: str = ""
    arguments: list[str] = []


class CIncludes(ImportRule):
    """The resolution of `#include` paths. Whether quotes or angle brackets surround a path is unknown."""

    depends_on_file = True

    def __init__(self, context: ImportContext) -> None:
        super().__init__(context)
        self._ranks: dict[str, Mapping[str, int]] = {}

    def resolve(self, path: str, target: str) -> ResolvedImport:
        """Resolve `target`, an import in the file `path`."""
        directory = parent_directory(path)
        sibling = relative_to(directory, target)
        # `<string.h>` is the compiler's header, even if the directory has a file of this name. `"string.h"` is the file
        # in the directory. Both look alike here, because quotes and brackets are unknown. Headers of the C++ standard
        # have no extension.
        is_standard = target in _STANDARD_HEADERS or "." not in target
        # If a header seems to include itself, it includes the compiler's header, or the next one of this name.
        if sibling != path and sibling in self._tree.paths:
            return fitting_import([sibling]) if is_standard else exact_import(sibling)
        compiled = self._by_compile_commands(path, target)
        if compiled is not None:
            return compiled
        ending = relative_to("", target)
        matches = [file for file in self._tree.files_ending_with(ending) if file != path] if ending else []
        if not matches:
            return EXTERNAL_IMPORT
        assert ending is not None
        roots = {file[: len(file) - len(ending)].rstrip("/"): file for file in matches}
        ranks = self._ranks_from(directory)
        ranked = [(ranks[root], file) for root, file in roots.items() if root in ranks]
        if ranked:
            rank, file = min(ranked)
            is_by_convention = _CONVENTIONAL_DIRECTORIES[rank % len(_CONVENTIONAL_DIRECTORIES)] == "include"
            return fitting_import([file]) if not is_standard or is_by_convention else EXTERNAL_IMPORT
        return EXTERNAL_IMPORT if is_standard else fitting_import(nearest_paths(directory, matches))

    def _ranks_from(self, directory: str) -> Mapping[str, int]:
        """Map include directories to ranks, for files in `directory`. Nearer directories have lower ranks.

        The include directories are the conventional ones in `directory` and in each directory above it.
        """
        ranks = self._ranks.get(directory)
        if ranks is None:
            ranks = {}
            for depth, above in enumerate(iter_ancestors(directory)):
                for place, name in enumerate(_CONVENTIONAL_DIRECTORIES):
                    ranks.setdefault(join_path(above, name), depth * len(_CONVENTIONAL_DIRECTORIES) + place)
            self._ranks[directory] = ranks
        return ranks

    # -- compile_commands.json ----------------------------------------------------------------------------------------

    def _by_compile_commands(self, path: str, target: str) -> ResolvedImport | None:
        """Find an included file in the include directories of compile commands. Return None if there is none.

        If `path` is a compiled file, the directories of its own command are searched, and the result is `exact`. If
        `path` is a header, the directories of all commands are searched.
        """
        if not self._include_directories:
            return None
        own_directories = self._include_directories.get(path)
        for directory in own_directories if own_directories is not None else self._all_include_directories:
            file = relative_to(directory, target)
            if file is not None and file in self._tree.paths:
                return exact_import(file) if own_directories is not None else fitting_import([file])
        return None

    @cached_property
    def _include_directories(self) -> Mapping[str, Sequence[str]]:
        """Map each compiled file to its include directories. Directories outside the source tree are left out."""
        commands = [
            command for file in self._tree.files_named(_COMPILE_COMMANDS_FILE) for command in self._read_commands(file)
        ]
        base = self._compilation_base(commands[:_COMPILE_COMMANDS_MAX])
        if base is None:
            return {}
        directories_by_file: dict[str, Sequence[str]] = {}
        for command in commands[:_COMPILE_COMMANDS_MAX]:
            file = _path_in_tree(base, command.directory, command.file)
            if file in self._tree.paths and file not in directories_by_file:
                places = (_path_in_tree(base, command.directory, option) for option in _include_options(command))
                directories_by_file[file] = [place for place in places if place is not None]
        return directories_by_file

    @cached_property
    def _all_include_directories(self) -> Sequence[str]:
        counts = Counter(place for places in self._include_directories.values() for place in places)
        return [place for place, _ in counts.most_common()]

    def _read_commands(self, file: str) -> list[_CompileCommand]:
        try:
            return msgspec.json.decode(self._tree.read(file) or b"[]", type=list[_CompileCommand])
        except (msgspec.DecodeError, RecursionError):
            return []

    def _compilation_base(self, commands: Sequence[_CompileCommand]) -> str | None:
        """Return the directory that contained the source tree on the compiling machine, or None.

        It is the directory below which the largest number of compiled files exist in the tree.
        """
        counts: Counter[str] = Counter()
        for command in commands:
            absolute = relative_to("", _absolute_path(command.directory, command.file).lstrip("/")) or ""
            for above in iter_ancestors(absolute):
                counts[above] += absolute[len(above) :].lstrip("/") in self._tree.paths
        best = max(counts, key=lambda base: (counts[base], len(base), base), default="")
        return best if counts[best] else None


def _include_options(command: _CompileCommand) -> list[str]:
    try:
        words = command.arguments or shlex.split(command.command)
    except ValueError:
        return []
    options = []
    for place, word in enumerate(words):
        match = _INCLUDE_OPTION.fullmatch(word)
        if match is not None:
            following = words[place + 1] if place + 1 < len(words) else ""
            options.append(match[1] or following)
    return [option for option in options if option]


def _absolute_path(directory: str, written: str) -> str:
    return written if written.startswith("/") else f"{directory}/{written}"


def _path_in_tree(base: str, directory: str, written: str) -> str | None:
    """Convert a path on the compiling machine to a path in the tree. Return None if it is outside the tree.

    `base` is the directory of the tree on that machine. `written` can be relative to `directory`.
    """
    absolute = relative_to("", _absolute_path(directory, written).lstrip("/"))
    if absolute is None or not (absolute == base or not base or absolute.startswith(f"{base}/")):
        return None
    return absolute[len(base) :].lstrip("/")


IMPORTS = {"c": CIncludes, "cpp": CIncludes}
