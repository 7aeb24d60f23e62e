"""What is said about state without a name that differs (DESIGN 6), and what counts as the same."""

import pytest

from keel_notebook.core.decide import Difference, Part
from keel_notebook.core.environment import differing

TABLE = [
    ({"random": {"state": "a"}}, {"random": {"state": "a"}}, []),
    ({"random": {"state": "unseeded"}}, {"random": {"state": "unseeded"}}, []),
    ({"random": {"state": "unseeded"}}, {"random": {"state": "a"}}, ["random is seeded now (it was not)"]),
    ({"random": {"state": "a"}}, {"random": {"state": "unseeded"}}, ["random is not seeded any more"]),
    ({"random": {"state": "a", "seed": "1"}}, {"random": {"state": "b", "seed": "2"}}, ["the seed of random 1 -> 2"]),
    (
        {"random": {"state": "a", "seed": "1"}},
        {"random": {"state": "b", "seed": "1"}},
        ["random starts from another state (its seed, or what was drawn since, changed)"],
    ),
    ({"random": {"state": "a"}}, {}, ["random cannot be compared"]),
    ({"environ": {"A": "1"}}, {"environ": {"A": "1", "B": "2"}}, []),
    ({"environ": {"A": "1"}}, {"environ": {"A": "absent"}}, ["environment variable A is not set any more"]),
    ({"environ": {"A": "absent"}}, {"environ": {"A": "1"}}, ["environment variable A is set now"]),
    ({"environ since start": {"A": ""}}, {"environ since start": {"A": "1"}}, ["environment variable A changed"]),
    ({"environ of children": {}}, {"environ of children": {"B": "2"}}, ["environment variable B changed"]),
    ({"cwd": {"folder": "a"}}, {"cwd": {"folder": "b"}}, ["working directory a -> b"]),
    ({"matplotlib": {}}, {"matplotlib": {"x": "1"}}, ["matplotlib x default -> 1"]),
    ({"matplotlib": {"x": "1"}}, {"matplotlib": {}}, ["matplotlib x 1 -> default"]),
    ({}, {"decimal": {"context": "prec=5"}}, ["decimal context default -> prec=5"]),
    ({}, {"logging": {"level": "10"}}, []),
]


@pytest.mark.parametrize(("recorded", "now", "said"), TABLE)
def test_what_differs_is_said_in_plain_words(recorded, now, said):
    found = [str(Difference(Part.ENVIRONMENT, *item)) for item in differing(recorded, now, same_day=False)]
    assert found == said


@pytest.mark.parametrize("same_day", [False, True])
def test_another_day_counts_unless_the_run_of_the_record_is_gone_on_with(same_day):
    found = list(differing({"day": {"day": "1"}}, {"day": {"day": "2"}}, same_day=same_day))
    assert [item.name for item in found] == ([] if same_day else ["today's date"])
