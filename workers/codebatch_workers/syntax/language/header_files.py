"""Header files of C and C++."""

HEADER_ENDINGS = (b".h", b".hh", b".hpp", b".hxx", b".inl", b".ipp")


def is_header(path: bytes) -> bool:
    """Return whether other files include a file, by the ending of its name."""
    return path.endswith(HEADER_ENDINGS)
