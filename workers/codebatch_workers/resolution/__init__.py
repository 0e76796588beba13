"""Resolution of imports to files of a snapshot, by the rules of each language and by configuration files."""

from codebatch_workers.resolution.configuration_files import DOCUMENT_BYTES_MAX, decisive_part, is_decisive
from codebatch_workers.resolution.jvm import JvmDefinitions
from codebatch_workers.resolution.modules import Declared
from codebatch_workers.resolution.resolver import Resolver
from codebatch_workers.resolution.tree import Resolved

__all__ = ["DOCUMENT_BYTES_MAX", "Declared", "JvmDefinitions", "Resolved", "Resolver", "decisive_part", "is_decisive"]
