"""Measure a lower bound for a snapshot of an unchanged tree. The text of this file is run by `python -c`."""

# Import nothing that the interpreter has not imported already, except for starting git.
import os

reading, writing = os.pipe()
pid = os.posix_spawnp(
    "git",
    ["git", "ls-files", "-co", "-z", "--exclude-standard"],
    os.environ,
    file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1), (os.POSIX_SPAWN_CLOSE, reading)],
)
os.close(writing)
with open(reading, "rb") as answer:
    names = answer.read().split(b"\0")
os.waitpid(pid, 0)
for name in names[:-1]:
    os.lstat(name)
