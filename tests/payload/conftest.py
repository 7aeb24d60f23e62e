"""A notebook without a kernel: namespace, definitions, journal and the two parts under test."""

from dataclasses import dataclass

import pytest

from keel_notebook.payload.codec import GraphCodec
from keel_notebook.payload.digest import StructuralDigester
from tests.payload.doubles import Cells, Objects

SALT = b"s" * 32


@dataclass
class Kernel:
    """One kernel of a notebook: ``run`` cells, ``pack`` what a cell bound, ``unpack`` into the namespace."""

    cells: Cells
    journal: Objects
    digester: StructuralDigester
    codec: GraphCodec

    @property
    def space(self):
        return self.cells.space

    def run(self, source):
        return self.cells.run(source)

    def digest(self, value):
        return self.digester.digest(value)

    def step(self, source, *, result=None, known=None):
        """Run a cell and pack the names that it bound."""
        before = dict(self.space)
        self.run(source)
        names = {n: v for n, v in self.space.items() if n not in before or before[n] is not v}
        names.pop("__builtins__", None)
        return self.pack(names, result=result, known=known)

    def pack(self, names, *, result=None, known=None):
        return self.codec.pack(names, result=result, known=known or {})

    def replay(self, packed, *, resolve=None):
        """Bring a payload's names back into the namespace."""
        found = self.codec.unpack(packed.payload, resolve=resolve)
        self.space.update(found.names)
        return found


def make_kernel(journal=None):
    cells = Cells()
    journal = journal or Objects(SALT)
    digester = StructuralDigester(salt=journal.salt, definitions=cells)
    codec = GraphCodec(journal=journal, definitions=cells, digester=digester, namespace=lambda: cells.space)
    return Kernel(cells, journal, digester, codec)


@pytest.fixture
def kernel():
    return make_kernel()


@pytest.fixture
def restarted(kernel):
    """A second kernel on the same journal, with an empty namespace."""
    return lambda: make_kernel(kernel.journal)


@pytest.fixture
def digest(kernel):
    """The digest of a value that has one."""

    def digest(value):
        found = kernel.digest(value)
        assert found.digest is not None, found.reason
        return found.digest

    return digest
