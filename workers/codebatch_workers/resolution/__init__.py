"""To which files of a snapshot an import leads, by each language's rules and the tree's own configuration files."""

from codebatch_workers.resolution.resolver import Resolver
from codebatch_workers.resolution.tree import DOCUMENT_BYTES_MAX, Resolved

__all__ = ["DOCUMENT_BYTES_MAX", "Resolved", "Resolver"]
