"""C and C++: the directory of the file, then include directories, which compilers are told and the tree seldom tells.

`exact` is what stands beside the file, and what a compile_commands.json of the tree says. Conventional directories come
next (`include/`, `src/`, the directory itself, of each directory above the file), then the end of a path.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from codebatch_workers.resolution.tree import (
    EXTERNAL,
    PathTree,
    Resolved,
    ancestors,
    exact,
    fitting,
    join,
    nearest,
    parent,
    relative_to,
)

_COMMANDS = "compile_commands.json"
_COMMANDS_MAX = 200_000
_CONVENTIONS = ("include", "", "src", "inc")
_INCLUDE_OPTION = re.compile(r"-(?:I|isystem|iquote|idirafter)(.*)", re.DOTALL)

# Headers of the C and C++ standards, and those of POSIX: what a compiler brings along.
_STANDARD_NAMES = """
aio.h arpa/inet.h assert.h complex.h cpio.h ctype.h dirent.h dlfcn.h errno.h fcntl.h fenv.h float.h fmtmsg.h
fnmatch.h ftw.h glob.h grp.h iconv.h inttypes.h iso646.h langinfo.h libgen.h limits.h locale.h malloc.h math.h
memory.h monetary.h mqueue.h ndbm.h net/if.h netdb.h netinet/in.h netinet/tcp.h nl_types.h poll.h pthread.h pwd.h
regex.h sched.h search.h semaphore.h setjmp.h signal.h spawn.h stdalign.h stdarg.h stdatomic.h stdbit.h stdbool.h
stdckdint.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h strings.h stropts.h sys/ioctl.h sys/ipc.h
sys/mman.h sys/msg.h sys/param.h sys/resource.h sys/select.h sys/sem.h sys/shm.h sys/socket.h sys/stat.h
sys/statvfs.h sys/time.h sys/times.h sys/types.h sys/uio.h sys/un.h sys/utsname.h sys/wait.h syslog.h tar.h
termios.h tgmath.h threads.h time.h trace.h uchar.h ulimit.h unistd.h utime.h utmpx.h wchar.h wctype.h wordexp.h
"""
_STANDARD = frozenset(_STANDARD_NAMES.split())


class _Command(msgspec.Struct):
    directory: str = ""
    file: str = ""
    command: str = ""
    arguments: list[str] = []


class CIncludes:
    """Resolves the path of an `#include`, whose quotes or brackets are not known."""

    def __init__(self, tree: PathTree) -> None:
        self._tree = tree
        self._ranks: dict[str, Mapping[str, int]] = {}

    def resolve(self, path: str, target: str) -> Resolved:
        """Where the target leads from a file."""
        directory = parent(path)
        beside = relative_to(directory, target)
        # `<string.h>` is the compiler's, whatever stands beside; `"string.h"` is not. C++'s own have no ending.
        is_standard = target in _STANDARD or "." not in target
        # A header that seems to include itself includes the compiler's, or the next of its name.
        if beside != path and beside in self._tree.paths:
            return fitting([beside]) if is_standard else exact(beside)
        told = self._told(path, target)
        if told is not None:
            return told
        ending = relative_to("", target)
        found = [file for file in self._tree.ending_with(ending) if file != path] if ending else []
        if not found:
            return EXTERNAL
        assert ending is not None
        roots = {file[: len(file) - len(ending)].rstrip("/"): file for file in found}
        ranks = self._ranks_from(directory)
        ranked = [(ranks[root], file) for root, file in roots.items() if root in ranks]
        if ranked:
            rank, file = min(ranked)
            is_by_convention = _CONVENTIONS[rank % len(_CONVENTIONS)] == "include"
            return fitting([file]) if not is_standard or is_by_convention else EXTERNAL
        return EXTERNAL if is_standard else fitting(nearest(directory, found))

    def _ranks_from(self, directory: str) -> Mapping[str, int]:
        """The conventional include directories of a directory, by nearness."""
        known = self._ranks.get(directory)
        if known is None:
            known = {}
            for depth, above in enumerate(ancestors(directory)):
                for place, name in enumerate(_CONVENTIONS):
                    known.setdefault(join(above, name), depth * len(_CONVENTIONS) + place)
            self._ranks[directory] = known
        return known

    # -- compile_commands.json ----------------------------------------------------------------------------------------

    def _told(self, path: str, target: str) -> Resolved | None:
        """What the compiler was told: exactly for a file that it compiled, by all directories for a header."""
        if not self._told_directories:
            return None
        own = self._told_directories.get(path)
        for directory in own if own is not None else self._told_to_any:
            file = relative_to(directory, target)
            if file is not None and file in self._tree.paths:
                return exact(file) if own is not None else fitting([file])
        return None

    @cached_property
    def _told_directories(self) -> Mapping[str, Sequence[str]]:
        """The include directories of each file compiled, of those below the tree."""
        commands = [each for file in self._tree.all_named(_COMMANDS) for each in self._commands(file)]
        base = self._base(commands[:_COMMANDS_MAX])
        if base is None:
            return {}
        found: dict[str, Sequence[str]] = {}
        for each in commands[:_COMMANDS_MAX]:
            file = _below(base, each.directory, each.file)
            if file in self._tree.paths and file not in found:
                places = (_below(base, each.directory, option) for option in _include_options(each))
                found[file] = [place for place in places if place is not None]
        return found

    @cached_property
    def _told_to_any(self) -> Sequence[str]:
        counts = Counter(place for places in self._told_directories.values() for place in places)
        return [place for place, _ in counts.most_common()]

    def _commands(self, file: str) -> list[_Command]:
        try:
            return msgspec.json.decode(self._tree.read(file) or b"[]", type=list[_Command])
        except (msgspec.DecodeError, RecursionError):
            return []

    def _base(self, commands: Sequence[_Command]) -> str | None:
        """The directory in which the tree lay when it was compiled: of which most files compiled are in the tree."""
        counts: Counter[str] = Counter()
        for each in commands:
            absolute = relative_to("", _absolute(each.directory, each.file).lstrip("/")) or ""
            for above in ancestors(absolute):
                counts[above] += absolute[len(above) :].lstrip("/") in self._tree.paths
        found = max(counts, key=lambda base: (counts[base], len(base), base), default="")
        return found if counts[found] else None


def _include_options(command: _Command) -> list[str]:
    try:
        words = command.arguments or shlex.split(command.command)
    except ValueError:
        return []
    found = []
    for place, word in enumerate(words):
        match = _INCLUDE_OPTION.fullmatch(word)
        if match is not None:
            following = words[place + 1] if place + 1 < len(words) else ""
            found.append(match[1] or following)
    return [option for option in found if option]


def _absolute(directory: str, written: str) -> str:
    return written if written.startswith("/") else f"{directory}/{written}"


def _below(base: str, directory: str, written: str) -> str | None:
    """A path of the machine that compiled, as one of the tree."""
    absolute = relative_to("", _absolute(directory, written).lstrip("/"))
    if absolute is None or not (absolute == base or not base or absolute.startswith(f"{base}/")):
        return None
    return absolute[len(base) :].lstrip("/")
