"""Envelope, seal, secrets, previews, registry: the small parts of the payload layer."""

import multiprocessing
import os
import stat
import sys
import types
from pathlib import Path

import msgpack
import numpy as np
import pandas as pd
import pytest

from keel_notebook.core.model import Payload
from keel_notebook.core.secrets import looks_secret, looks_secret_field
from keel_notebook.errors import DamagedError, DefinitionChangedError, WrongFileError
from keel_notebook.payload import envelope, registry
from keel_notebook.payload.codec import preview
from keel_notebook.payload.seal import OwnerSeal, find_owner_key, owner_key


def test_k44_an_envelope_gives_back_what_was_sealed():
    sealed = envelope.seal({"a": [1, b"x", None]})
    assert msgpack.unpackb(sealed)["schema"] == "keel.step/v1"
    assert envelope.open_envelope(sealed) == ({"a": (1, b"x", None)}, False)


def test_k44_bare_values_of_older_journals_decode(kernel):
    fixture = bytes.fromhex("CE6A518600")
    assert envelope.open_envelope(fixture) == (0x6A518600, True)
    found = kernel.codec.unpack(Payload(kernel.journal.blob(fixture)), resolve=None)
    assert (found.names, found.result, found.has_result) == ({}, 0x6A518600, True)
    assert envelope.open_envelope(msgpack.packb({"any": "map"})).bare


def test_k44_an_unknown_tag_is_refused_by_name(kernel):
    other = msgpack.packb({"schema": "keel.step/v9", "payload": 1})
    with pytest.raises(DamagedError, match=r"keel\.step/v9"):
        kernel.codec.unpack(Payload(kernel.journal.blob(other)), resolve=None)


def test_k44_what_is_not_messagepack_is_damage():
    with pytest.raises(DamagedError, match="not MessagePack"):
        envelope.open_envelope(b"\xc1rubbish")


def test_a_seal_is_made_and_checked_with_the_owners_key():
    seal = OwnerSeal(b"k" * 32)
    mac = seal.sign(b"body")
    assert len(mac) == 16
    assert seal.verify(b"body", mac)
    assert not seal.verify(b"body!", mac)
    assert not seal.verify(b"body", mac[:-1] + b"x")
    assert not seal.verify(b"body", b"")
    assert not OwnerSeal(b"o" * 32).verify(b"body", mac)


def test_the_owners_key_is_made_once_and_private(tmp_path):
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    made = find_owner_key(path=None, environ=environ)
    assert made.lasting
    assert len(made.key) == 32
    assert find_owner_key(path=None, environ=environ) == made
    assert stat.S_IMODE((tmp_path / "keel" / "owner.key").stat().st_mode) == 0o600
    assert [each.name for each in (tmp_path / "keel").iterdir()] == ["owner.key"]


def test_a_relative_config_home_is_ignored(tmp_path):
    find_owner_key(path=None, environ={"XDG_CONFIG_HOME": "here", "HOME": str(tmp_path)})
    assert (tmp_path / ".config" / "keel" / "owner.key").exists()


def test_a_key_file_may_be_named(tmp_path):
    path = tmp_path / "drive" / "key"
    assert owner_key(path=path) == owner_key(path=path)
    path.write_text("not a key")
    with pytest.raises(WrongFileError, match="64 hex digits"):
        owner_key(path=path)
    with pytest.raises(WrongFileError, match="KEEL_KEY_FILE"):
        owner_key(path=tmp_path / "drive" / "key" / "below a file")


def test_a_drive_without_links_gets_its_key_too(tmp_path, monkeypatch):
    def no_links(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", no_links)
    assert owner_key(path=tmp_path / "key") == owner_key(path=tmp_path / "key")


def test_a_home_that_cannot_be_written_gives_a_key_for_this_process(tmp_path):
    (tmp_path / "file").write_text("")
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "file" / "no folder")}
    one, other = (find_owner_key(path=None, environ=environ) for _ in range(2))
    assert not one.lasting
    assert one.key != other.key


def _make_key(path):
    return owner_key(path=Path(path))


def test_many_processes_that_make_the_key_at_once_get_one(tmp_path):
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        keys = pool.map(_make_key, [str(tmp_path / "new" / "owner.key")] * 12, chunksize=1)
    assert len(set(keys)) == 1


