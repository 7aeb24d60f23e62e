"""The walk over a cell's expressions, in the order in which Python evaluates them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from keel_notebook.core import harmless
from keel_notebook.core.findings import Findings, Shared, State, meet
from keel_notebook.core.hidden import UNKNOWN_MAGIC, Text
from keel_notebook.core.magictext import RUNNING, Magic
from keel_notebook.core.magictext import Scope as MagicScope
from keel_notebook.core.scopes import COMPREHENSIONS, Comprehension, Function, Scope

Deferred = Callable[[Function, Scope], Findings]


class Expressions:
    """One piece of code (a cell, or a function's body) on its way through ``Flow``: the expressions."""

    def __init__(self, scope: Scope, shared: Shared) -> None:
        self.scope = scope
        self.owner = scope
        """The scope that assignments bind in: ``scope``, unless that is a comprehension's."""
        self.shared = shared
        self.found = Findings()
        self.block_id = 0
        self.statement_at = 0
        self.call = ""
        self.lazy = False
        self.later: dict[str, list[Findings]] = {}
        """Functions and classes that this cell has defined and that run when somebody calls them."""
        self.members: dict[str, list[Findings]] = {}
        """The same for what the class body around the point has defined."""
        self.awaited: set[str] = set()
        """Names that code which is already known may read at any later time."""
        self.fragile = 0
        """Above 0 where a block may be left after any of its statements."""
        self._perhaps_not = 0
        """Above 0 in the part of an expression that need not be evaluated (``and``, ``if else``, a loop)."""
        self._running: set[int] = set()
        self._added: dict[int, Findings] = {}

    # What Flow adds: statements inside magics and functions.
    def block(self, body: list[ast.stmt], state: State) -> State | None:
        """Walk over statements; None where they never go on."""
        raise NotImplementedError

    def branch(self, body: list[ast.stmt], state: State) -> State | None:
        """Walk over statements that may not run at all."""
        raise NotImplementedError

    def deferred(self, node: Function, scope: Scope) -> Findings:
        """What the body of a function does when it runs."""
        raise NotImplementedError

    # Names.
    def load(self, name: str, state: State, *, changes: bool = True) -> None:
        """A read of ``name`` at this point."""
        scope = self.scope
        in_class = scope.kind == "class" and name in scope.bound
        if in_class and name in state.here:
            for piece in self.members.get(name, ()):
                self.release(piece, frozenset(state.gone))
            return
        if not in_class and not scope.is_notebooks(name):
            return
        name = scope.spelt(name)
        if changes:
            self.found.changing.add(name)
        if self.lazy:
            self.awaited.add(name)
        self.load_notebooks(name, frozenset(state.gone))

    def load_notebooks(self, name: str, gone: frozenset[str]) -> None:
        """A read of the notebook's variable ``name`` where ``gone`` is surely gone."""
        found = self.found
        found.loads[name] = found.loads[name] & gone if name in found.loads else gone
        if name not in gone:
            found.reads.add(name)
            # Where an error may be caught, that there is no such name is something to see as well.
            at = -1 if self.fragile else self.statement_at
            found.first_read[name] = min(at, found.first_read.get(name, at))
        for piece in self.later.get(name, ()):
            self.release(piece, gone)

    def release(self, piece: Findings, gone: frozenset[str]) -> None:
        """Code that may run from here on, where ``gone`` is surely gone: its reads count now."""
        if id(piece) in self._running:
            return
        self._running.add(id(piece))
        for name, own in piece.loads.items():
            self.load_notebooks(name, gone | own)
            if piece.first_read.get(name, 0) < 0:
                self.found.first_read[name] = -1
        self.found.texts.update(replace(text, given=text.given | gone) for text in piece.texts)
        self._running.discard(id(piece))
        if id(piece) in self._added:
            return
        self._added[id(piece)] = piece
        self.awaited |= piece.loads.keys()
        self.found.add(piece)
        for name in piece.stored:
            self.found.stored.setdefault(name, set()).add(-1)
            self.found.last_store[name] = self.statement_at

    def store(self, name: str, state: State) -> None:
        """A binding of ``name`` at this point."""
        owner = self.owner
        if owner.kind == "class" and name in owner.bound:
            state.here.add(name)
        elif owner.kind == "module" or name in owner.declared:
            name = owner.spelt(name)
            state.gone.add(name)
            state.bound.add(name)
            self.found.stored.setdefault(name, set()).add(self.block_id)
            self.found.last_store[name] = self.statement_at

    def delete(self, name: str, state: State) -> None:
        """A deletion of ``name`` at this point: what it was before the cell can no longer be read either."""
        owner = self.owner
        state.here.discard(name)
        if owner.kind == "module" or name in owner.declared:
            name = owner.spelt(name)
            state.gone.add(name)
            state.bound.discard(name)
            self.found.deleted.add(name)

    # Expressions.
    def value(self, node: ast.AST, state: State) -> None:
        """Walk over an expression."""
        visit = _VISITORS.get(type(node))
        if visit is not None:
            visit(self, node, state)
        else:
            for child in ast.iter_child_nodes(node):
                self.value(child, state)

    def values(self, nodes: Iterable[ast.AST | None], state: State) -> None:
        """Walk over expressions in order."""
        for node in nodes:
            if node is not None:
                self.value(node, state)

    def look(self, node: ast.AST, state: State) -> None:
        """Walk over an operand: using it neither changes nor keeps it."""
        if isinstance(node, ast.Name):
            self.load(node.id, state, changes=False)
        else:
            self.value(node, state)

    def text(self, value: str, state: State, *, call: str | None = None, given: Iterable[str] = ()) -> None:
        """A string constant at this point."""
        where = self.call if call is None else call
        if value and where not in harmless.LITERAL_CALLS:
            self.found.texts.add(Text(value, where, frozenset(state.gone).union(given)))

    def attribute(self, owner: ast.expr, name: str) -> None:
        """The attribute ``name`` of ``owner`` is set or deleted at this point."""
        if harmless.is_dotted(owner):
            self.found.attribute_stores.add((harmless.dotted_name(owner), name))

    def reads_everything(self, reason: str) -> None:
        """Note that any name may be read here, and why."""
        self.found.everything = self.found.everything or reason

    def _name(self, node: ast.Name, state: State) -> None:
        self.load(node.id, state)

    def _constant(self, node: ast.Constant, state: State) -> None:
        if isinstance(node.value, str):
            self.text(node.value, state)

    def _operands(self, node: ast.AST, state: State) -> None:
        for child in ast.iter_child_nodes(node):
            self.look(child, state)

    def _joined(self, node: ast.JoinedStr, state: State) -> None:
        # The fields are code and are walked over as code; the text around them may still name something.
        constants = [part.value for part in node.values if isinstance(part, ast.Constant)]
        self.text(" ".join(map(str, constants)), state)
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.look(part.value, state)
                if part.format_spec is not None:
                    self._joined_spec(part.format_spec, state)

    def _joined_spec(self, spec: ast.expr, state: State) -> None:
        for part in ast.walk(spec):
            if isinstance(part, ast.FormattedValue):
                self.look(part.value, state)

    def _walrus(self, node: ast.NamedExpr, state: State) -> None:
        self.value(node.value, state)
        assert isinstance(node.target, ast.Name)
        block = self.block_id
        if self._perhaps_not:
            self.block_id = self.shared.new_block()
        self.store(node.target.id, state)
        self.block_id = block

    def _lambda(self, node: ast.Lambda, state: State) -> None:
        self.values([*node.args.defaults, *node.args.kw_defaults], state)
        self.release(self.deferred(node, self.scope), frozenset(state.gone))

    def _perhaps(self, nodes: Iterable[ast.AST], state: State) -> State:
        """Expressions of which each may be the last that is evaluated."""
        self._perhaps_not += 1
        inner = state.copy()
        for node in nodes:
            self.look(node, inner)
        self._perhaps_not -= 1
        return inner

    def _first_sure(self, node: ast.BoolOp, state: State) -> None:
        self.look(node.values[0], state)
        self._perhaps(node.values[1:], state)

    def _compare(self, node: ast.Compare, state: State) -> None:
        match node:
            case ast.Compare(left=ast.Constant(value=str(name)), ops=[ast.In() | ast.NotIn()], comparators=[where]):
                if self._is_namespace(where):
                    self.load(name, state, changes=False)  # `if "df" not in globals():`
                    self.found.first_read[name] = -1
                    return
        self.look(node.left, state)
        self.look(node.comparators[0], state)
        self._perhaps(node.comparators[1:], state)

    def _choice(self, node: ast.IfExp, state: State) -> None:
        self.look(node.test, state)
        self._perhaps_not += 1
        yes, no = state.copy(), state.copy()
        self.value(node.body, yes)
        self.value(node.orelse, no)
        self._perhaps_not -= 1
        state.become(meet(yes, no) or state)

    def _comprehension(self, node: Comprehension, state: State) -> None:
        first, *others = node.generators
        self.value(first.iter, state)
        scope, lazy = self.scope, self.lazy
        self.scope = self.scope.comprehension(node)
        self.lazy = self.lazy or isinstance(node, ast.GeneratorExp)
        self._perhaps_not += 1
        inner = state.copy()
        self.values(first.ifs, inner)
        for generator in others:
            self.values([generator.iter, *generator.ifs], inner)
        self.values([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt], inner)
        self.scope, self.lazy = scope, lazy
        self._perhaps_not -= 1

    def _subscript(self, node: ast.Subscript, state: State) -> None:
        match node.slice:
            case ast.Constant(value=str(name)) if self._is_namespace(node.value):
                self.load(name, state)  # `globals()["df"]`
            case index:
                self.value(node.value, state)
                self.look(index, state)

    def _attribute(self, node: ast.Attribute, state: State) -> None:
        if node.attr in harmless.NAMESPACE_ATTRIBUTES:
            self.reads_everything(f"it uses {node.attr}")
        root = harmless.root_name(node)
        if root and self.scope.is_notebooks(root):
            self.found.chains.add(harmless.dotted_name(node))
        if node.attr in harmless.LOOKING_ATTRIBUTES:
            self.look(node.value, state)
        else:
            self.value(node.value, state)

    def _is_namespace(self, node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Name(id=name), args=[]) if name in harmless.NAMESPACES:
                inside = self.scope.kind == "function" and name != "globals"
                return not inside and self.scope.is_notebooks(name)
        return False

    def _call(self, node: ast.Call, state: State) -> None:
        func, call = node.func, harmless.last_name(node.func)
        if self._is_namespace(node):
            self.reads_everything(f"it calls {call}()")
        if isinstance(func, ast.Name) and func.id in {"eval", "exec"} and self._evaluates(node, state):
            return
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Constant) and call.startswith("format"):
            self._formats(str(func.value.value), state, node)
            return
        self._imports_by_name(node, call)
        if call in harmless.SETTING_CALLS:
            match node.args:
                case [owner, ast.Constant(value=str(name)), *_]:
                    self.attribute(owner, name)
        self._callee(func, call, state)
        outer, self.call = self.call, call
        looks = isinstance(func, ast.Name) and func.id in harmless.LOOKING_CALLS
        for arg in (*node.args, *(keyword.value for keyword in node.keywords)):
            (self.look if looks else self.value)(arg, state)
        self.call = outer

    def _callee(self, func: ast.expr, call: str, state: State) -> None:
        if not (isinstance(func, ast.Attribute) and call in harmless.LOOKING_METHODS):
            self.value(func, state)
            return
        chain = func.value
        while isinstance(chain, ast.Attribute | ast.Subscript):
            if isinstance(chain, ast.Subscript):
                self.look(chain.slice, state)
            chain = chain.value
        self.look(chain, state)

    def _evaluates(self, node: ast.Call, state: State) -> bool:
        assert isinstance(node.func, ast.Name)
        own = node.func.id in state.gone or not self.scope.is_notebooks(node.func.id)
        if own or node.keywords or len(node.args) != 1:
            return False  # with a namespace of its own it reads no other
        self.load(node.func.id, state, changes=False)
        match node.args[0]:
            case ast.Constant(value=str(text)):
                try:
                    body = ast.parse(text.strip(), mode="exec").body
                    state.become(self.branch(body, state) or state)
                    return True
                except (SyntaxError, ValueError):
                    pass
        self.values(node.args, state)
        self.reads_everything(f"it calls {node.func.id}()")
        return True

    def _formats(self, text: str, state: State, node: ast.Call) -> None:
        self.text(text, state, given=re.findall(r"\w+", text))
        for arg in (*node.args, *(keyword.value for keyword in node.keywords)):
            self.look(arg, state)

    def _imports_by_name(self, node: ast.Call, call: str) -> None:
        if call in {"import_module", "__import__", "reload"} and node.args:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                self.found.modules.add(name.value)

    # Magics.
    def _magic(self, node: Magic, state: State) -> None:
        for arg in node.args:
            self.look(arg, state)
        name = node.name
        if name in harmless.EVERYTHING_MAGICS:
            self.reads_everything(f"it uses %{name}")
        elif name == "run" and re.search(r"(?:^|\s)-[a-zA-Z]*i\b|\.ipynb\b|\.ipy\b", node.line):
            self.reads_everything(f"it uses %run {'-i' if '-i' in node.line else 'on a notebook'}")
        if name in {"run", "pylab"}:
            self.found.stars.add("%" + name)
        if name == "aimport":
            self._aimport(node, state)
        if node.form != "shell" and name not in RUNNING:
            self.text(node.line, state, call=UNKNOWN_MAGIC if node.scope is MagicScope.MAYBE else "%" + name)
        if name not in harmless.VERBATIM_MAGICS and node.form == "cell":
            self.text(node.text, state, call="%%" + name)
        self._magic_body(node, state)
        for bound in node.binds:
            self.store(bound, state)

    def _magic_body(self, node: Magic, state: State) -> None:
        defined, self.shared.defined = self.shared.defined, {}  # its places are not places in the cell
        self._run_magic(node, state)
        self.shared.defined = defined

    def _run_magic(self, node: Magic, state: State) -> None:
        if node.scope is MagicScope.UNREADABLE:
            self.reads_everything(f"the code of %{node.name} cannot be read")
        elif node.scope is MagicScope.CELL:
            state.become(self.block(node.body, state) or state)
        elif node.scope is MagicScope.MAYBE:
            state.become(meet(state, self.branch(node.body, state)) or state)
        elif node.body:
            body = ast.FunctionDef(name=node.name, args=_NO_ARGUMENTS, body=node.body, decorator_list=[], lineno=0)
            self.release(self.deferred(body, self.scope), frozenset(state.gone))

    def _aimport(self, node: Magic, state: State) -> None:
        for module in node.line.split(","):
            if module.strip() and not module.strip().startswith("-"):
                self.found.modules.add(module.strip())
                self.store(module.strip().partition(".")[0], state)


_NO_ARGUMENTS = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
_VISITORS: dict[type[ast.AST], Callable[..., None]] = {
    ast.Name: Expressions._name,
    ast.Constant: Expressions._constant,
    ast.BinOp: Expressions._operands,
    ast.UnaryOp: Expressions._operands,
    ast.JoinedStr: Expressions._joined,
    ast.NamedExpr: Expressions._walrus,
    ast.Lambda: Expressions._lambda,
    ast.BoolOp: Expressions._first_sure,
    ast.Compare: Expressions._compare,
    ast.IfExp: Expressions._choice,
    ast.Subscript: Expressions._subscript,
    ast.Attribute: Expressions._attribute,
    ast.Call: Expressions._call,
    Magic: Expressions._magic,
    **dict.fromkeys(COMPREHENSIONS, Expressions._comprehension),
}
