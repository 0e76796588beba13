"""Definitions and names of Java, Kotlin and Scala."""

from __future__ import annotations

from collections.abc import Mapping

from codebatch_workers.languages.jvm.imported_names import read_java_imports, read_kotlin_imports, read_scala_imports
from codebatch_workers.languages.jvm.names import read_java_names, read_kotlin_names, read_scala_names
from codebatch_workers.symbols.language_symbols import LanguageSymbols

SYMBOLS: Mapping[str, LanguageSymbols] = {
    "java": LanguageSymbols(imports=read_java_imports, used_names=read_java_names),
    "kotlin": LanguageSymbols(imports=read_kotlin_imports, used_names=read_kotlin_names),
    "scala": LanguageSymbols(imports=read_scala_imports, used_names=read_scala_names),
}
