"""Code that is not searched for duplicates: translations, and tests in files that also contain other code."""

from __future__ import annotations

import re

from tree_sitter import Node

from codebatch_workers.duplicates.language_duplicates import LanguageDuplicates
from codebatch_workers.syntax.nodes import innermost
from codebatch_workers.syntax.source import SourceFile

# Codes of ISO 639-1, and those of ISO 639-2 and 639-3 that projects translate into.
_LANGUAGE_CODES = frozenset(
    b"aa ab ae af ak am an ar as ast av ay az ba be bg bh bi bm bn bo br bs ca ce ceb ch ckb co cr cs cu cv cy da de "
    b"dsb dv dz ee el en eo es et eu fa ff fi fil fj fo fr fy ga gd gl gn gu gv ha haw he hi ho hr hsb ht hu hy hz "
    b"ia id ie ig ii ik in io is it iu iw ja jv ka kab kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo "
    b"lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn "
    b"ro ru rw sa sc sco sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty "
    b"ug uk ur uz ve vi vo wa wo xh yi yo yue za zh zu".split()
)
_TRANSLATION_DIRECTORIES = frozenset(
    b"i18n l10n lang langs language languages locale locales localization localizations nls translation "
    b"translations".split()
)
# A language code. A script, a region or a variant can follow it, as in `zh-Hans-CN`. In a file name, a prefix can
# precede the code.
_TRANSLATION_NAME = re.compile(
    rb"(?:[^/]*?[-_.])??([a-z]{2,3})(?:[-_@](?:[A-Z]{2}|[a-z]{2}|[A-Z][a-z]{3}|[a-z]{3,8}|\d{3})){0,2}(?:\.[a-z]+)?"
)


def is_translation(path: bytes) -> bool:
    """Return whether a file contains the user-visible texts of a program in one language: `locale/de/app.js`.

    One directory above the file must have a name that is used for translations. Below this directory, the name of the
    file or of a directory must be a language code.
    """
    names = path.split(b"/")
    directory_index = next(
        (index for index, name in enumerate(names[:-1]) if name.lower() in _TRANSLATION_DIRECTORIES), len(names)
    )
    codes = (_TRANSLATION_NAME.fullmatch(name) for name in names[directory_index + 1 :])
    return any(code is not None and code[1] in _LANGUAGE_CODES for code in codes)


def inline_tests(file: SourceFile) -> list[Node]:
    """Return the nodes with code that is compiled only for tests, by position."""
    find_tests = LanguageDuplicates.of(file.language).inline_tests
    return [] if file.tree is None or find_tests is None else list(find_tests(file))


def enclosing_node(file: SourceFile, match: re.Match[bytes], node_type: str) -> Node | None:
    """Return the innermost node of type `node_type` that contains a match, or None."""
    assert file.tree is not None
    return innermost(file.tree.root_node.descendant_for_byte_range(match.start(), match.end()), (node_type,))