SECRETS = {
    "api_key": "sk-test-1234567890",
    "OPENAI_API_KEY": "x",
    "apiKey": "anything",
    "token": "abc",
    "hf_token": "abc",
    "db_password": "p",
    "pwd": "hunter2",
    "auth": ("me", "hunter2"),
    "credentials": {"user": "me", "key": "hunter2"},
    "client_secret": b"raw",
    "x": "ghp_0123456789abcdefghijklmnopqrstuv",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n",
    "url": "postgresql://me:hunter2@db.example/x",
    "thing": "wJalrXUtnFEMI7K7MDENGbPxRfiCYEXAMPLEKEY",
}
HARMLESS = {
    "n_tokens": 5,
    "token_count": "5",
    "pad_token": "<pad>",
    "tokens": ["the", "cat"],
    "tokenizer": "bert",
    "author": "me",
    "primary_key": "id",
    "sort_key": "name",
    "keyboard": "qwerty",
    "pwd": "/home/me",
    "secret": "",
    "x": "the quick brown fox jumps over the lazy dog and runs away",
    "run_id": "3f2b8c1e9a7d4f60b5c2e1d0a9f8b7c6",
    "sha": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "path": "/usr/lib/python3/dist-packages/numpy/core/include/Numpy1",
    "url": "https://example.org/a/b?c=d",
    "task": "sk-learn-pipeline",
    "text": "risk-management-in-the-2020s",
}


@pytest.mark.parametrize("name", SECRETS)
def test_c103_what_looks_like_a_credential(name):
    assert looks_secret(name, SECRETS[name])
    assert preview(name, SECRETS[name]) == ""


@pytest.mark.parametrize("name", HARMLESS)
def test_what_does_not_look_like_a_credential(name):
    assert not looks_secret(name, HARMLESS[name])


def test_inside_a_value_the_name_must_be_plainer():
    assert looks_secret_field("password", "hunter2")
    assert looks_secret_field("apiKey", "hunter2")
    assert looks_secret_field("", "sk-test-1234567890")
    assert not looks_secret_field("token", "the")
    assert not looks_secret_field("key", "hunter2")


class Loud:
    def __repr__(self):
        raise AssertionError("previews never ask for a repr")


PREVIEWS = [
    (5, "5"),
    (1.5, "1.5"),
    (None, "None"),
    ("short", "'short'"),
    ("x" * 500, f"{'x' * 60!r}… (500 characters)"),
    (10**50, "int of 167 bits"),
    (bytes(20_000_000), "bytes of 20 MB"),
    ([1, 2], "[1, 2]"),
    ((1,), "(1,)"),
    ({"a": 1, "b": [1, {"c": 2}]}, "{'a': 1, 'b': [1, dict of 1]}"),
    ({"model": "m1", "password": "hunter2"}, "{'model': 'm1', 'password': …}"),
    (["sk-test-1234567890"], "[…]"),
    (list(range(1000)), "list of 1,000"),
    ({1, 2}, "set of 2"),
    ([], "[]"),
    ({}, "{}"),
    (Loud(), "tests.payload.test_small_parts.Loud"),
    ([Loud()], "[tests.payload.test_small_parts.Loud]"),
    (np.zeros((3, 4)), "ndarray float64 (3, 4)"),
    (np.float64(1.5), "1.5 (float64)"),
    (pd.DataFrame({"dtype": [1], "shape": [2]}), "DataFrame 1x2"),
    (pd.Series([1, 2]), "Series int64 (2,)"),
    (len, "builtin_function_or_method"),
    (Loud, "class tests.payload.test_small_parts.Loud"),
    (np, "module numpy"),
    (preview, "function preview"),
]


@pytest.mark.parametrize(("value", "text"), PREVIEWS, ids=lambda value: type(value).__name__)
def test_previews_show_sizes_and_plain_values(value, text):
    assert preview("x", value) == text


class Thermometer:
    """A type that pickle could not bring back."""

    def __init__(self, degrees):
        self.degrees = degrees
        self.wire = types.SimpleNamespace(callback=lambda: None)

    def __reduce_ex__(self, protocol):
        raise TypeError("no")


@pytest.fixture
def registered():
    registry.register(Thermometer, lambda t: {"degrees": t.degrees}, lambda d: Thermometer(d["degrees"]))
    yield
    for table in (registry._by_type, registry._by_name):
        table.clear()


def test_a_codec_of_the_user_stores_and_digests_its_type(kernel, registered):
    packed = kernel.pack({"t": Thermometer(20), "all": [Thermometer(21)]})
    assert packed.not_stored == ()
    found = kernel.codec.unpack(packed.payload, resolve=None).names
    assert (found["t"].degrees, found["all"][0].degrees) == (20, 21)
    assert kernel.digest(Thermometer(20)).digest == packed.writes[0].digest
    assert kernel.digest(Thermometer(21)).digest != packed.writes[0].digest


def test_a_codec_that_is_gone_is_named(kernel, registered):
    packed = kernel.pack({"t": Thermometer(20)})
    registry._by_name.clear()
    with pytest.raises(DefinitionChangedError, match="Thermometer is not registered"):
        kernel.codec.unpack(packed.payload, resolve=None)


