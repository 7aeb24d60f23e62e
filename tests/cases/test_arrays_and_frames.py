"""Frames and arrays that lie on one memory do so again after a replay: what a later step writes shows in both."""

FRAME = "df = pd.DataFrame({'x': [1., 2, 3]})"
AROUND = "x = np.zeros((3, 2)); df = pd.DataFrame(x, copy=False)"
BY_FRAME = "df.loc[0, 'x'] = 50"
BY_ARRAY = "x[0, 0] = 50"
MAKES = {
    "values": (f"{FRAME}; df['y'] = 4; x = df['x'].values", BY_FRAME),
    "all values": ("df = pd.DataFrame({'x': [1., 2, 3], 'y': [4., 5, 6]}); x = df.values", BY_FRAME),
    "some values": ("df = pd.DataFrame({'x': range(9)}); x = df['x'].values[2:8:2]", "df.loc[2, 'x'] = 50"),
    "around": (AROUND, BY_ARRAY),
    "around, by the frame": (AROUND, "df.loc[0, 1] = 50"),
    "around a row": ("a = np.zeros((3, 2)); x = a[1:]; df = pd.DataFrame(a, copy=False)", BY_ARRAY),
    "large": ("x = np.zeros((200_000, 2)); df = pd.DataFrame(x, copy=False)", BY_ARRAY),
    "wide": ("x = np.zeros((3, 200)); df = pd.DataFrame(x, copy=False)", BY_ARRAY),
    "a series": ("df = pd.Series([1., 2, 3], name='x'); x = df.values", "df[0] = 50"),
    "pandas' own array": (f"{FRAME}; x = df['x'].array", "x[0] = 50"),
    "dates": (
        "df = pd.DataFrame({'x': pd.date_range('2026', periods=3)}); x = df['x'].values",
        "df.loc[0, 'x'] = df.x[1]",
    ),
    "in a list": (f"{FRAME}; x = [{{'of': df['x'].values}}, pickled]", BY_FRAME),
    "beside what is pickled": (f"{FRAME}; x = df['x'].values; z = pickled", BY_FRAME),
    "small, beside what is pickled": (f"{AROUND}; z = pickled", BY_ARRAY),
    "two frames": (f"{FRAME}; other = df[:2]; x = df['x'].values", f"{BY_FRAME}; assert other.x.sum() == 3"),
}

CELLS = """
# ---
%%keel_step makes_{at}
hit("makes_{at}"); {makes}
# ---
%%keel_step changes_{at}
hit("changes_{at}"); {change}
# ---
print(shown(df), shown(x))
# ---
del df, x
"""
HEAD = """
import fractions
import numpy as np, pandas as pd
pickled = fractions.Fraction(1, 3)
shown = lambda v: v[0]["of"].tolist() if isinstance(v, list) else np.asarray(v).tolist()
"""


def test_an_edited_step_changes_a_frame_and_the_array_that_lies_on_its_memory(book):
    ways = enumerate(MAKES.values())
    notebook = book(HEAD + "".join(CELLS.format(at=at, makes=makes, change=change) for at, (makes, change) in ways))
    live = printed(notebook)
    assert all("50" in shown for name, shown in live.items() if name != "dates")
    assert printed(notebook) == live
    assert len(notebook.hits.split()) == 2 * len(MAKES)
    notebook.cells = [cell.replace('hit("changes', 'pass; hit("changes') for cell in notebook.cells]
    assert printed(notebook) == live
    assert printed(notebook) == live
    assert notebook.hits.split().count("changes_0") == 2
    assert len(notebook.hits.split()) == 3 * len(MAKES)


def printed(notebook):
    """What a whole run shows of the frame and the array of each way."""
    run = notebook.run_all()
    assert not run.error, run.error
    return dict(zip(MAKES, (shown for shown in run.printed if shown.startswith("[")), strict=True))
