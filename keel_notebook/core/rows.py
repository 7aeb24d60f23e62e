"""The text of one stream as a screen shows it: carriage returns and backspaces folded away, piece by piece.

Two screens have to agree with what is kept: a terminal, and JupyterLab's output area. They differ: JupyterLab
deletes where a terminal only moves back, counts UTF-16 units where a terminal counts columns, and knows nothing of
escape sequences. So a row is folded only as far as both show the same afterwards; what they would show differently
stays as it was written. nbval, which keeps only what follows the last carriage return, agrees as well: a last
rewrite that does not cover its row stays behind it (``"50 files\\rdone"``).
"""

from __future__ import annotations

import re
import unicodedata

from msgspec import Struct

COLUMNS = 1 << 14
"""A row longer than this wraps: what is left of the edge is final. Bounds the memory."""

_SIMPLE = (
    "\\x20-\\x7e\\xa0-\\xac\\xae-\\u02ff\\u0370-\\u0373\\u0376\\u0377\\u037a-\\u037f\\u0384-\\u038a\\u038e-\\u03a1"
    "\\u03a3-\\u0482\\u048a-\\u052f\\u2007\\u2010-\\u2027\\u2030-\\u205e\\u20a0-\\u20bf\\u2190-\\u21ff"
    "\\u2200-\\u22ff\\u2500-\\u25fc\\u2800-\\u28ff"
)
"""What prints, in one column and one UTF-16 unit: Latin, Greek, Cyrillic, arrows, bars, spinners."""
_ODD = re.compile(f"[^\\r\\x08{_SIMPLE}]")
_RUN = re.compile("\\r|\\x08|[^\\r\\x08]+")
_COLOUR = re.compile("\\x1b\\[([0-9;]*)m")
_CONTROL = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]")
_TINT = re.compile("3[0-79]|9[0-7]|38;.*")


def settled(text: str) -> str:
    """The whole text of a stream, folded. Folding it again changes nothing."""
    while True:
        rows = Rows()
        folded = rows.feed(text) + rows.rest()
        if folded == text:
            return text
        text = folded  # twice at most, but for rows that wrapped between rewrites


class Rows:
    """Takes the text of one stream in pieces of any size; gives rows back as soon as nothing can change them.

    The result does not depend on how the text was cut into pieces.
    """

    def __init__(self) -> None:
        self._colour = _DEFAULT  # at the beginning of the row
        self._reset()

    def _reset(self) -> None:
        self._cells = ""  # the row, while it is simple text
        self._column = 0  # where the next character goes
        self._back = False  # the cursor went back by backspaces: JupyterLab has deleted what is right of it
        self._blank = False  # a carriage return on an empty row: a Windows line end, should nothing else follow
        self._raw: _RawRow | None = None  # the row, once the two screens measure it differently

    def feed(self, text: str) -> str:
        """Take more text; what is final now, of it and of what was held back."""
        at_end = self._column == len(self._cells) and self._raw is None and not self._blank
        returns = text.count("\r")
        if at_end and "\b" not in text and (not returns or returns == text.count("\r\n")):  # nothing is rewritten
            head, newline, rest = text.rpartition("\n")
            if not newline:
                return self._write(rest)
            done = f"{self._cells}{head}\n"
            self._colour = _colour_after(self._colour, head) if "\x1b" in head else self._colour
            self._reset()
            return done + self._write(rest)
        first, *more = text.split("\n")
        out = [self._write(first)]
        for line in more:
            out += (self.rest(), "\n")
            self._colour = self._raw.colour() if self._raw else self._colour
            self._reset()
            out.append(self._write(line))
        return "".join(out)

    def rest(self) -> str:
        """The unfinished last row as it stands, with the cursor where it is. Changes nothing."""
        if self._raw is not None:
            return _again(self._raw.text(), self._colour)
        if self._column == len(self._cells):
            return self._cells or "\r" * self._blank
        if self._back:
            return self._cells + "\b" * (len(self._cells) - self._column)
        return f"{self._cells}\r{self._cells[: self._column]}"

    def _write(self, line: str) -> str:
        done, taken = "", 0
        if self._raw is None:
            odd = _ODD.search(line)
            done, taken = self._write_simple(line[: odd.start()] if odd else line)
            if taken == len(line):
                return done
            self._raw = _RawRow(self.rest(), self._colour)
        return done + self._raw.write(line[taken:])

    def _write_simple(self, line: str) -> tuple[str, int]:
        """Returns what is final, and how much of the line was taken before both screens would differ."""
        if "\b" not in line:
            if "\r" not in line:
                return self._put(line), len(line)
            if self._rewrite(line.split("\r")):
                return "", len(line)
        done, taken = [], 0
        for run in _RUN.findall(line):
            at_end = self._column == len(self._cells)
            if run == "\r":
                if self._column and self._back:
                    break
                self._column = 0
                self._blank = self._blank or not self._cells
            elif run == "\b":
                if self._column and not (at_end or self._back):
                    break
                self._back = self._back or self._column > 0
                self._column = max(0, self._column - 1)
            else:
                done.append(self._put(run))
            taken += len(run)
        return "".join(done), taken

    def _rewrite(self, parts: list[str]) -> bool:
        """The common case, a progress bar: many rewrites of one row at once. False if it has to be done in steps."""
        if self._back or self._column + max(map(len, parts)) >= COLUMNS:
            return False
        self._put(parts[0])
        shown = parts[-1]
        for part in reversed(parts[1:-1]):
            if len(part) > len(shown):
                shown += part[len(shown) :]
        self._cells = shown + self._cells[len(shown) :]
        self._column = len(parts[-1])
        self._blank = not self._cells
        return True

    def _put(self, text: str) -> str:
        done = ""
        while len(text) >= COLUMNS - self._column:
            room = COLUMNS - self._column
            done += self._cells[: self._column] + text[:room]
            text = text[room:]
            self._reset()
        end = self._column + len(text)
        self._cells = self._cells[: self._column] + text + self._cells[end:]
        self._column = end
        self._back = self._back and end < len(self._cells)
        return done


