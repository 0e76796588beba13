"""Names that a program defines in the Python files that it runs, according to the program's documentation.

The name or the content of a file shows which program runs the file. Undefined names that this program does not define
are still reported.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from codebatch_workers.syntax.source import SourceFile


class _ProgramWithNames(NamedTuple):
    """A program, the files that it runs, and the names that it defines in them.

    The program runs a file if the file's name matches `file_name` and its text matches `mark`.
    """

    file_name: re.Pattern[bytes]
    mark: re.Pattern[bytes]
    names: frozenset[bytes]


_ANY_FILE = re.compile(rb".*", re.DOTALL)
_ANY_TEXT = re.compile(rb"")


def _split_names(text: bytes) -> frozenset[bytes]:
    return frozenset(text.split())


_PROGRAMS_WITH_NAMES = (
    # traitlets, which reads the configuration of Jupyter, JupyterHub, IPython and nbgrader.
    _ProgramWithNames(
        re.compile(rb".*config.*\.py"),
        re.compile(rb"^[ \t#]*c\.[A-Z]\w*\.\w|\bget_config\(\)", re.MULTILINE),
        _split_names(b"c get_config load_subconfig"),
    ),
    _ProgramWithNames(
        re.compile(rb"(?:ipython|jupyter|nbgrader)\w*_config\w*\.py"),
        _ANY_TEXT,
        _split_names(b"c get_config load_subconfig"),
    ),
    # Sphinx.
    _ProgramWithNames(
        re.compile(rb"conf\.py"), re.compile(rb"^(?:extensions|project)\s*=", re.MULTILINE), _split_names(b"tags")
    ),
    # gclient.
    _ProgramWithNames(re.compile(rb"DEPS|\.gclient"), _ANY_TEXT, _split_names(b"Str Var")),
    # GDB defines the module `gdb` in its scripts.
    _ProgramWithNames(re.compile(rb".*gdb.*\.py", re.IGNORECASE), re.compile(rb"\bgdb\.\w"), _split_names(b"gdb")),
    # Scripts of Snakemake workflows.
    _ProgramWithNames(
        _ANY_FILE,
        re.compile(rb"\bsnakemake\.(?:config|input|log|output|params|resources|rule|source|threads|wildcards)\b"),
        _split_names(b"snakemake"),
    ),
    # Notebooks of Databricks, and notebooks that Jupyter and Jupytext converted.
    _ProgramWithNames(
        _ANY_FILE,
        re.compile(rb"\A# Databricks notebook source\b"),
        _split_names(b"dbutils display displayHTML getArgument sc spark sql sqlContext table udf"),
    ),
    _ProgramWithNames(
        _ANY_FILE,
        re.compile(rb"^# (?:In\[[\d ]*\]:|%%|\+[ \t{])|^#   jupytext:", re.MULTILINE),
        # The names are from "Input caching system" and "Output caching system" in the IPython documentation.
        _split_names(b"display In Out __ ___ _i _ii _iii _ih _oh _dh"),
    ),
)
# SCons adds its own functions and builders, builders of tools, names in `Import("env")`, and definitions in
# site_scons/site_init.py. So the text of a file for SCons does not show which names are undefined.
_SCONS_FILE = re.compile(rb"SCons(?:truct|cript)[^/]*|SCsub")


def is_runner_name(file: SourceFile, name: bytes) -> bool:
    """Return whether the program that runs a file defines `name`, or can define any name."""
    return _SCONS_FILE.fullmatch(_file_name(file)) is not None or name in file.derived_persistently(_provided_names)


def _provided_names(file: SourceFile) -> frozenset[bytes]:
    name, text = _file_name(file), file.utf8
    provided = (
        runner.names for runner in _PROGRAMS_WITH_NAMES if runner.file_name.fullmatch(name) and runner.mark.search(text)
    )
    return frozenset().union(*provided)


def _file_name(file: SourceFile) -> bytes:
    return file.path.rpartition(b"/")[2]
