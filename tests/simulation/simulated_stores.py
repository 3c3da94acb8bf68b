"""LMDB on a machine that loses its power: what was not synced since it was last written is worth nothing.

The files themselves are on a tmpfs that forgets nothing, so this spoils them: it removes stores, or rows from them.
"""

from __future__ import annotations

import shutil
from contextlib import closing
from itertools import islice
from pathlib import Path
from random import Random

from storagenode.storage import layout
from storagenode.storage.lmdb_store import LmdbStore, LmdbStores
from storagenode.storage.store import StoreError

SPOILT_ROWS_MAX = 40


class WatchedStores(LmdbStores):
    """Notes in `synced` how far each store, by the name of its folder, was applied when it was last synced."""

    synced: dict[str, int]

    def open(self, partition: int, replica: int) -> LmdbStore:
        """As always."""
        store = super().open(partition, replica)
        sync, name, synced = store.sync, Path(self._path(partition, replica)).name, self.synced

        def watched() -> None:
            sync()
            synced[name] = store.applied().position

        store.sync = watched  # type: ignore[method-assign]
        return store


def spoil(stores: WatchedStores, folder: Path, random: Random) -> None:
    """Power is lost: spoil every store that has something that was not synced. All of them are closed."""
    for partition, replica in sorted(stores.existing()):
        name = Path(stores._path(partition, replica)).name
        fate = random.choice(("lost", "spoilt", "untouched"))
        try:
            store = LmdbStores.open(stores, partition, replica)
        except StoreError:
            continue  # it is not of use, or the life that ended was just about to give it away
        try:
            if fate != "untouched" and stores.synced.get(name) != store.applied().position:
                _spoil(store, random)
            else:
                fate = "untouched"
        finally:
            store.close()
        if fate == "lost":
            shutil.rmtree(folder / name)


def _spoil(store: LmdbStore, random: Random) -> None:
    """Some rows are gone, and nothing says so."""
    with closing(store.rows(layout.ITEM, layout.prefix_end(layout.ITEM))) as rows:
        keys = [key for key, _ in islice(rows, SPOILT_ROWS_MAX)]
    with store._environment.begin(write=True) as writing:
        for key in keys:
            if random.random() < 0.5:
                writing.delete(key)
