"""``%keel lineage`` and ``keel.lineage()``: the lineage as a widget, and as a plain table everywhere else.

The widget's state holds names, verdicts, sizes and short texts, never a value of the notebook: it may be saved with
it. Code, inputs and outputs are asked for when somebody opens a step. Beside the widget stands the same lineage as
static HTML and as text, for GitHub, nbviewer, a notebook opened without a kernel, and front ends without widgets.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

from keel_notebook.core.units import count, duration, size
from keel_notebook.front.desk import Desk
from keel_notebook.front.page import Block, Column, Field, Line, Page, Table, Tone
from keel_notebook.front.tables import STATE_TONES, local_time
from keel_notebook.session import Session

MOST_ROWS = 100
_WIDGET = "application/vnd.jupyter.widget-view+json"
_LINEAGE = "application/vnd.keel.lineage.v1+json"
"""For the JupyterLab extension, which draws the same view from the output itself: it is there without a kernel."""
_UNLIKE = frozenset({"dead", "ambiguous", "failed", "interrupted", "diverged", "stale"})


class LineageReport:
    """A flow as the view shows it; ``to_dict()`` gives it as plain values."""

    def __init__(self, flow: Mapping[str, Any]) -> None:
        self._flow = dict(flow)

    def to_dict(self) -> dict[str, Any]:
        """The lineage: DESIGN 3.4's status, and for every step the steps that it reads."""
        return self._flow


class LineageTable(Page):
    """The lineage as a static table: text and HTML, no script, nothing fetched."""

    def __init__(self, flow: Mapping[str, Any]) -> None:
        super().__init__(_blocks(flow), LineageReport(flow))


class Lineage:
    """Rich display of the lineage. Shown as a widget where the front end has them and the view is installed."""

    def __init__(self, session: Session) -> None:
        self._desk = Desk(session)
        told = self._desk.answer({"ask": "status"})
        if not told["ok"]:
            raise RuntimeError(told["error"]["text"])
        self.table = LineageTable(told["answer"])
        self._widget: Any = None

    def to_dict(self) -> dict[str, Any]:
        """The lineage as plain values."""
        return self.table.to_dict()

    def __repr__(self) -> str:
        return str(self.table)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/plain": str(self.table), "text/html": self.table._repr_html_()}
        bundle[_LINEAGE] = self.to_dict()
        if self._widget is None:
            self._widget = _widget(self._desk, self.to_dict())
        if self._widget is not None:
            # A renderer that knows widgets prefers this one; all others fall back to the table (FRONTEND.md).
            bundle[_WIDGET] = {"version_major": 2, "version_minor": 0, "model_id": self._widget.model_id}
        return bundle


def _widget(desk: Desk, flow: Mapping[str, Any]) -> Any:
    """The widget, or None where its parts are not there: anywidget is not installed, or the view was never built."""
    view = resources.files("keel_notebook") / "labextension" / "view"
    try:
        import anywidget  # noqa: PLC0415 ipywidgets is slow to import, and only a shown lineage needs it
        import traitlets  # noqa: PLC0415 as above

        script = view.joinpath("lineage.js").read_text("utf-8")
        style = view.joinpath("lineage.css").read_text("utf-8")
    except (ImportError, OSError):
        return None

    class LineageWidget(anywidget.AnyWidget):  # type: ignore[misc]  # anywidget carries no types
        _esm = script
        _css = style
        flow = traitlets.Dict().tag(sync=True)

    widget = LineageWidget(flow=dict(flow))

    def heard(made: Any, ask: Any, _: Any) -> None:
        answered = _refused() if desk.on_main(ask) else desk.answer(ask)
        made.send({"id": ask.get("id")} | answered)
        if ask.get("ask") in {"rerun", "accept"}:
            told = desk.answer({"ask": "status"})
            if told["ok"]:
                made.flow = told["answer"]

    widget.on_msg(heard)
    return widget


def _refused() -> dict[str, Any]:
    return {"ok": False, "error": {"code": "E005", "text": "not from here: use `%keel` in a cell, or the panel"}}


# ---- the static table


def _blocks(flow: Mapping[str, Any]) -> tuple[Block, ...]:
    steps = flow["steps"]
    if not steps:
        return (Line("no steps yet: put %%keel_step NAME on the first line of a cell", Tone.QUIET),)
    different = [step for step in steps if step["differs"] or step["state"] in _UNLIKE]
    shown = (different or steps) if len(steps) > MOST_ROWS else steps
    blocks: list[Block] = [Line(headline(flow), Tone.STRONG), _table(shown[:MOST_ROWS])]
    if (more := len(steps) - min(len(shown), MOST_ROWS)) > 0:
        blocks.append(Line(f"and {count(more, 'more step')}", Tone.QUIET))
    blocks += [Line(note, Tone.WARN) for note in flow["notes"]]
    return tuple(blocks)


def headline(flow: Mapping[str, Any]) -> str:
    """``3 of 41 differ; first at load (code)``: the same sentence as in the view."""
    steps = flow["steps"]
    different = [step for step in steps if step["differs"] or step["state"] in _UNLIKE]
    if not different:
        return f"{count(len(steps), 'step')}, all as recorded"
    first = different[0]
    verb = "differs" if len(different) == 1 else "differ"
    parts = ", ".join(first["differs"]) or first["state"]
    return f"{len(different)} of {len(steps)} {verb}; first at {first['name']} ({parts})"


def _table(steps: list[Mapping[str, Any]]) -> Table:
    columns = (
        Column("step", limit=40),
        Column("reads", limit=40),
        Column("recorded"),
        Column("took", right=True),
        Column("size", right=True),
        Column("current"),
        Column("differs"),
        Column("why", limit=100),
    )
    rows = tuple(
        (
            Field(step["name"], Tone.STRONG),
            Field(", ".join(step["reads"])),
            Field("" if step["recorded_at"] is None else local_time(step["recorded_at"])),
            Field("" if step["took_s"] is None else duration(step["took_s"])),
            Field(size(step["bytes"]) if step["bytes"] else ""),
            Field(step["state"], STATE_TONES[step["state"]]),
            Field(", ".join(step["differs"]), Tone.WARN),
            Field(step["why"]),
        )
        for step in steps
    )
    return Table(columns, rows)
