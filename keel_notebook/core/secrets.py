"""What looks like a credential: such values are never written in clear, nor previewed (DESIGN 6, C68, C103).

Two signs count: the name (``api_key``, ``db_password``) and the shape of the text (``sk-…``, a PEM block, a URL
with a password). Being wrong costs little one way (the step runs again) and much the other way, so a name that
says secret is believed; a text inside a larger value needs the clearer signs of ``looks_secret_field``.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_SECRET_WORD = re.compile(
    "passwords?|passwd|passphrase|pwd|secrets?|credentials?|token|apikey|auth|authorization|bearer"
)
_SECRET_KEY = re.compile(
    "(api|access|secret|private|auth|signing|encryption|account|subscription|service|storage|client|ssh|master) key"
)
# The special tokens of language models, counts of tokens, and the like.
_HARMLESS_WORD = re.compile(
    "pad|eos|bos|unk|sep|cls|mask|special|start|end|stop|first|last|num|n|count|max|min|len|length|types?"
)
_STRONG_FIELD = re.compile(
    r"\b(password|passwd|passphrase|apikey|(api|access|secret|private) key"
    r"|client secret|(access|auth|refresh|bearer) token)\b"
)

_BODY = r"""(?:
        sk-(?=[\w-]*\d)[A-Za-z0-9_-]{12,}                   # OpenAI and those that copied its form
      | (?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,} | github_pat_\w{20,} | glpat-[\w-]{16,}
      | (?:AKIA|ASIA)[A-Z0-9]{16}                           # AWS access keys
      | AIza[\w-]{35}                                       # Google API keys
      | xox[abeprs]-[\w-]{10,}                              # Slack
      | hf_[A-Za-z0-9]{20,} | pypi-[\w-]{50,} | npm_[A-Za-z0-9]{30,} | dop_v1_[a-f0-9]{40,}
      | eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}               # JSON web tokens
      | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----
      | [a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s@]+@             # a URL with a password
    )"""
# A traceback in colours has the end of a colour (`ESC[33m`) right before the text.
_SHAPES = re.compile(r"(?:(?<![A-Za-z0-9])|(?<=[0-9;\[]m))" + _BODY, re.VERBOSE)
_SHAPES_PICKLED = re.compile(r"(?:(?<![A-Za-z0-9])|(?<=\x8c.))" + _BODY, re.VERBOSE | re.DOTALL)
_PAIR_PICKLED = re.compile(rb"\x8c(.)([A-Za-z_][\w-]{2,40})\x94\x8c(.)", re.DOTALL)
_ONE_WORD = re.compile(r"[A-Za-z0-9_\-+/=]{32,512}")
_MARKUP = re.compile(r"[<\[{].*[>\]}]", re.DOTALL)
_SECRET_TYPES = ("SecretStr", "SecretBytes")


def looks_secret(name: str, value: object) -> bool:
    """Whether a value of the notebook must not be written in clear, by its name or by what it is."""
    kind = type(value).__name__
    if kind in _SECRET_TYPES or kind.endswith(("Credentials", "Credential")):
        return True
    text = _text(value)
    if text is not None:
        return bool(text) and (_secret_name(name, text) or secret_text(text) or _random_looking(text))
    return any(_secret_name(name, part) for part in _parts(value))


def looks_secret_field(name: str, text: str) -> bool:
    """The same for a text *inside* a value, under key or attribute ``name`` ("" where it has none).

    Stricter about names: a row of a corpus has a ``token`` too.
    """
    if secret_text(text):
        return True
    return bool(text) and _STRONG_FIELD.search(" ".join(_words(name))) is not None


def secret_text(text: str) -> bool:
    """Whether a text has the shape of a known kind of credential."""
    return _SHAPES.search(text) is not None


def masked_text(text: str, mask: str) -> str:
    """The text with everything that has the shape of a credential replaced."""
    return _SHAPES.sub(mask, text)


def secret_in_pickle(stream: bytes) -> bool:
    """Whether a pickle holds a text that looks like a credential, by its shape or by the key that stands before it."""
    if _SHAPES_PICKLED.search(stream.decode("latin-1")):
        return True
    for match in _PAIR_PICKLED.finditer(stream):
        length, key = match[1][0], match[2]
        text = stream[match.end() : match.end() + match[3][0]]
        if length == len(key) and looks_secret_field(key.decode(), text.decode("utf-8", "replace")):
            return True
    return False


def _secret_name(name: str, text: str) -> bool:
    words = _words(name)
    if not text or _MARKUP.fullmatch(text) or any(map(_HARMLESS_WORD.fullmatch, words)):
        return False
    if any(map(_SECRET_WORD.fullmatch, words)):
        return not ("pwd" in words and text.startswith(("/", "~")))  # the shell's word for "where am I"
    return any(_SECRET_KEY.fullmatch(" ".join(pair)) for pair in itertools.pairwise(words))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _text(value: object) -> str | None:
    if not issubclass(type(value), str | bytes | bytearray):  # a weak proxy fails when it is asked for its class
        return None
    if isinstance(value, str):
        return value
    return value[:4096].decode("latin-1") if isinstance(value, bytes | bytearray) else None


def _parts(value: object) -> Iterable[str]:
    """The texts of a small plain container: ``auth = ("me", "hunter2")``."""
    if type(value) in (tuple, list, dict) and len(value) <= 16:  # type: ignore[arg-type]
        items = value.values() if isinstance(value, dict) else value
        return [text for item in items if (text := _text(item))]  # type: ignore[attr-defined]
    return ()


def _random_looking(text: str) -> bool:
    """One long word that mixes cases and digits evenly. Hex is left out: ids and digests are not secret (C76)."""
    if not _ONE_WORD.fullmatch(text) or text.startswith("/") or text.count("/") > 2:
        return False  # a path is long and mixed, too
    mixed = any(c.islower() for c in text) and any(c.isupper() for c in text) and any(c.isdigit() for c in text)
    return mixed and _bits_per_character(text) >= 4.0


def _bits_per_character(text: str) -> float:
    total = len(text)
    return -sum(n / total * math.log2(n / total) for n in Counter(text).values())
