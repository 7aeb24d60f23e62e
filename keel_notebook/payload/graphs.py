"""The patient walk: digests of values that are cyclic.

Every object is looked at once. What is not in a cycle gets the hash of its label and its children's digests. The
objects of one cycle (a strongly connected part) are told apart by refinement: first by label, then again and again by
the colours of their children, until nothing new is told apart; the colours describe the unfolded values and nothing
else. Where that takes long (a doubly linked list), the part is numbered from an object that is already unique.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

from msgspec import Struct, field

from keel_notebook.payload.shapes import Shapes, Unknown, is_entity

_MAX_OBJECTS = 1 << 23
_PATIENT_ROUNDS = 8
_MAX_WORK = 1 << 25


class _Node(Struct):
    label: bytes
    unordered: bool
    children: list[int] = field(default_factory=list)
    digest: bytes = b""


class GraphWalk:
    """The digest of one value, by looking at each of its objects once."""

    def __init__(self, shapes: Shapes, key: bytes) -> None:
        self._shapes = shapes
        self._key = key
        self._nodes: list[_Node] = []
        self._leaves: dict[bytes, int] = {}
        self._objects: dict[int, int] = {}
        self._alive: list[Any] = []

    def digest(self, value: Any) -> bytes:
        """The digest. Raises Unknown."""
        root = self._read(value)
        for part in _components(self._nodes):
            node = self._nodes[part[0]]
            if len(part) > 1 or part[0] in node.children:
                self._cycle(part, value)
            else:
                node.digest = self._hash(
                    node.label, self._ordered(node, [self._nodes[c].digest for c in node.children])
                )
        return self._nodes[root].digest

    def _read(self, value: Any) -> int:
        pending: list[tuple[_Node, Sequence[Any]]] = []
        root = self._number(value, pending)
        while pending:
            node, children = pending.pop()
            node.children = [self._number(child, pending) for child in children]
        return root

    def _number(self, value: Any, pending: list[tuple[_Node, Sequence[Any]]]) -> int:
        known = self._objects.get(id(value))
        if known is not None:
            return known
        shape = self._shapes.of(value)
        children = list(shape.children)
        if not children and not is_entity(type(value)):
            number = self._leaves.setdefault(shape.label, len(self._nodes))
            if number == len(self._nodes):
                self._nodes.append(_Node(shape.label, unordered=False))
            return number
        number = self._objects[id(value)] = len(self._nodes)
        if number > _MAX_OBJECTS:
            raise Unknown(value, "too many objects to compare")
        self._alive.append(value)
        node = _Node(shape.label, shape.unordered)
        self._nodes.append(node)
        pending.append((node, children))
        return number

    def _cycle(self, part: list[int], value: Any) -> None:
        inside = {number: at for at, number in enumerate(part)}
        nodes = [self._nodes[number] for number in part]
        colours = [self._hash(node.label, []) for node in nodes]
        told_apart, rounds = 0, 0
        while (now := len(set(colours))) > told_apart:
            told_apart = now
            rounds += 1
            if rounds > _PATIENT_ROUNDS:
                start = _unique(colours)
                if start is not None and not any(node.unordered for node in nodes):
                    self._numbered(part, inside, start)
                    return
                if rounds * len(nodes) > _MAX_WORK:
                    raise Unknown(value, "too tangled to compare")
            colours = [
                self._hash(colour, self._ordered(node, self._seen(node, inside, colours)))
                for node, colour in zip(nodes, colours, strict=True)
            ]
        whole = self._hash(b"cycle", sorted(set(colours)))
        for node, colour in zip(nodes, colours, strict=True):
            node.digest = self._hash(whole, [colour])

    def _seen(self, node: _Node, inside: dict[int, int], colours: list[bytes]) -> list[bytes]:
        return [colours[inside[child]] if child in inside else self._nodes[child].digest for child in node.children]

    def _numbered(self, part: list[int], inside: dict[int, int], start: int) -> None:
        order = [part[start]]
        numbers = {part[start]: 0}
        for number in order:  # grows while it is walked
            for child in self._nodes[number].children:
                if child in inside and child not in numbers:
                    numbers[child] = len(order)
                    order.append(child)
        lines = []
        for number in order:
            node = self._nodes[number]
            seen = [b"%d" % numbers[child] if child in inside else self._nodes[child].digest for child in node.children]
            lines.append(self._hash(node.label, seen))
        whole = self._hash(b"numbered", lines)
        for number in order:
            self._nodes[number].digest = self._hash(whole, [b"%d" % numbers[number]])

    def _ordered(self, node: _Node, digests: list[bytes]) -> list[bytes]:
        return sorted(digests) if node.unordered else digests

    def _hash(self, label: bytes, parts: Sequence[bytes]) -> bytes:
        state = blake2b(b"%d %d;%s" % (len(label), len(parts), label), key=self._key, digest_size=32)
        for part in parts:
            state.update(b"%d;" % len(part) + part)
        return state.digest()


def _unique(colours: list[bytes]) -> int | None:
    """Where the first of the colours that only one object has is."""
    alone = [colour for colour, times in Counter(colours).items() if times == 1]
    return colours.index(min(alone)) if alone else None


def _components(nodes: list[_Node]) -> Iterator[list[int]]:
    """The strongly connected parts, children first (Tarjan's algorithm without recursion)."""
    order = [0] * len(nodes)
    low = [0] * len(nodes)
    on_stack = [False] * len(nodes)
    stack: list[int] = []
    counter = 0
    for first in range(len(nodes)):
        if order[first]:
            continue
        work = [(first, 0)]
        while work:
            number, at = work.pop()
            if at == 0:
                counter += 1
                order[number] = low[number] = counter
                stack.append(number)
                on_stack[number] = True
            else:
                low[number] = min(low[number], low[nodes[number].children[at - 1]])
            children = nodes[number].children
            while at < len(children):
                child = children[at]
                at += 1
                if not order[child]:
                    work.append((number, at))
                    work.append((child, 0))
                    break
                if on_stack[child]:
                    low[number] = min(low[number], order[child])
            else:
                if low[number] == order[number]:
                    part: list[int] = []
                    while not part or part[-1] != number:
                        part.append(stack.pop())
                        on_stack[part[-1]] = False
                    yield part
