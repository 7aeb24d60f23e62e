"""The one look-up of a replayed call finds what the decision would find (DESIGN 5, Durable calls)."""

from hypothesis import given
from hypothesis import strategies as st

from keel_notebook.core.calls import CallNow, Place, calls_in, decide_call
from keel_notebook.core.decide import Replay
from keel_notebook.core.lifecycle import FORGET, NEW_KEY, RERUN
from keel_notebook.core.model import Effect, Entry, Input, Kind, NotStored, Status, entry_id

DIGESTS = st.sampled_from(["one", "two", None])
PLACES = st.builds(Place, st.just("ask"), st.sampled_from(["a", "b"]), st.integers(1, 2))


@st.composite
def entries(draw):
    made = []
    for seq in range(1, draw(st.integers(1, 12))):
        base = {"entry": entry_id(1, seq), "flow": "f", "run": 1, "seq": seq, "step": "s"}
        if draw(st.integers(0, 9)) == 0:
            key = draw(st.sampled_from([RERUN, FORGET, NEW_KEY]))
            made.append(Entry(kind=Kind.RETIRE, status=Status.OK, key=key, **base))
            continue
        place = draw(PLACES)
        made.append(
            Entry(
                kind=Kind.CALL,
                status=draw(st.sampled_from([Status.OK, Status.OK, Status.FAILED, Status.INTENT])),
                call=place.call,
                key=place.key,
                occurrence=place.occurrence,
                effect=draw(st.sampled_from(Effect)),
                code=draw(DIGESTS),
                inputs=(Input("args", draw(DIGESTS)),),
                not_stored=draw(st.sampled_from([(), (NotStored("result", "Lock", "it cannot"),)])),
                **base,
            )
        )
    return made


@given(entries(), PLACES, DIGESTS, DIGESTS)
def test_one_look_up_finds_what_the_decision_finds(recorded, place, code, args):
    found = calls_in(recorded, "s")
    now = CallNow(place, code, args)
    decision = decide_call(now, found.candidates(now))
    expected = decision.entry if isinstance(decision, Replay) else None
    assert found.holding(place, code, args) == expected
