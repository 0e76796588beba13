"""The C# projects of a tree: the files that belong to each, the projects that it references, and its global usings."""

from __future__ import annotations

import re
from functools import cached_property

from codebatch.model.graph import find_reachable
from codebatch_workers.resolution.configuration_files import decode_text
from codebatch_workers.resolution.tree import PathTree, iter_ancestors, parent_directory, relative_to

_PROJECT_ENDING = ".csproj"
_SHARED_PROPERTIES_FILE = "Directory.Build.props"
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_REFERENCE = re.compile(r"""<ProjectReference\s[^>]*?\bInclude\s*=\s*["']([^"'>]+)["']""")
_USING = re.compile(r"""<Using\s(?![^>]*\b(?:Alias|Static)\s*=)[^>]*?\bInclude\s*=\s*["']([\w.]+)["']""")


class CSharpProjects:
    """The projects of a tree. A project is the directory of a .csproj file."""

    def __init__(self, tree: PathTree) -> None:
        self._tree = tree
        self._project_by_directory: dict[str, str | None] = {}
        self._usings: dict[str, list[str]] = {}
        self._visible: dict[str, frozenset[str]] = {}

    def project_of(self, path: str) -> str | None:
        """Return the project of a file: the nearest directory above it with a .csproj file. Return None without any."""
        own_directory = parent_directory(path)
        if own_directory in self._project_by_directory:
            return self._project_by_directory[own_directory]
        passed: list[str] = []
        project: str | None = None
        for directory in iter_ancestors(own_directory):
            if directory in self._project_by_directory:
                project = self._project_by_directory[directory]
                break
            passed.append(directory)
            if directory in self._files_by_project:
                project = directory
                break
        self._project_by_directory.update(dict.fromkeys(passed, project))
        return project

    def visible_projects(self, project: str) -> frozenset[str]:
        """Return the projects whose types a project can use: itself, and those that it references, also indirectly."""
        if project not in self._visible:
            self._visible[project] = frozenset(find_reachable([project], self._references))
        return self._visible[project]

    def global_usings(self, project: str) -> list[str]:
        """Return the namespaces that the files of a project import for all of its source files."""
        if project not in self._usings:
            self._usings[project] = [name for _, text in self._project_texts(project) for name in _USING.findall(text)]
        return self._usings[project]

    @cached_property
    def _files_by_project(self) -> dict[str, list[str]]:
        files: dict[str, list[str]] = {}
        for path in sorted(self._tree.paths):
            if path.endswith(_PROJECT_ENDING):
                files.setdefault(parent_directory(path), []).append(path)
        return files

    def _references(self, project: str) -> set[str]:
        references = set[str]()
        for directory, text in self._project_texts(project):
            for written in _REFERENCE.findall(text):
                place = relative_to(directory, written.replace("\\", "/"))
                if place is not None and place in self._tree.paths:
                    references.add(parent_directory(place))
        return references

    def _project_texts(self, project: str) -> list[tuple[str, str]]:
        """Return the texts that define a project, each with the directory to which its paths are relative."""
        paths = list(self._files_by_project.get(project, ()))
        shared = self._tree.nearest_file(project, _SHARED_PROPERTIES_FILE)
        paths += [shared] if shared is not None else []
        contents = ((path, self._tree.read(path)) for path in paths)
        return [
            (parent_directory(path), _COMMENT.sub("", decode_text(content)))
            for path, content in contents
            if content is not None
        ]
