"""Change sets in the object store: the changes of one attempt of an isolated command (SPEC.md "Trees")."""

from __future__ import annotations

from codebatch.errors import ObjectMissing, StoreCorrupt
from codebatch.model.change import CHANGE_SET_BYTES_MAX, ChangeSet, decode_change_set
from codebatch.model.digest import Digest
from codebatch.model.documents import DocumentError
from codebatch.store.objects.object_store import ObjectStore

_HINT = "run the task again with: codebatch work retry TASK"


def read_change_set(objects: ObjectStore, digest: Digest) -> ChangeSet:
    """Return a change set. Raises StoreCorrupt if it is missing, damaged or too large."""
    location = objects.find_location(digest)
    try:
        if location is not None and location.frame.size > CHANGE_SET_BYTES_MAX:
            raise DocumentError(f"it has {location.frame.size:,} bytes, more than {CHANGE_SET_BYTES_MAX:,}")
        return decode_change_set(objects.read(digest))
    except ObjectMissing as error:
        raise StoreCorrupt(f"the change set {digest} cannot be read: {error.message}", hint=_HINT) from error
    except DocumentError as error:
        raise StoreCorrupt(f"the change set {digest} is damaged: {error}", hint=_HINT) from error
