"""Statements in a task's text: for which tasks it waits, and which files it creates, changes or mentions.

The rules are narrow and accept only explicit wording, because a wrong edge can delay a batch for hours.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

_CODE_BLOCK = re.compile(r"^ {0,3}(?=(```+|~~~+))\1[^\n]*\n.*?(?:^ {0,3}\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_HTML_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ADDRESS = re.compile(
    r"(?<![\w+.-])[a-z][a-z0-9+.-]{0,20}://[^\s)>\]`\"']+"
    r"|(?<![\w.+-])[\w.+-]{1,64}@[\w-]+\.[\w.]+|\bwww\.[^\s)>\]`\"']+",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(
    r"(?<=[.!?])[\"')*_]*\s+(?=[\"'(*_`]*[A-Z0-9`#])|\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)]|#+|>)\s)|;\s"
)
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|cf|etc|vs|approx|no|fig)\.\s*\Z", re.IGNORECASE)
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|\Z)")
_LINE_LEAD = re.compile(r"[ \t]*(?:[-*+]|\d+[.)]|#+|>)[ \t]+(?:\[[ xX]\][ \t]+)?")
_TEXT_CHARACTERS_MAX = 100_000
_SENTENCE_CHARACTERS_MAX = 2_000
_REGIONS_MAX = 20
_PATHS_MAX = 50
_BEFORE_CHARACTERS_MAX = 200

# Keywords that precede the names of needed tasks.
_DEPENDENCY_KEYWORD = re.compile(
    r"\b(?:(?P<soft>(?:depend(?:s|ing)?|dependent) (?:up)?on|blocked (?:by|on)|builds? (?:up)?on|waits? (?:for|on)"
    r"|waiting (?:for|on)|prerequisites?:?(?: is| are)?|after|as soon as|(?:not|n't|wait)(?: \w+){0,3} until"
    r"|once(?! (?:upon|in|again|more|or|a)\b)|when)"
    r"|(?P<hard>requires?|needs?)):?\s+",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|never|no(?: longer| need)?|without|nothing|neither|nor|cannot|unlike|used to|instead of|rather than"
    r"|before or|removed?|independent(?:ly)? of)\b(?:\W+\w+){0,3}\W*\Z"
    r"|n't(?:\W+\w+){0,3}\W*\Z",
    re.IGNORECASE,
)
_OTHER_SUBJECT = re.compile(
    r"(?:\b(?:task|step|issue|ticket)\s+[\w.-]+|#\d+|(?<!\S)\(?\d[\w.]*-[\w.-]+)\)?\s*\Z", re.IGNORECASE
)
"""Another task as the grammatical subject: the sentence describes what that task needs, not what this task needs."""
_ENDED_VERB = re.compile(
    r"\b(?:is|are|was|has been|have been|has|have|gets?|got|being)?\s*\b(?:done|finished|complete|completed|ready"
    r"|in place|there|merged|landed"
    r"|available|over|through|exists?|ends?|ended|finishes|completes|lands|succeeds|passes)\b",
    re.IGNORECASE,
)
_REGION_END = re.compile(
    r"[,;:()\u2014]| - |\b(?:then|so|because|but|before|which|that|see|like|unlike|while|although|to make|in order)\b",
    re.IGNORECASE,
)
_ENUMERATION_SEPARATOR = re.compile(r"\s*,?\s*(?:and|or|&|as well as|plus)?\s*", re.IGNORECASE)

_EXTENSIONS = (
    "bash|c|cc|cfg|cjs|conf|cpp|cs|css|csv|env|go|gql|graphql|h|hcl|hpp|html|ini|ipynb|java|js|json|jsonl|jsx|kt|lock|lua"
    "|md|mdx|mjs|php|prisma|proto|ps1|py|pyi|rb|rs|rst|scala|scss|sh|sql|svelte|svg|swift|tf|toml|ts|tsx|txt|vue|xml|yaml"
    "|yml|zig"
)
_FILE_PATH = re.compile(
    r"(?P<quote>`?)(?<![\w@/.$~-])(?P<path>\.{0,2}/?(?:[\w.@+-]+/)*[\w.@+-]*\.[A-Za-z]\w{0,7}|Dockerfile|Makefile)"
    r"(?![\w/*{(-]|\.\w)(?(quote)`?)"
)
_KNOWN_FILE_NAME = re.compile(rf"[\w.@+-]*[\w]\.(?:{_EXTENSIONS})\Z|Dockerfile\Z|Makefile\Z")
_PRODUCT_NAME = re.compile(r"[A-Z]\w*\.(?:js|io|ai|net|NET)\Z")

_NEW_THING_PATTERN = (
    r"(?:(?:a|an|the|one|our|its|new|empty|initial|small|simple|basic|shared|first|separate|short|central"
    r"|single|missing"
    r"|file|files|module|script|helper|class|component|page|view|migration|schema|config|configuration|test"
    r"|tests|document"
    r"|service|model|template|stylesheet|endpoint|library|package|hook|router|store|type|types|interface"
    r"|fixture|fixtures"
    r"|called|named|at|as|file:|sql|python|typescript|javascript|react|css|yaml|json|markdown|github|workflow|shell"
    r"|[\w-]+(?= (?:file|module|script|helper|class|component|page|migration|test|service|model|config)\b)"
    r"|(?:file|module|script|class|component|helper|service)\b)\s+){0,6}"
)
_CREATING_VERB = re.compile(
    rf"\b(?P<verb>create|add|write|generate|introduce|scaffold|creating|adding|writing|generating|creates|adds|writes"
    rf"|generates|introduces)\s+{_NEW_THING_PATTERN}\Z",
    re.IGNORECASE,
)
_WRITING_VERB = re.compile(
    r"\b(?:write|generate|save|export|output|dump|store|put|writes|generates|saves|exports|outputs|dumps)\s"
    r"(?:(?!\b(?:to|into|from|for|in)\b)[^,;:]){0,80}?\b(?:to|into)\s+(?:a |the )?(?:new )?(?:file )?\Z",
    re.IGNORECASE,
)
_THIRD_PERSON = re.compile(r"s\Z")
_OWN_SUBJECT = re.compile(r"\A\W*(?:this(?: task| step| change| one)?|it|the task|which|and|also)?\s*\Z", re.IGNORECASE)
_CHANGING_VERB = re.compile(
    r"\b(?:change|edit|update|modify|extend|refactor|rewrite|fix|rename|move|delete|remove|drop|replace"
    r"|migrate|convert|adjust"
    r"|append|patch|add|implement|put|insert|wire|register|improve|clean up|simplify|split|speed up|port"
    r"|rework|tidy|harden"
    r"|make|use|call|document|expose|handle|log|enable|disable)\b"
    r"(?P<between>[^;:]*)\Z",
    re.IGNORECASE,
)
_READING_PHRASE = re.compile(
    r"\b(?:according|described?|documented|specified|reported|listed|from|using|via|like|see|as in|per|against"
    r"|with|for|so|by"
    r"|compare|read|reads|unlike|instead|than|based|without|not|similar|same|where|which|that|mentioned|of"
    r"|calls?|uses?|about"
    r"|and (?:check|run|read|see|verify|compare))\b",
    re.IGNORECASE,
)
_VERBS_NEEDING_PREPOSITION = {
    "add", "call", "disable", "document", "enable", "expose", "handle", "implement", "insert", "log", "make", "put",
    "register", "use", "wire",
}  # fmt: skip
_REFERENCE_PHRASE = re.compile(
    r"\b(?:see(?: also)?|cf\.?|e\.g\.?|for example|compare|unlike|instead of|like|similar to|as in|(?:not|n't"
    r"|never|without)\W+(?:\w+\W+)?"
    r"(?:touch\w*|chang\w*|edit\w*|modify\w*|look\w*|need\w*|us\w+)|ignore|leave|except|inspired by|copy of"
    r"|modelled on|modeled on)"
    r"[^,;]{0,40}\Z",
    re.IGNORECASE,
)


class DependencyText(NamedTuple):
    """The part of a sentence after a keyword such as `depends on`. It names the tasks that are needed.

    `is_hard` is set if the keyword has other uses too, for example `needs`.
    """

    words: str
    sentence: str
    is_hard: bool


class MentionedFiles(NamedTuple):
    """The files that a text creates, changes or mentions. Each path has the first sentence of this kind."""

    created: dict[str, str]
    changed: dict[str, str]
    named: dict[str, str]


def readable_text(text: str) -> str:
    """Return the beginning of a text without code blocks, comments, URLs and e-mail addresses."""
    text = text[:_TEXT_CHARACTERS_MAX].replace("\r\n", "\n")
    # Each substitution is made only if its delimiter occurs, because searching a delimiter is faster than a
    # substitution.
    if "```" in text or "~~~" in text:
        text = _CODE_BLOCK.sub("\n\n", text)
    if "\n    " in text or "\n\t" in text:
        text = _without_indented_code(text)
    if "<!--" in text:
        text = _HTML_COMMENT.sub(" ", text)
    if "@" in text or "://" in text or "www." in text.lower():
        text = _ADDRESS.sub("\u2026", text)
    return text


def _without_indented_code(text: str) -> str:
    """Return a text with indented code blocks replaced by empty lines (CommonMark 4.4).

    A code block is indented more than the rest, follows an empty line, and is not in a list. Unlike in CommonMark, an
    indented line that looks like a list item stays.
    """
    lines = textwrap.dedent(text).split("\n")
    # `is_begin`: a block may begin at this line. `is_code` and `is_list`: the current block is code, or in a list.
    is_begin, is_code, is_list = True, False, False
    for place, line in enumerate(lines):
        if not line.strip():
            is_begin = True
            continue
        is_deep = line.startswith(("    ", "\t"))
        if not (is_code and is_deep):
            is_list = _LIST_ITEM.match(line) is not None or (is_list and (not is_begin or line.startswith((" ", "\t"))))
        is_code = is_deep and not is_list and (is_begin or is_code)
        if is_code:
            lines[place] = ""
        is_begin = not is_deep and line.startswith("#")
    return "\n".join(lines)


def iter_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text in order, without code blocks, comments and addresses."""
    text = readable_text(text)
    at = 0
    for match in _SENTENCE_END.finditer(text):
        if _ABBREVIATION.search(text, max(at, match.start() - 12), match.end()):
            continue
        yield from _as_sentence(text[at : match.start()])
        at = match.end()
    yield from _as_sentence(text[at:])


