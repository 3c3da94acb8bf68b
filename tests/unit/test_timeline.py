"""The picture of a chaos run: what is drawn for which numbers."""

from __future__ import annotations

from xml.etree import ElementTree

from tests.chaos.timeline import LEFT, WIDTH, Marked, by_second, picture

SPACE = "{http://www.w3.org/2000/svg}"


def test_times_are_counted_by_second() -> None:
    assert by_second([9.9, 10.0, 10.9, 12.5, 13.0], 10.0, 3) == [2, 0, 1]


def test_a_fault_is_shaded_where_it_was_and_every_second_with_something_has_a_bar() -> None:
    drawn = ElementTree.fromstring(
        picture({"writes": [4, 0, 2], "changes": [0, 1, 0]}, [Marked("a <b> & c", 1.0, 2.0)], 3)
    )
    (shade,) = [rect for rect in drawn.iter(f"{SPACE}rect") if rect.get("opacity")]
    second = (WIDTH - LEFT) / 3
    assert abs(float(str(shade.get("x"))) - (LEFT + second)) < 0.1
    assert abs(float(str(shade.get("width"))) - second) < 0.1
    assert [title.text for title in drawn.iter(f"{SPACE}title")] == ["a <b> & c"]
    writes, changes = drawn.iter(f"{SPACE}g")
    heights = [float(str(bar.get("height"))) for bar in writes]
    assert len(heights) == 2
    assert heights[0] == 2 * heights[1]
    assert len(list(changes)) == 1
