"""Two screens to compare folded text on: a terminal, and JupyterLab's output area (4.6). Written plainly, one
character at a time, so that they share no idea with the code under test."""

import re
import unicodedata

_SGR = re.compile(r"\x1b\[[0-9;]*m")


def terminal(text):
    """What a terminal shows: rows of (character, colour), and where the cursor is."""
    rows, row, column, colour, at = [], [], 0, (), 0
    while at < len(text):
        if escape := _SGR.match(text, at):
            colour = _colour(colour, escape.group()[2:-1])
            at = escape.end()
            continue
        char = text[at]
        at += 1
        if char == "\n":
            rows.append(row)
            row, column = [], 0
        elif char == "\r":
            column = 0
        elif char == "\b":
            column = max(0, column - 1)
        else:
            wide = unicodedata.east_asian_width(char) in {"W", "F"}
            for cell in [(char, colour), ("", colour)][: 2 if wide else 1]:
                row += [(" ", ())] * (column - len(row))
                row[column : column + 1] = [cell]
                column += 1
    return [*rows, row], column


def _colour(now, codes):
    attributes = dict(now)
    for code in codes.split(";"):
        if code in {"", "0"}:
            attributes.clear()
        elif code == "39":
            attributes.pop("fg", None)
        else:
            attributes["bold" if code == "1" else "fg"] = code
    return tuple(sorted(attributes.items()))


def jupyterlab(text):
    """What JupyterLab keeps of a stream, and where it writes next. Indices are UTF-16 units, as in JavaScript."""
    shown, index = [], 0
    for char in text:
        if char == "\b":
            if index > 0 and shown[index - 1] != "\n":
                shown = shown[: index - 1] + shown[index + 1 :]
                index -= 1
        elif char == "\r":
            while index > 0 and shown[index - 1] != "\n":
                index -= 1
        elif char == "\n":
            shown.append("\n")
            index = len(shown)
        else:
            for unit in _utf16(char):
                shown[index : index + 1] = [unit]
                index += 1
    return shown, index


def nbval(text):
    """What nbval compares of a stream: only what follows the last carriage return of a line."""
    return re.sub(r"^.*\r(?=[^\n])", "", text, flags=re.MULTILINE)


def _utf16(char):
    raw = char.encode("utf-16-le", "surrogatepass")
    return [raw[at : at + 2] for at in range(0, len(raw), 2)] if len(raw) > 2 else [char]
