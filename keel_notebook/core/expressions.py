"""The walk over a cell's expressions, in the order in which Python evaluates them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable

from keel_notebook.core import harmless
from keel_notebook.core.findings import Findings, State, meet
from keel_notebook.core.hidden import UNKNOWN_MAGIC, Text
from keel_notebook.core.magictext import RUNNING, Magic
from keel_notebook.core.magictext import Scope as MagicScope
from keel_notebook.core.pointnames import Names
from keel_notebook.core.scopes import COMPREHENSIONS, Comprehension, Function, Scope

Deferred = Callable[[Function, Scope], Findings]


class Expressions(Names):
    """One piece of code on its way through ``Flow``: the expressions."""

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

    def changes_root(self, node: ast.expr, state: State) -> None:
        """What is done here changes the variable behind ``a.b[0].c``, also by way of what elsewhere only looks."""
        root = harmless.root_of_chain(node)
        if root is not None:
            self.load(root.id, state)

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
        if node.id in harmless.EVALUATORS and node.id not in state.gone and self.scope.is_notebooks(node.id):
            self.reads_everything(f"it hands on {node.id}")  # `map(eval, texts)`
        self.load(node.id, state)

    def _constant(self, node: ast.Constant, state: State) -> None:
        if isinstance(node.value, str):
            if node.value == "__main__":
                self.reads_everything("it names __main__")
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
                if harmless.is_modules(where):
                    return
            case ast.Compare(left=ast.Name(id="__name__") as left, comparators=[ast.Constant(value="__main__")]):
                self.look(left, state)
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
            case ast.Constant(value=str(name)) if harmless.is_modules(node.value) and name != "__main__":
                self.found.modules.add(name)  # `sys.modules["json"]`
            case index:
                self.value(node.value, state)
                self.look(index, state)

    def _attribute(self, node: ast.Attribute, state: State) -> None:
        if node.attr in harmless.NAMESPACE_ATTRIBUTES or harmless.leads_to_all(node):
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
        func, call = node.func, harmless.called(node.func)
        if self._is_namespace(node):
            self.reads_everything(f"it calls {call}()")
        if isinstance(func, ast.Name) and func.id in {"eval", "exec"} and self._evaluates(node, state):
            return
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Constant) and call.startswith("format"):
            self._formats(str(func.value.value), state, node)
            return
        if call == "get" and isinstance(func, ast.Attribute) and harmless.is_modules(func.value):
            self.values(node.args, state)  # `sys.modules.get("json")`
            return
        self._imports_by_name(node, call)
        if call in harmless.SETTING_CALLS:
            match node.args:
                case [owner, ast.Constant(value=str(name)), *_]:
                    self.attribute(owner, name)
        self._callee(func, call, state)
        if any(keyword.arg == "inplace" for keyword in node.keywords):  # `df.columns.set_names("n", inplace=True)`
            self.changes_root(func, state)
        outer, self.call = self.call, call
        looks = isinstance(func, ast.Name) and func.id in harmless.LOOKING_CALLS
        for arg in (*node.args, *(keyword.value for keyword in node.keywords)):
            (self.look if looks else self.value)(arg, state)
        self.call = outer

    def _callee(self, func: ast.expr, call: str, state: State) -> None:
        if isinstance(func, ast.Name):
            self.load(func.id, state)
            return
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
