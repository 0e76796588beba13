"""Verification that objects exist and match their digests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from codebatch.errors import ObjectMissing, UnsupportedEntry
from codebatch.model.digest import Digest
from codebatch.store import layout
from codebatch.store.objects.object_store import ObjectStore
from codebatch.store.objects.packs import decode_index


def survey_objects(
    objects: ObjectStore, names: Iterable[str], *, is_full: bool
) -> Iterator[tuple[str, ObjectMissing | None]]:
    """Yield the digest of each named object with its error, or with None if the object exists.

    An object has an error if it is in no pack. If `is_full` is set, an object also has an error if its bytes do not
    match its digest. Objects in no pack come first, the others in the order of their packs and frames.
    """
    located = ((objects.find_location(Digest(name)), name) for name in set(names))
    for place, name in sorted(
        located, key=lambda pair: (pair[0] is not None, *(msgspec.structs.astuple(pair[0]) if pair[0] else ()), pair[1])
    ):
        try:
            if is_full or place is None:
                objects.read(Digest(name))
        except ObjectMissing as error:
            yield name, error
        else:
            yield name, None


def may_miss_objects(objects: ObjectStore) -> bool:
    """Return whether objects may be missing, judged by the names and lengths of packs, without reading their content.

    True if a pack is missing or truncated, or if any object is known to be damaged.
    """
    sizes = objects.pack_sizes()
    if not sizes:
        return True
    names = set(objects.files.listing(objects.root))
    packs = {name.removesuffix(layout.PACK_SUFFIX): size for name, size in sizes}
    indexed = {name.removesuffix(layout.INDEX_SUFFIX) for name in names if name.endswith(layout.INDEX_SUFFIX)}
    return indexed != packs.keys() or any(_indexed_bytes(objects, pack) != size for pack, size in packs.items())


def _indexed_bytes(objects: ObjectStore, pack: str) -> int | None:
    """Return the length of a pack as recorded in its index, or None if the index is missing or invalid."""
    try:
        return decode_index(objects.files.read(objects.root / f"{pack}{layout.INDEX_SUFFIX}")).pack_bytes
    except (FileNotFoundError, ValueError, UnsupportedEntry):
        return None
