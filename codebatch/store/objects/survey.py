"""Whether objects are there, and are what their names say."""

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
    """Each of some objects, and what is wrong with it: in no pack; where it is `full`, not the bytes of its hash.

    They come as they lie in their packs, those first that lie nowhere.
    """
    located = ((objects.location(Digest(name)), name) for name in set(names))
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


def may_lack_objects(objects: ObjectStore) -> bool:
    """Whether something may be lost, by the names and lengths of packs: one is gone, was cut, or was found unsound."""
    sizes = objects.pack_sizes()
    if not sizes:
        return True
    names = set(objects.files.listing(objects.root))
    packs = {name.removesuffix(layout.PACK_SUFFIX): size for name, size in sizes}
    indexed = {name.removesuffix(layout.INDEX_SUFFIX) for name in names if name.endswith(layout.INDEX_SUFFIX)}
    return indexed != packs.keys() or any(_indexed_bytes(objects, pack) != size for pack, size in packs.items())


def _indexed_bytes(objects: ObjectStore, pack: str) -> int | None:
    """How long a pack is, as its index says."""
    try:
        return decode_index(objects.files.read(objects.root / f"{pack}{layout.INDEX_SUFFIX}")).pack_bytes
    except (FileNotFoundError, ValueError, UnsupportedEntry):
        return None
