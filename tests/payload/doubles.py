"""Stand-ins for the other layers: a notebook's namespace and definitions, and a journal that is a dict."""

import ast
import hashlib
import itertools
import linecache
import types

from blake3 import blake3

from keel_notebook.core.model import Blob
from keel_notebook.core.ports import Definition, Digested

_numbers = itertools.count(1)


class Cells:
    """A namespace in which cells are run, and the definitions that were made there (the port ``Definitions``)."""

    def __init__(self, space=None):
        self.space = {"__name__": "__main__"} if space is None else space
        self.modules = {}
        self._trees = {}
        self._learnt = {}

    def run(self, source):
        """Run a cell as IPython would: its own file name, its lines in linecache."""
        name = f"/tmp/cells/{next(_numbers)}.py"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        self._trees[name] = ast.parse(source)
        exec(compile(source, name, "exec"), self.space)
        return self.space

    def belongs(self, thing):
        if isinstance(thing, types.FunctionType):
            return (
                thing.__globals__ is self.space and thing.__code__.co_filename in self._trees
            ) or thing in self._learnt
        return getattr(thing, "__module__", None) == "__main__"

    def of(self, thing):
        if thing in self._learnt:
            return self._learnt[thing]
        node = self._node(thing)
        if node is None:
            return None
        reads = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        code = hashlib.sha256(ast.dump(node).encode()).hexdigest()[:32]
        return Definition(code=code, reads=frozenset(reads), source=ast.unparse(node))

    def learn(self, thing, definition):
        self._learnt[thing] = definition

    def module(self, name):
        return self.modules.get(name, Digested(digest="module " + name))

    def modules_at_once(self):
        return self.module

    def is_local(self, module):
        return module == "__main__" or module in self.modules

    def _node(self, thing):
        if isinstance(thing, types.FunctionType):
            tree = self._trees.get(thing.__code__.co_filename)
            nodes = (
                [] if tree is None else [n for n in ast.walk(tree) if _first_line(n) == thing.__code__.co_firstlineno]
            )
            lambdas = thing.__name__ == "<lambda>"
            nodes = [n for n in nodes if isinstance(n, ast.Lambda) == lambdas]
            return nodes[0] if len(nodes) == 1 else None
        for tree in reversed(self._trees.values()):
            found = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == thing.__name__]
            if found:
                return found[-1]
        return None


def _first_line(node):
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return min([node.lineno, *(d.lineno for d in node.decorator_list)])
    return node.lineno if isinstance(node, ast.Lambda) else None


class Objects:
    """The part of the port ``Journal`` that a codec uses."""

    def __init__(self, salt=b"s" * 32):
        self.salt = salt
        self.objects = {}
        self.puts = []

    def put(self, parts):
        content = b"".join(bytes(part) for part in parts)
        digest = blake3(content).hexdigest()
        self.puts.append((digest, len(content)))
        self.objects.setdefault(digest, content)
        return digest

    def blob(self, content):
        if len(content) <= 16 << 10:
            return Blob(len(content), inline=bytes(content))
        return Blob(len(content), object=self.put([content]))

    def read(self, blob):
        return blob.inline if blob.object is None else self.objects[blob.object]

    def lose_largest(self):
        """As if the largest object were gone from the disk."""
        del self.objects[max(self.objects, key=lambda digest: len(self.objects[digest]))]

    def map(self, digest):
        return memoryview(bytearray(self.objects[digest]))
