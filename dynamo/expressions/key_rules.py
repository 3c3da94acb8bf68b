"""What expressions may do with key attributes, once the table is known."""

from __future__ import annotations

from dynamo.errors import validation
from dynamo.expressions.compile import Compiled
from dynamo.expressions.tree import Update
from dynamo.table import KeySchema, Table


def check_update_keys(update: Update, keys: KeySchema) -> None:
    """An update may not touch the table's key attributes; raises a ValidationException."""
    touched = {action.path.steps[0] for action in update}
    for name in keys.attributes:
        if name in touched:
            raise validation(
                "One or more parameter values were invalid: "
                f"Cannot update attribute {name}. This attribute is part of the key"
            )


def check_filter_keys(compiled: Compiled, keys: KeySchema) -> None:
    """A Query's filter may not use the key attributes of the table or index queried; raises a ValidationException."""
    if compiled.filter is None:
        return
    parameter = "QueryFilter" if compiled.legacy_filter else "Filter Expression"
    for name in keys.attributes:
        if name in compiled.filter_attributes:
            raise validation(f"{parameter} can only contain non-primary key attributes: Primary key attribute: {name}")


def check_key_paths(compiled: Compiled, table: Table) -> None:
    """No path may lead into a key attribute of the table or of an index, as these are scalars; raises a
    ValidationException."""
    nested = compiled.nested_attributes
    if not nested:
        return
    for name in table.keys.attributes:
        if name in nested:
            raise validation(f"{_SCALARS}Key: {name}")
    for index in (*table.local_indexes, *table.global_indexes):
        for name in index.keys.attributes:
            if name in nested:
                raise validation(f"{_SCALARS}IndexKey: {name}")


_SCALARS = "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
