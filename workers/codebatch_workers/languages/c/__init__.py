"""C and C++."""

from __future__ import annotations

from codebatch.model.analysis.language_facts import LanguageFacts

_CALLED_FUNCTIONS = r"main|init|\w*WinMain|DllMain|Java_\w+|JNI_\w+|PyInit_\w+|LLVMFuzzer\w+"
_UNPARSED_USERS = frozenset({"objective-c", "objective-cpp"})
FACTS = {
    "c": LanguageFacts(
        has_all_links=True,
        has_implicit_imports=True,
        is_native=True,
        unparsed_users=_UNPARSED_USERS | {"cython"},
        called_functions=_CALLED_FUNCTIONS,
        called_methods="main",
    ),
    "cpp": LanguageFacts(
        has_all_links=True,
        has_implicit_imports=True,
        is_native=True,
        unparsed_users=_UNPARSED_USERS,
        called_functions=_CALLED_FUNCTIONS,
        called_methods="operator.*|~.*|begin|end",
        indirect_bases=r"\btypedef\b.*\bNAME\b|\b(?:class|struct)\b.*:.*\bNAME\b",
        hides_fields=True,
    ),
}