def _again(row: str, colour: int) -> str:
    """A row of which rewrites were dropped, folded once more: what is left of it may be simple now."""
    while "\r" in row or "\b" in row:
        rows = Rows()
        rows._colour = colour
        done = rows.feed(row)
        folded = done + (rows.rest() if rows._raw is None else rows._raw.text())
        if folded == row:
            break
        row = folded
    return row


class _Rewrite(Struct, frozen=True):
    """What was written from column 0 on, and how far it reaches on either screen."""

    text: str
    units: int = -1
    least: int = -1  # in columns; -1: may reach nowhere
    most: int | None = None  # None: may reach everywhere, or changes the colour of what follows

    def covers(self, older: _Rewrite) -> bool:
        return self.text != "" and older.most is not None and self.units >= older.units and self.least >= older.most


def _rewrite(text: str, before: int, after: int) -> _Rewrite:
    bare = _COLOUR.sub("", text)
    if _CONTROL.search(bare):
        return _Rewrite(text)
    least = most = len(bare)
    if _ODD.search(bare):
        widths = [_columns(char) for char in bare]
        least, most = sum(low for low, _ in widths), sum(high for _, high in widths)
    neutral = len(bare) == len(text) or before == after == _DEFAULT
    return _Rewrite(text, len(text.encode("utf-16-le", "surrogatepass")) // 2, least, most if neutral else None)


_DEFAULT, _TINTED, _STYLED = range(3)


def _colour_after(colour: int, text: str) -> int:
    """Whether a colour is on behind a text: none, only a text colour (which code 39 ends), or something else."""
    for code in _COLOUR.findall(text):
        if code in {"", "0"}:
            colour = _DEFAULT
        elif not _TINT.fullmatch(code):
            colour = _STYLED
        elif colour != _STYLED:
            colour = _DEFAULT if code == "39" else _TINTED
    return colour


def _columns(char: str) -> tuple[int, int]:
    """The least and the most columns that terminals give a character."""
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0, 1
    columns = 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1
    return columns, columns


class _RawRow:
    """A row with colours, wide characters or tabs: only rewrites that are covered on both screens are dropped."""

    def __init__(self, text: str, colour: int) -> None:
        self._under: list[_Rewrite] = []
        self._colour = colour
        self._top = ""
        self.write(text)

    def write(self, text: str) -> str:
        """Take more of the row; returns what is final."""
        first, *more = text.split("\r")
        self._top += first
        done = [self._wrap()]
        for part in more:
            if self._top or not self._under:
                self._under, self._colour = self._visible(), self.colour()
            while sum(len(rewrite.text) + 1 for rewrite in self._under) > COLUMNS:
                done.append(self._under.pop(0).text + "\r")
            self._top = part
            done.append(self._wrap())
        return "".join(done)

    def text(self) -> str:
        """The row as it stands."""
        return "\r".join(rewrite.text for rewrite in self._visible())

    def colour(self) -> int:
        """Whether a colour is on where the row stands."""
        return _colour_after(self._colour, self._top)

    def _visible(self) -> list[_Rewrite]:
        top = _rewrite(self._top, self._colour, self.colour())
        return [rewrite for rewrite in self._under if not top.covers(rewrite)] + [top]

    def _wrap(self) -> str:
        done = ""
        while len(self._top) >= COLUMNS:
            done += "\r".join([*(rewrite.text for rewrite in self._under), self._top[:COLUMNS]])
            self._colour = _colour_after(self._colour, self._top[:COLUMNS])
            self._under, self._top = [], self._top[COLUMNS:]
        return done