def test_only_classes_can_be_registered():
    with pytest.raises(TypeError):
        registry.register("Thermometer", dict, dict)


def test_a_package_brings_its_codecs_through_an_entry_point(kernel, tmp_path, monkeypatch):
    (tmp_path / "spaceship.py").write_text("class Ship:\n  def __reduce__(self): raise TypeError\n  name = 'x'\n")
    (tmp_path / "spaceship_keel.py").write_text(
        "import keel_notebook.payload.registry as r\nfrom spaceship import Ship\n"
        "def add(): r.register(Ship, lambda s: s.name, lambda n: Ship())\n"
    )
    meta = tmp_path / "spaceship-1.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: spaceship\nVersion: 1\n")
    (meta / "entry_points.txt").write_text(
        "[keel_notebook.codecs]\nspaceship = spaceship_keel:add\nbroken_ship = spaceship_keel:missing\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import spaceship

    packed = kernel.pack({"ship": spaceship.Ship()})
    assert packed.not_stored == ()
    assert type(kernel.codec.unpack(packed.payload, resolve=None).names["ship"]) is spaceship.Ship
    with pytest.warns(RuntimeWarning, match=r"spaceship_keel:missing could not be loaded \(AttributeError\)"):
        assert registry.named("broken_ship.X") is None


def test_installed_packages_are_looked_through_once_and_again_where_one_was_installed(tmp_path, monkeypatch):
    looks = []
    real = registry.importlib.metadata.entry_points
    monkeypatch.setattr(
        registry.importlib.metadata, "entry_points", lambda **asked: looks.append(asked) or real(**asked)
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("first_ship.X", "second_ship.X", "third_ship.X"):
        assert registry.named(name) is None
    assert len(looks) == 1
    meta = tmp_path / "late_ship-1.dist-info"
    meta.mkdir()
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: late_ship\nVersion: 1\n")
    (meta / "entry_points.txt").write_text("[keel_notebook.codecs]\nlate_ship = json:dumps\n")
    with pytest.warns(RuntimeWarning, match="json:dumps could not be loaded"):
        assert registry.named("late_ship.X") is None
    assert len(looks) == 2


@pytest.fixture
def leaving(tmp_path, monkeypatch):
    """The file of a module ``leaving``."""
    path = tmp_path / "leaving.py"
    path.write_text("class One: pass")
    monkeypatch.syspath_prepend(tmp_path)
    yield path
    sys.modules.pop("leaving", None)


def _no_module(_):
    sys.modules.pop("leaving")
    sys.path_importer_cache.clear()


@pytest.mark.parametrize(
    ("makes", "loses", "reason"),
    [
        ("one = leaving.One(); names = [leaving.One, 1]", _no_module, "module leaving is missing"),
        ("one = leaving.One()", lambda _: delattr(sys.modules["leaving"], "One"), "leaving.One is missing"),
        ("one = Refusing(1)", lambda k: k.run("Refusing.__setstate__ = refuse"), "it cannot be read back (ValueError)"),
        ("one = Made(1)", lambda k: k.run("Made.made = staticmethod(refuse)"), "it cannot be read back (ValueError)"),
        ("one = {Keyed(1): 2}", lambda k: k.run("Keyed.__hash__ = refuse"), "it cannot be read back (ValueError)"),
        ("one = heavy", lambda k: k.journal.lose_largest(), "it cannot be read back (KeyError)"),
    ],
)
def test_what_is_whole_of_a_record_comes_back_in_part(kernel, leaving, makes, loses, reason):
    """Whatever fails while a record is read fails alone, where only a part is asked for (C56)."""
    kernel.run(LEAVING)
    packed = kernel.step(makes + "; box = [one]; n = [1, 2]; m = n; big = light; part = light[:2]")
    leaving.unlink()
    loses(kernel)
    with pytest.raises(DamagedError):
        kernel.codec.unpack(packed.payload, resolve=None)
    found = kernel.codec.unpack(packed.payload, resolve=None, partly=True)
    assert {"one", "box"} <= found.gone.keys() <= {"one", "box", "names"}
    assert all(told.startswith(reason) for told in found.gone.values())
    assert found.names.keys() == {"n", "m", "big", "part"}
    assert found.names["m"] is found.names["n"]
    found.names["part"][0] = 7
    assert found.names["big"][0] == 7


LEAVING = """
import numpy as np, leaving
def refuse(*_): raise ValueError
class Refusing:
    def __init__(self, x): self.x = x
class Keyed(Refusing): pass
class Made(Refusing):
    made = staticmethod(lambda x: Made(x))
    def __reduce__(self): return remade, (self.x,)
def remade(x): return Made.made(x)
heavy = np.arange(400_000.0)
light = np.arange(10_000.0)
"""
