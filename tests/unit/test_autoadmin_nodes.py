"""Which nodes may be emptied and forgotten, and what is said of them."""

from __future__ import annotations

import pytest

from autoadmin.catalog import Catalog, with_node
from autoadmin.membership import with_draining, without_nodes
from autoadmin.nodes import Refused, check_drain, check_removal, find
from autoadmin.plans.situation import Rules, Situation
from autoadmin.summary import summary
from autoadmin.view import SILENT_SECONDS, View
from cluster.topology import DropOrder, NodePlace
from tests.unit.autoadmin_samples import create, nodes, report, sample_catalog, sample_table


def _situation(catalog: Catalog, live: set[int], draining: int = 0, now: float = 1.0) -> Situation:
    view = View()
    for node in sorted(live):
        view = view.with_report(report(node), now)
    if draining:
        change = with_draining(catalog, draining, draining=True)
        assert change is not None
        catalog = catalog.after(change)
    return Situation.of(catalog.topology, view, now, Rules())


def _node(catalog: Catalog, node: int) -> NodePlace:
    return catalog.topology.nodes[node]


def test_a_node_is_found_by_name_or_id() -> None:
    catalog = sample_catalog(nodes())
    assert find(catalog.topology, "b1") == find(catalog.topology, "2") == _node(catalog, 2)
    with pytest.raises(Refused, match=r"^There is no node b9 in the cluster\.$"):
        find(catalog.topology, "b9")
    again = with_node(catalog, NodePlace(77, "b1", "us-east-1", "b", "127.0.0.1:77"))
    assert again is not None
    with pytest.raises(Refused, match=r"^There are several nodes b1, with the ids 2 and 77: name one by its id\.$"):
        find(catalog.after(again).topology, "b1")
    gone = without_nodes(catalog, (2,))
    assert gone is not None
    with pytest.raises(Refused, match=r"^The node b1 was removed before\.$"):
        find(catalog.after(gone).topology, "b1")


def test_a_node_whose_replicas_have_no_other_place_cannot_be_drained() -> None:
    catalog = create(sample_catalog(nodes()), sample_table(), 3)
    with pytest.raises(Refused, match="Node a1 cannot be drained: no other live node may take 3 of its replicas"):
        check_drain(_situation(catalog, {1, 2, 3}, draining=1), _node(catalog, 1))


def test_an_only_node_of_a_zone_is_drained_into_others_with_a_warning() -> None:
    catalog = create(sample_catalog([nodes()[0], *_with_spare()]), sample_table(), 3)
    notes = check_drain(_situation(catalog, {1, 2, 3, 4}, draining=1), _node(catalog, 1))
    assert notes == ["Zone a has no other node: until it has one, 3 partitions will have two replicas in one zone."]


def _with_spare() -> list[NodePlace]:
    b1, c1 = nodes()[1:]
    return [b1, c1, NodePlace(4, "c2", "us-east-1", "c", "127.0.0.1:4")]


def test_a_node_with_a_live_neighbour_is_drained_and_one_with_a_dead_one_is_not() -> None:
    catalog = create(sample_catalog(nodes(2)), sample_table(), 4)
    everyone = set(catalog.topology.nodes)
    assert check_drain(_situation(catalog, everyone, draining=1), _node(catalog, 1)) == []
    with pytest.raises(Refused, match="no other live node"):
        check_drain(_situation(catalog, everyone - {2}, draining=1), _node(catalog, 1))


def test_only_an_empty_node_that_gets_nothing_more_is_removed() -> None:
    catalog = create(sample_catalog(nodes()), sample_table(), 3)
    spare = with_node(catalog, NodePlace(9, "a9", "us-east-1", "a", "127.0.0.1:9"))
    assert spare is not None
    catalog = catalog.after(spare)
    with pytest.raises(Refused, match=r"Node a1 still holds 3 replicas: drain it, and wait until"):
        check_removal(_situation(catalog, {1, 2, 3, 9}), _node(catalog, 1))
    with pytest.raises(Refused, match=r"Node a9 is live and may be given replicas: drain it first\."):
        check_removal(_situation(catalog, {1, 2, 3, 9}), _node(catalog, 9))
    check_removal(_situation(catalog, {1, 2, 3}), _node(catalog, 9))
    drained = _situation(catalog, {1, 2, 3, 9}, draining=9)
    check_removal(drained, drained.topology.nodes[9])


def test_a_node_that_has_replicas_to_drop_is_not_removed_yet() -> None:
    catalog = create(sample_catalog(nodes(2)), sample_table(), 1)
    partition = catalog.topology.partitions[1]
    spare = next(node for node in catalog.topology.nodes.values() if partition.replica_on(node.id) is None)
    object.__setattr__(partition, "dropping", (DropOrder(99, spare.id, 3),))
    situation = _situation(catalog, set(catalog.topology.nodes), draining=spare.id)
    with pytest.raises(Refused, match=r"is about to drop 1 replicas: try again in a moment\."):
        check_removal(situation, situation.topology.nodes[spare.id])


def test_what_was_removed_does_not_come_back_as_a_new_node() -> None:
    catalog = sample_catalog(nodes())
    gone = without_nodes(catalog, (2,))
    assert gone is not None
    after = catalog.after(gone)
    assert set(after.topology.nodes) == {1, 3}
    assert with_node(after, nodes()[1]) is None


def test_a_draining_node_stays_one_when_it_reports() -> None:
    catalog = sample_catalog(nodes())
    change = with_draining(catalog, 2, draining=True)
    assert change is not None
    drained = catalog.after(change)
    assert with_node(drained, nodes()[1]) is None
    assert with_draining(drained, 2, draining=True) is None


def test_the_summary_counts_what_is_wrong() -> None:
    catalog = create(sample_catalog(nodes()), sample_table(), 3)
    well = summary(_situation(catalog, {1, 2, 3}))
    assert (well.degraded, well.sharing_zone, well.changing, well.nodes_silent) == (0, 0, 0, 0)
    view = View().with_report(report(1), 0.0).with_report(report(2), 0.0).with_report(report(3), 0.0)
    late = SILENT_SECONDS + 1
    view = view.with_report(report(1), late).with_report(report(2), late)
    worse = summary(Situation.of(catalog.topology, view, late, Rules()))
    assert (worse.degraded, worse.nodes_silent, worse.nodes_lost) == (3, 1, 0)
    lost = summary(Situation.of(catalog.topology, view, late, Rules(replace_after=late)))
    assert lost.nodes_lost == 1
