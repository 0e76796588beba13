"""Detection of copies of JavaScript and CSS libraries in web directories.

A web directory contains the files that a web server publishes: `public/`, `assets/`. A library begins with a comment
that contains its name, version, licence and site. Comments in a project's own files are similar. So the comment must
contain a name from the path, and a version or site with this name. The name can be that of the file, or of a directory
below the web directory. The repository of a library itself has no web directory around the library, so it is not
affected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_BANNER_BYTES_MAX = 2048
_BANNER_WORDS_MAX = 200
# A name consists of at most this many words: `Font Awesome`.
_NAME_WORDS_MAX = 4
_NAME_BYTES_MIN = 3
# Names of web directories. The names in _WEB_BELOW count only below another directory, because libraries themselves
# have such directories at the top.
_WEB_DIRECTORIES = frozenset(b"assets htdocs public static webroot wwwroot".split())
_WEB_SUBDIRECTORIES = frozenset(b"css fonts javascript javascripts js scripts stylesheet stylesheets".split())
# Names of files and directories that are also ordinary words in comments. They do not identify a library.
_UNSPECIFIC_NAMES = frozenset(
    b"addon addons admin all app application base client com common components config core css custom default dist "
    b"docs editor file files font fonts form forms global http https image images img index init javascript "
    b"javascripts jquery lib library libs license list main menu mit mode mods module modules net org package page "
    b"pages plugin plugins script scripts server site source src style styles stylesheets template templates test "
    b"tests the theme themes this tools ui user users util utils vendor vendors version view views web widget widgets "
    b"www".split()
)
_LEADING_COMMENT = re.compile(rb"\s*(?:@charset[^;\n]*;\s*)?(?:/\*(.*?)(?:\*/|\Z)|//([^\n]*))", re.DOTALL)
_NAME_WORD = re.compile(rb"[a-z0-9]+")
_VERSION_IN_NAME = re.compile(rb"[-_.@]?v?\d+(?:\.\d+)*.*")
_VERSION_IN_BANNER = re.compile(rb"(?<!license, )(?<!license )\bv\.?\s?\d+\.\d+|\b\d+\.\d+\.\d+\b")
_VERSION_LINE = re.compile(rb"[\s*!/#@-]*version\b\s*[:=]?\s*v?\d")
_LICENCE_MARK = re.compile(rb"licen[sc]|copyright|\(c\)|\xc2\xa9|@author")
_URL = re.compile(rb"https?://\S+")
# A link to a site, except for the sites of licences. The group contains the host, and up to two components of the path,
# such as the owner and name of a repository.
_LIBRARY_SITE = re.compile(
    rb"https?://(?!(?:www\.)?(?:apache|creativecommons|gnu|mozilla|opensource|spdx)\.org\b)"
    rb"([^/\s\"'<>()]+(?:/[^/\s\"'<>()]+){0,2})"
)


def is_copied_library(path: bytes, utf8: bytes) -> bool:
    """Return whether a JavaScript or CSS file is a copy of a library, according to its path and first comments."""
    names = frozenset(_iter_names(path))
    return bool(names) and _is_library_banner(names, _leading_comments(utf8[:_BANNER_BYTES_MAX].lower()))


def _iter_names(path: bytes) -> Iterator[bytes]:
    """Yield the names in a path that can be those of a library, joined to lower-case letters and digits.

    They are the names of directories below the web directory, and of the file. Each is yielded with and without its
    version. For `public/lodash-4/core.js`, they are `lodash4` and `lodash`.
    """
    *directories, file = path.lower().split(b"/")
    start = next(
        (
            index + 1
            for index, name in enumerate(directories)
            if name in _WEB_DIRECTORIES or (index > 0 and name in _WEB_SUBDIRECTORIES)
        ),
        None,
    )
    if start is None:
        return
    for name in (*directories[start:], file.partition(b".")[0], file.rpartition(b".")[0]):
        for text in (name, _VERSION_IN_NAME.sub(b"", name)):
            plain = b"".join(_NAME_WORD.findall(text))
            if len(plain) >= _NAME_BYTES_MIN and plain not in _UNSPECIFIC_NAMES:
                yield plain


def _leading_comments(head: bytes) -> bytes:
    """Return the text of the comments with which a file begins."""
    texts, offset = [], 0
    while (comment := _LEADING_COMMENT.match(head, offset)) is not None:
        texts.append(comment[1] or comment[2] or b"")
        offset = comment.end()
    return b"\n".join(texts)


def _is_library_banner(names: frozenset[bytes], banner: bytes) -> bool:
    """Return whether the comments at the start of a file are the banner of a library with one of `names`.

    A banner contains one of the names, and a licence or site. In addition, it contains a version, or a licence and a
    site with one of the names.
    """
    if names.isdisjoint(_names_in(banner)) or not (_LICENCE_MARK.search(banner) or _LIBRARY_SITE.search(banner)):
        return False
    for line in banner.split(b"\n"):
        if _VERSION_LINE.match(line) or (_VERSION_IN_BANNER.search(line) and not names.isdisjoint(_names_in(line))):
            return True
    # The text `LICENSE` in a link does not state a licence.
    is_licensed = b"licen" in _URL.sub(b"", banner)
    return is_licensed and any(not names.isdisjoint(_names_in(site)) for site in _LIBRARY_SITE.findall(banner))


def _names_in(text: bytes) -> set[bytes]:
    """Return each word of a text. Also return each run of up to _NAME_WORDS_MAX words, joined to one name."""
    words = _NAME_WORD.findall(text)[:_BANNER_WORDS_MAX]
    names = {
        b"".join(words[start : start + count]) for start in range(len(words)) for count in range(1, _NAME_WORDS_MAX + 1)
    }
    return names | {name.removesuffix(b"js") for name in names}
