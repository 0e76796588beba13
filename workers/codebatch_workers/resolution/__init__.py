"""Resolution of imports to files of a snapshot, by the rules of each language and by configuration files."""

from codebatch_workers.resolution.configuration_files import DOCUMENT_BYTES_MAX, is_configuration_file, relevant_part
from codebatch_workers.resolution.import_rule import DeclaredModule, ImportContext, PackageDefinitions
from codebatch_workers.resolution.resolver import ProjectResolver
from codebatch_workers.resolution.tree import ResolvedImport

__all__ = [
    "DOCUMENT_BYTES_MAX",
    "DeclaredModule",
    "ImportContext",
    "PackageDefinitions",
    "ProjectResolver",
    "ResolvedImport",
    "is_configuration_file",
    "relevant_part",
]
