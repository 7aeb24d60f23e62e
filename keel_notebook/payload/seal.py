"""The owner's key and the seal made with it (DESIGN 8).

Two keys exist: the salt of a journal goes wherever its folder goes and keys the digests; the owner's key stays with
the person and vouches that an entry was written by them. Only what it sealed is ever unpickled.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from keel_notebook.errors import WrongFileError
from keel_notebook.glance import holds_records

KEY_BYTES = 32
MAC_BYTES = 16


class OwnerKey(NamedTuple):
    """The key, and whether it will be the same in the next process."""

    key: bytes
    lasting: bool


def owner_key(*, path: Path | None) -> bytes:
    """The owner's key, 32 bytes; see ``find_owner_key``."""
    return find_owner_key(path=path).key


def seal_of(named: str, journal: Path) -> OwnerSeal:
    """The seal of who writes into a journal.

    Args:
        named: the file that KEEL_KEY_FILE names; empty: the key of the user's configuration folder.
        journal: the journal's folder, which need not be there.

    Raises WrongFileError (E008) as ``find_owner_key`` does, and where the named file is not there although something is
    recorded: a key made now cannot have sealed that, so the name is a slip, or the key did not come along.
    """
    path = Path(named).expanduser() if named else None
    if path is not None and not os.path.exists(path) and holds_records(journal):
        detail = (
            f"there is no file {path}, and what is recorded in {journal} was sealed with another key than a new one"
        )
        raise WrongFileError(where="KEEL_KEY_FILE:", detail=detail, case="key")
    return OwnerSeal(owner_key(path=path))


def find_owner_key(*, path: Path | None, environ: Mapping[str, str] = os.environ) -> OwnerKey:
    """The key from ``path`` (KEEL_KEY_FILE), else from the user's config folder; made when it is not there yet.

    A folder that cannot be written gives a key that lasts only as long as this process (``lasting`` False): what
    it seals is not trusted later, which is the safe side. Raises WrongFileError (E008) where a named file cannot
    be used, because then somebody counts on it, and where a key file holds something else.
    """
    where = path or _config_home(environ) / "keel" / "owner.key"
    try:
        return OwnerKey(_read_or_make(where), lasting=True)
    except OSError as error:
        if path is not None:
            raise WrongFileError(
                where="KEEL_KEY_FILE:", detail=error.strerror or "cannot be used", case="key"
            ) from None
        return OwnerKey(secrets.token_bytes(KEY_BYTES), lasting=False)


def _config_home(environ: Mapping[str, str]) -> Path:
    configured = environ.get("XDG_CONFIG_HOME", "")
    # The XDG rules say that a relative path is to be ignored.
    return Path(configured) if os.path.isabs(configured) else Path(environ.get("HOME") or "~").expanduser() / ".config"


def _read_or_make(where: Path) -> bytes:
    with contextlib.suppress(FileNotFoundError):
        return _checked(where.read_bytes())
    where.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = where.with_name(f"{where.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES).hex().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        _publish(fresh, where)
    finally:
        os.unlink(fresh)
    return _checked(where.read_bytes())


def _publish(fresh: Path, where: Path) -> None:
    """Give the key its name, unless a process that was faster did: a link appears whole or not at all."""
    try:
        os.link(fresh, where)
    except FileExistsError:
        return
    except OSError:  # drives without links (FAT, some mounted clouds)
        with (
            contextlib.suppress(FileExistsError),
            open(os.open(where, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file,
        ):
            file.write(fresh.read_bytes())


def _checked(text: bytes) -> bytes:
    try:
        key = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise WrongFileError(where="the owner's key file", detail="does not hold 64 hex digits", case="key")
    return key


class OwnerSeal:
    """The port ``Seal`` with the owner's key: keyed BLAKE2b, 16 bytes."""

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError("an owner's key has 32 bytes")
        self._keyed = hashlib.blake2b(key=key, digest_size=MAC_BYTES, person=b"keel.seal/v1")

    def sign(self, body: bytes) -> bytes:
        """16 bytes that only this key can make for ``body``."""
        state = self._keyed.copy()
        state.update(body)
        return state.digest()

    def verify(self, body: bytes, mac: bytes) -> bool:
        """Whether this key made ``mac`` for ``body``; constant time."""
        return hmac.compare_digest(self.sign(body), mac)
