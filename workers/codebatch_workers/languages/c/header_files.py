"""Header files of C and C++."""


def is_header(path: bytes) -> bool:
    """Return whether other files include a file, by the ending of its name."""
    return path.endswith((b".h", b".hh", b".hpp", b".hxx", b".inl", b".ipp"))
