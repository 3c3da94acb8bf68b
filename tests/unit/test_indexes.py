"""What an index holds of an item."""

from __future__ import annotations

import pytest

from dynamo.errors import ApiError
from dynamo.indexes import IndexProjection, check_put_size, local_entries_size, projected_names
from dynamo.item import ITEM_SIZE_MAX, item_size
from dynamo.keys import row_key
from dynamo.table import Index, KeySchema, Table
from dynamo.values import Item, dump, load

KEYS = KeySchema(("pk",), ("l",))
ALL = Index("all", KEYS, "ALL")
KEYS_ONLY = Index("keys", KEYS, "KEYS_ONLY")
INCLUDE = Index("include", KEYS, "INCLUDE", ("a", "missing"))
TABLE = Table(
    id=1,
    name="t",
    schema_version=1,
    attribute_types={"pk": "S", "sk": "S", "l": "N"},
    keys=KeySchema(("pk",), ("sk",)),
    created=0.0,
    local_indexes=(ALL, KEYS_ONLY, INCLUDE),
)
ITEM: Item = {"pk": {"S": "p"}, "sk": {"S": "s"}, "l": {"N": "1"}, "a": {"S": "é"}, "b": {"L": [{"N": "100"}]}}
KEY = row_key(TABLE.keys, TABLE.attribute_types, ITEM)


@pytest.mark.parametrize(
    ("index", "names"),
    [(ALL, {"pk", "sk", "l", "a", "b"}), (KEYS_ONLY, {"pk", "sk", "l"}), (INCLUDE, {"pk", "sk", "l", "a"})],
)
def test_an_entry_holds_what_is_projected(index: Index, names: set[str]) -> None:
    entry = IndexProjection(TABLE, index).entry(KEY, ITEM, dump(ITEM), item_size(ITEM))
    assert entry is not None
    assert load(entry.body) == {name: ITEM[name] for name in names}
    assert entry.size == item_size({name: ITEM[name] for name in names})
    assert entry.key[:16] == KEY[:16]


@pytest.mark.parametrize("value", [None, {"S": "1"}, {"NULL": True}])
def test_an_item_without_a_fitting_key_has_no_entry(value: dict[str, object] | None) -> None:
    item: Item = {name: content for name, content in ITEM.items() if name != "l"}
    if value is not None:
        item["l"] = value
    assert IndexProjection(TABLE, ALL).entry(KEY, item, dump(item), item_size(item)) is None


def test_projected_names() -> None:
    assert projected_names(TABLE, ALL) is None
    assert projected_names(TABLE, INCLUDE) == frozenset({"pk", "sk", "l", "a", "missing"})


def test_the_size_of_all_entries_of_an_item() -> None:
    size = item_size(ITEM)
    entries = [IndexProjection(TABLE, index).entry(KEY, ITEM, dump(ITEM), size) for index in TABLE.local_indexes]
    assert local_entries_size(TABLE, ITEM, size) == sum(entry.size for entry in entries if entry is not None)
    sparse: Item = {name: value for name, value in ITEM.items() if name != "l"}
    assert local_entries_size(TABLE, sparse, item_size(sparse)) == 0


def test_an_item_and_its_entries_have_one_limit() -> None:
    def of(length: int) -> Item:
        """The item itself and the index that projects all hold `v`."""
        return {**{name: ITEM[name] for name in ("pk", "sk", "l")}, "v": {"S": "x" * length}}

    empty = item_size(of(0)) + local_entries_size(TABLE, of(0), item_size(of(0)))
    length = (ITEM_SIZE_MAX - empty) // 2
    check_put_size(TABLE, of(length), item_size(of(length)))
    with pytest.raises(ApiError, match="Item size has exceeded the maximum allowed size"):
        check_put_size(TABLE, of(length + 1), item_size(of(length + 1)))
    sparse: Item = {name: value for name, value in of(length + 1).items() if name != "l"}
    check_put_size(TABLE, sparse, item_size(sparse))
