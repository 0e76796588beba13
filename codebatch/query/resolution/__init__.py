"""To which files of a snapshot an import leads, by each language's rules and the tree's own configuration files."""

from codebatch.query.resolution.resolver import Resolver
from codebatch.query.resolution.tree import DOCUMENT_BYTES_MAX, Resolution, Resolved

__all__ = ["DOCUMENT_BYTES_MAX", "Resolution", "Resolved", "Resolver"]