def _as_sentence(piece: str) -> Iterator[str]:
    lead = _LINE_LEAD.match(piece)
    words = " ".join((piece[lead.end() :] if lead else piece).split())
    if words:
        yield words[:_SENTENCE_CHARACTERS_MAX]


def iter_regions(sentence: str) -> Iterator[DependencyText]:
    """Yield the parts of a sentence that explicitly name needed tasks."""
    for match in islice(_DEPENDENCY_KEYWORD.finditer(sentence), _REGIONS_MAX):
        word = match[0].strip().lower()
        is_until = word.endswith("until")
        if not is_until and _NEGATION.search(sentence[: match.start()]):
            continue
        if _OTHER_SUBJECT.search(sentence, max(0, match.start() - _BEFORE_CHARACTERS_MAX), match.start()):
            continue
        following_text = sentence[match.end() :]
        if word == "when" and not _ENDED_VERB.search(following_text.split(",")[0]):
            continue
        yield DependencyText(following_text, sentence, match["hard"] is not None)


def is_region_end(text: str, at: int) -> bool:
    """Return whether the part of a sentence that names needed tasks ends before the position `at`."""
    return _REGION_END.search(text, 0, at) is not None


def is_enumerated(text: str, start: int, end: int) -> bool:
    """Return whether the text between two positions consists only of list separators, such as commas and `and`."""
    return _ENUMERATION_SEPARATOR.fullmatch(text, start, end) is not None


