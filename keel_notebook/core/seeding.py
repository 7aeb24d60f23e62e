"""Which generators a step surely seeds before it can draw from them (DESIGN 6, Seeds; traps 15).

``np.random.seed(42)`` as the first thing of a step is the commonest idiom of all: such a step does not depend on the
state that it finds. Read from the code alone, and only where that is plain: every statement up to the seeding one
must be unable to draw. In doubt the step depends, and executes once too often.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from msgspec import Struct

from keel_notebook.core.environment import GENERATORS
from keel_notebook.core.harmless import words
from keel_notebook.core.magictext import Magic

RANDOM, NUMPY, TORCH = GENERATORS
ALL = frozenset(GENERATORS)

Resolve = Callable[[str], "ast.AST | str | None"]
"""What a dotted name stands for: the definition of a function of the notebook or of a local module, the dotted name
of something installed (``"numpy.random.seed"``), or None."""

_SEEDING: dict[str, frozenset[str]] = {
    "random.seed": frozenset({RANDOM}),
    "random.Random.seed": frozenset({RANDOM}),
    "numpy.random.mtrand.seed": frozenset({NUMPY}),
    "numpy.random.seed": frozenset({NUMPY}),
    "torch.manual_seed": frozenset({TORCH}),
    "torch.random.manual_seed": frozenset({TORCH}),
    "transformers.set_seed": ALL,
    "transformers.trainer_utils.set_seed": ALL,
    "accelerate.utils.set_seed": ALL,
    "lightning.seed_everything": ALL,
    "lightning.pytorch.seed_everything": ALL,
    "pytorch_lightning.seed_everything": ALL,
    "keras.utils.set_random_seed": frozenset({RANDOM, NUMPY}),
    "tensorflow.keras.utils.set_random_seed": frozenset({RANDOM, NUMPY}),
    "fastai.torch_core.set_seed": ALL,
}
_QUIET = words(
    """
    print len str int float bool open write display range isinstance getenv time perf_counter perf_counter_ns
    monotonic collect makedirs mkdir filterwarnings simplefilter getLogger info debug device is_available now today
    manual_seed_all set_option set_printoptions seterr set_theme use basicConfig Path exists join getcwd
    use_deterministic_algorithms set_default_dtype
    """
)
"""Calls that draw nothing. Judged by their last name, of things that are no function of the notebook."""
_QUIET_MAGICS = frozenset({"matplotlib", "config", "load_ext", "reload_ext", "env", "autoreload"})
_SIMPLE = (
    ast.Import,
    ast.ImportFrom,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Expr,
    ast.Pass,
    ast.Global,
    ast.Return,
)
_DEEPEST = 5


class _Effect(Struct, frozen=True):
    """What a call does to the generators: which it seeds before it can draw, and whether it may draw after that."""

    seeds: frozenset[str] = frozenset()
    draws: bool = False


_DRAWS = _Effect(draws=True)


def seeds_first(body: Sequence[ast.stmt], resolve: Resolve) -> frozenset[str]:
    """The generators that these statements seed before anything could have drawn from one."""
    return _of_body(body, resolve, 0).seeds


def _of_body(body: Sequence[ast.stmt], resolve: Resolve, depth: int) -> _Effect:
    seeds: frozenset[str] = frozenset()
    for statement in body:
        effect = _of_statement(statement, resolve, depth)
        seeds |= effect.seeds
        if effect.draws:
            return _Effect(seeds, draws=True)
    return _Effect(seeds)


def _of_statement(statement: ast.stmt, resolve: Resolve, depth: int) -> _Effect:
    match statement:
        case ast.FunctionDef(decorator_list=[]) | ast.AsyncFunctionDef(decorator_list=[]):
            return _Effect()
        case ast.With():
            entered = _together([item.context_expr for item in statement.items], resolve, depth)
            inside = _of_body(statement.body, resolve, depth)
            return _DRAWS if entered.draws else _Effect(entered.seeds | inside.seeds, inside.draws)
        case ast.Expr(value=Magic() as magic):
            return _of_magic(magic, resolve, depth)
        case ast.Expr(value=ast.Call() as call) | ast.Assign(value=ast.Call() as call):
            given = _together([*call.args, *(each.value for each in call.keywords)], resolve, depth)
            own = _of_call(call, resolve, depth)
            return _DRAWS if given.draws else _Effect(given.seeds | own.seeds, own.draws)
        case _ if isinstance(statement, _SIMPLE):
            return _together([statement], resolve, depth)
        case _:
            return _DRAWS


def _together(nodes: Sequence[ast.AST], resolve: Resolve, depth: int) -> _Effect:
    """The effect of all calls in these parts, whatever their order."""
    found = [node for part in nodes for node in ast.walk(part) if isinstance(node, ast.Call | ast.Await | Magic)]
    effects = [_of_call(node, resolve, depth) if isinstance(node, ast.Call) else _DRAWS for node in found]
    if any(effect.draws for effect in effects):
        return _DRAWS
    return _Effect(frozenset().union(*(effect.seeds for effect in effects)))


def _of_call(call: ast.Call, resolve: Resolve, depth: int) -> _Effect:
    name = dotted(call.func)
    meant = resolve(name) if name else None
    if isinstance(meant, ast.FunctionDef):
        return _of_body(meant.body, resolve, depth + 1) if depth < _DEEPEST else _DRAWS
    if isinstance(meant, str) and meant in _SEEDING and (call.args or call.keywords):
        return _Effect(_SEEDING[meant])
    last = call.func.attr if isinstance(call.func, ast.Attribute) else name
    return _Effect(draws=last not in _QUIET)


def _of_magic(magic: Magic, resolve: Resolve, depth: int) -> _Effect:
    if magic.body:
        return _of_body(magic.body, resolve, depth)
    return _Effect(draws=magic.form != "shell" and magic.name not in _QUIET_MAGICS)


def dotted(node: ast.AST) -> str:
    """``"np.random.seed"`` of the expression that reads so; empty where it is no dotted name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])
