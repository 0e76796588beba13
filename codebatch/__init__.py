"""codebatch: a multiprocess parallel executor for work over large codebases."""

__version__ = "2.0.0.dev0"
