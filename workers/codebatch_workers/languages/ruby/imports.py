"""Ruby: required files are found by path. The load path is known only at run time."""

from __future__ import annotations

from codebatch_workers.resolution.import_rule import ImportRule
from codebatch_workers.resolution.tree import (
    EXTERNAL_IMPORT,
    ResolvedImport,
    exact_import,
    fitting_import,
    is_test_or_example,
    iter_ancestors,
    join_path,
    likely_import,
    parent_directory,
    relative_to,
)

_LIBRARIES = """
English abbrev base64 benchmark bigdecimal bundler cgi coverage csv date delegate digest drb erb etc fcntl fiddle
fileutils find forwardable getoptlong ipaddr irb json logger matrix minitest monitor mutex_m nkf objspace observer
open-uri open3 openssl optparse ostruct pathname pp prettyprint prime prism pstore psych pty racc rake rbconfig rdoc
readline reline resolv rexml rinda ripper rss rubygems securerandom set shellwords singleton socket stringio strscan
syslog tempfile time timeout tmpdir tracer tsort uri weakref webrick win32ole yaml zlib
"""
_STANDARD_LIBRARY = frozenset(_LIBRARIES.split())
"""Names of Ruby's own libraries. A file with such a name is meant only if its directory is on the load path."""


class RubyRequires(ImportRule):
    """The resolution of Ruby's `require` and `require_relative`.

    `require_relative` gives `./a`, which is resolved from the directory of the file. `require "a/b"` is resolved below
    the `lib` directory of a gem.

    A name of one component can be a file beside a script, because scripts add their directory to the load path. Code in
    a `lib` directory is loaded from this directory, so there the name means another library.
    """

    def resolve(self, path: str, target: str) -> ResolvedImport:
        """Resolve `target`, an import in the file `path`."""
        directory = parent_directory(path)
        if target.startswith("."):
            place = relative_to(directory, target)
            return EXTERNAL_IMPORT if place is None else exact_import(self._tree.first_existing((f"{place}.rb", place)))
        for above in iter_ancestors(directory):
            library = self._tree.first_existing((f"{join_path(above, 'lib')}/{target}.rb",))
            if library is not None:
                is_gem = any(file.endswith(".gemspec") for file in self._tree.files_in(above))
                return exact_import(library) if is_gem else fitting_import([library])
        named = target if target.endswith(".rb") else f"{target}.rb"
        if "/" not in target:
            return self._resolve_one_component(path, named)
        candidates = [
            file
            for file in self._tree.files_ending_with(named)
            if file[: len(file) - len(named)].rstrip("/").rpartition("/")[2] in ("", "lib", "app", "test", "spec")
        ]
        return likely_import(path, candidates)

    def _resolve_one_component(self, path: str, named: str) -> ResolvedImport:
        """Resolve a name of one component to a file in a directory above `path`, or to the main file of another gem."""
        directory = parent_directory(path)
        is_library = "lib" in directory.split("/") or named.removesuffix(".rb") in _STANDARD_LIBRARY
        places = (*(() if is_library else ("",)), *(("test", "spec") if is_test_or_example(path) else ()))
        for above in iter_ancestors(directory):
            file_above = self._tree.first_existing(join_path(join_path(above, place), named) for place in places)
            if file_above is not None:
                return likely_import(path, [file_above])
        gems = [
            file
            for file in self._tree.files_ending_with(f"lib/{named}")
            if any(
                file_in_gem.endswith(".gemspec")
                for file_in_gem in self._tree.files_in(parent_directory(parent_directory(file)))
            )
        ]
        return likely_import(path, gems)


IMPORTS = {"ruby": RubyRequires}
