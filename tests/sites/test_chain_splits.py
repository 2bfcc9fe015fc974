"""The splits of chains: each holds out what its name says, and nothing else."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from curriculum.training_tasks import HeldOut, TrainingTasks
from sites.chains.atom import TRAINED_WORDINGS
from sites.chains.atoms import HELD_OUT
from sites.chains.chain import TRAINED_JOININGS, Chain
from sites.chains.settings import ChainSettings
from sites.chains.source import ChainTasks
from sites.chains.splits import EVALUATED_SEEDS, SPLITS, split_of
from sites.registry import SITES
from tests.sites.chain_tasks import SETTINGS, SOURCE, chains

COUNT = 60


def facts(split: str) -> list[Chain]:
    return [Chain.filled(task.parameters) for task in chains(split, COUNT)]


def combinations(split: str) -> set[tuple[str, ...]]:
    """The combinations of several atoms, in any order."""
    found = {tuple(sorted(atom.name for atom in chain.atoms)) for chain in facts(split)}
    return {names for names in found if len(names) > 1}


def atoms(split: str) -> set[str]:
    return {atom.name for chain in facts(split) for atom in chain.atoms}


def wordings(split: str) -> set[int]:
    return {link.wording for chain in facts(split) for link in chain.links}


def lengths(split: str) -> set[int]:
    return {len(chain.links) for chain in facts(split)}


def joinings(split: str) -> set[int]:
    return {chain.joining for chain in facts(split) if len(chain.links) > 1}


@pytest.mark.parametrize("split", SPLITS)
def test_what_is_drawn_for_a_split_belongs_to_it(split):
    assert len({task.task_id for task in chains(split, COUNT)}) == COUNT
    for task in chains(split, COUNT):
        assert split_of(Chain.filled(task.parameters), SETTINGS) == task.split == split


@pytest.mark.parametrize("split", SPLITS[1:])
def test_no_evaluated_chain_has_an_instruction_a_data_seed_or_an_id_of_a_training_chain(split):
    train, held = chains("train", COUNT), chains(split, COUNT)
    assert not {task.intent for task in train} & {task.intent for task in held}
    assert not {task.data_seed for task in train} & {task.data_seed for task in held}
    assert not {task.task_id for task in train} & {task.task_id for task in held}
    assert all((chain.data_seed < EVALUATED_SEEDS) == (split == "train") for chain in facts(split))
    TrainingTasks(train, HeldOut.of(tasks=held))


@pytest.mark.parametrize("split", [name for name in SPLITS if name != "test_wordings"])
def test_wordings_are_those_of_training_but_where_they_are_held_out(split):
    assert max(wordings(split)) < TRAINED_WORDINGS
    assert max(joinings(split)) < TRAINED_JOININGS


def test_no_wording_and_no_joining_of_test_wordings_is_in_training():
    assert not wordings("test_wordings") & wordings("train")
    assert not joinings("test_wordings") & joinings("train")


@pytest.mark.parametrize("split", [name for name in SPLITS if name != "test_atoms"])
def test_atoms_are_those_of_training_but_where_they_are_held_out(split):
    assert not atoms(split) & HELD_OUT


def test_every_chain_of_test_atoms_has_one_that_training_lacks():
    assert all({atom.name for atom in chain.atoms} & HELD_OUT for chain in facts("test_atoms"))
    assert atoms("test_atoms") >= HELD_OUT


@pytest.mark.parametrize("split", [name for name in SPLITS if name != "test_long"])
def test_lengths_are_those_of_training_but_where_they_are_held_out(split):
    assert lengths(split) == set(SETTINGS.lengths)


def test_chains_of_test_long_are_longer_than_any_of_training():
    assert min(lengths("test_long")) > max(lengths("train"))


def test_combinations_of_atoms_fall_into_one_of_train_validation_and_test():
    three = [combinations(split) for split in ("train", "validation", "test")]
    assert sum(map(len, three)) == len(set().union(*three))


def test_a_combination_stays_in_its_split_whatever_its_order_data_or_wording():
    rng = random.Random(4)
    for chain in facts("test"):
        links = list(chain.links)
        rng.shuffle(links)
        other = replace(chain, links=tuple(replace(link, wording=rng.randrange(TRAINED_WORDINGS)) for link in links))
        assert split_of(replace(other, data_seed=EVALUATED_SEEDS + rng.randrange(99)), SETTINGS) == "test"


def test_a_single_atom_is_held_out_by_its_parameters():
    def singles(split: str) -> set[str]:
        return {str(c.atoms[0].parameters) + c.atoms[0].name for c in facts(split) if len(c.links) == 1}

    three = [singles(split) for split in ("train", "validation", "test")]
    assert sum(map(len, three)) == len(set().union(*three))


def test_a_chain_that_would_hold_out_two_things_is_in_no_split():
    chain = next(chain for chain in facts("test_atoms") if len(chain.links) > 1)
    rare = tuple(replace(link, wording=TRAINED_WORDINGS) for link in chain.links)
    assert split_of(replace(chain, links=rare, joining=TRAINED_JOININGS), SETTINGS) is None
    half = (rare[0], *chain.links[1:])
    assert split_of(replace(chain, links=half), SETTINGS) is None
    trained = facts("train")[0]
    assert split_of(replace(trained, data_seed=EVALUATED_SEEDS), SETTINGS) is None


def test_a_similar_chain_has_the_same_atoms_and_is_for_training():
    for task in chains("train", 8):
        found = SOURCE.similar(task, random.Random(1))
        assert found is not None
        assert found.split == "train"
        assert found.task_id != task.task_id
        assert [name for name, *_ in found.parameters["atoms"]] == [name for name, *_ in task.parameters["atoms"]]


def test_lengths_can_be_chosen_and_make_no_test_of_length_where_none_is_longer():
    settings = ChainSettings(lengths=(4, 8), long=(), data_seeds=2)
    source = ChainTasks(tuple(SITES), settings)
    assert {len(task.milestones) for task in source.task_set(0, "train", 4)} == {4, 8}
    with pytest.raises(ValueError, match="split 'test_long' of chains has 0 different tasks, 1 were asked for"):
        source.task_set(0, "test_long", 1)


def test_training_may_have_lengths_of_its_own_and_other_splits_keep_theirs():
    source = ChainTasks(tuple(SITES), ChainSettings(lengths=(1, 2), trained=(2, 3), long=(4,), data_seeds=2))

    def drawn(split: str) -> set[int]:
        return {len(task.milestones) for task in source.task_set(0, split, 6)}

    assert (drawn("train"), drawn("validation"), drawn("test"), drawn("test_long")) == ({2, 3}, {1, 2}, {1, 2}, {4})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"lengths": (0,)}, "lengths must be at least one number of 1 to 8"),
        ({"lengths": ()}, "lengths must be at least one number of 1 to 8"),
        ({"demonstrated": (9,)}, "demonstrated must be at least one number of 1 to 8"),
        ({"trained": (0,)}, "trained must be at least one number of 1 to 8"),
        ({"lengths": (4, 8)}, "long must be numbers above 8, the longest of lengths, trained and demonstrated"),
        ({"trained": (4, 8)}, "long must be numbers above 8, the longest of lengths, trained and demonstrated"),
        ({"data_seeds": 0}, "data_seeds must be 1 to 1,000,000"),
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        ChainSettings(**wrong)
