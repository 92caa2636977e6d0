"""Which networks are the same, and how they are named for readers."""

from __future__ import annotations

import pytest

import topos


def test_defaults_are_the_same_given_or_not() -> None:
    plain, typed = {"k": 8}, {"k": 8, "oversubscription": 1}
    assert topos.identity("fat_tree", plain) == topos.identity("fat_tree", typed)
    assert topos.shape("fat_tree", typed) == ()
    assert topos.size_words("fat_tree", typed) == topos.size_words("fat_tree", plain) == ["k=8"]


def test_every_parameter_counts() -> None:
    plain, four = {"k": 8}, {"k": 8, "oversubscription": 4}
    assert topos.identity("fat_tree", plain) != topos.identity("fat_tree", four)
    assert topos.shape("fat_tree", four) == (("oversubscription", 4),)
    assert topos.size_words("fat_tree", four) == ["k=8", "4:1"]
    assert topos.identity("bcube", {"n": 4, "k": 2}) != topos.identity("bcube", {"n": 4, "k": 1})


def test_replicas_are_repetitions_of_one_network() -> None:
    assert topos.identity("dumbbell", {"n": 2, "lanes": 6}) == topos.identity("dumbbell", {"n": 2})
    assert topos.size_words("dumbbell", {"n": 2, "lanes": 6}) == ["n=2", "lanes=6"]


@pytest.mark.parametrize("kind", [kind for kind, f in topos.TOPOLOGIES.items() if not f.size.text])
def test_the_usual_network_of_any_kind_has_no_shape(kind: str) -> None:
    family = topos.TOPOLOGIES[kind]
    assert topos.shape(kind, {family.size.name: 4}) == ()
    assert len(topos.size_words(kind, {family.size.name: 4})) == 1