def is_fully_read(text: str) -> bool:
    """Return whether a sentence names nothing more to wait for after a name.

    True if `text`, the rest of the sentence, is empty, or begins with "," or a word like "done".
    """
    return (
        not text.strip(" .!`'\"*")
        or text.lstrip("`'\"* ")[:1] in (",", ".")
        or bool(_ENDED_VERB.match(text.lstrip("`'\"* ")))
    )


def mentioned_files(text: str) -> MentionedFiles:
    """Return the files that a text creates, changes or mentions.

    A file that the text creates is not also listed as changed.
    """
    files = MentionedFiles({}, {}, {})
    for sentence in iter_sentences(text):
        last: tuple[int, dict[str, str] | None] = (0, None)
        for path, start, end in islice(_iter_paths(sentence), _PATHS_MAX):
            before = sentence[max(0, start - _BEFORE_CHARACTERS_MAX) : start].rstrip("`'\"*( ")
            before += " " if start else ""
            into: dict[str, str] | None
            if last[1] is not None and is_enumerated(sentence, last[0], start):
                into = last[1]
            elif _creates_file(before):
                into = files.created
            elif _changes_file(before):
                into = files.changed
            else:
                into = None
            last = (end, into)
            if into is not None:
                into.setdefault(path, sentence)
            if not _REFERENCE_PHRASE.search(before):
                files.named.setdefault(path, sentence)
    for path in files.created:
        files.changed.pop(path, None)
    return files


def _iter_paths(sentence: str) -> Iterator[tuple[str, int, int]]:
    for match in _FILE_PATH.finditer(sentence):
        path = match["path"]
        is_quoted = bool(match["quote"]) and match[0].endswith("`")
        if not is_quoted and (("/" not in path and not _KNOWN_FILE_NAME.match(path)) or _PRODUCT_NAME.match(path)):
            continue
        if "/" in path and not is_quoted and not _KNOWN_FILE_NAME.match(path.rpartition("/")[2]):
            continue
        if is_quoted and "/" not in path and not _KNOWN_FILE_NAME.match(path):
            continue  # For example `user.name` is not a file.
        path = path.removeprefix("./").removeprefix("/")
        if ".." not in path:
            yield path, match.start(), match.end()


def _creates_file(before: str) -> bool:
    if _WRITING_VERB.search(before):
        return not _NEGATION.search(before[: _match_start(_WRITING_VERB, before)])
    match = _CREATING_VERB.search(before)
    if match is None or _NEGATION.search(before[: match.start()]):
        return False
    return not _THIRD_PERSON.search(match["verb"]) or bool(_OWN_SUBJECT.match(before[: match.start()]))


def _changes_file(before: str) -> bool:
    match = _CHANGING_VERB.search(before)
    if match is None or _NEGATION.search(before[: match.start()]) or _READING_PHRASE.search(match["between"]):
        return False
    verb = match[0].split()[0].lower()
    return verb not in _VERBS_NEEDING_PREPOSITION or bool(
        re.search(r"\b(?:in|to|into|inside|within)\s+(?:the\s+)?\Z", match["between"])
    )


def _match_start(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return match.start() if match else 0
