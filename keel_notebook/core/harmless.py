"""What is known of well-known names: calls that change nothing, managers that swallow nothing, and the like.

Each list errs to the safe side: a name that is missing costs a digest or a false input, never a stale value.
"""

from __future__ import annotations

import ast


def words(text: str) -> frozenset[str]:
    """The words of a list that is easier to read as text."""
    return frozenset(text.split())


LOOKING_CALLS = words(
    """
    len print str repr int float bool complex type isinstance range round abs hash format ascii id callable
    """
)
"""Built-in functions that neither change nor keep their arguments."""

LOOKING_METHODS = words(
    """
    mean sum std var min max median count nunique any all argmax argmin idxmax idxmin describe corr cov quantile
    value_counts isna isnull notna tolist item to_list memory_usage info prod cumsum cumprod skew kurt sem
    """
)
"""Methods of arrays and frames that return something new. Only trusted where the value is one (``names``)."""

LOOKING_ATTRIBUTES = words("shape size ndim dtype dtypes nbytes empty columns")

QUIET_DECORATORS = words(
    """
    property setter getter deleter staticmethod classmethod cached_property abstractmethod overload final override
    dataclass total_ordering lru_cache cache wraps contextmanager asynccontextmanager singledispatch njit jit
    vectorize durable retry no_grad inference_mode field_validator model_validator validator timeit
    """
)
"""Decorators that do not call what they decorate."""

QUIET_BASES = words(
    """
    object Exception BaseException ValueError TypeError KeyError RuntimeError ABC Protocol NamedTuple TypedDict
    Generic Module Dataset IterableDataset LightningModule BaseEstimator TransformerMixin ClassifierMixin
    RegressorMixin Thread dict list tuple set str int float
    """
)
"""Base classes that call no method of a new subclass while it is made."""

KEEPING_MANAGERS = words(
    """
    open ZipFile TarFile fdopen File Dataset no_grad inference_mode enable_grad autocast catch_warnings
    option_context rc_context context Pool ThreadPoolExecutor ProcessPoolExecutor ThreadPool connect cursor begin
    errstate printoptions TemporaryDirectory NamedTemporaryFile TemporaryFile SpooledTemporaryFile chdir nullcontext
    closing localcontext redirect_stdout redirect_stderr Session Client AsyncClient ClientSession Lock RLock urlopen
    get stream tqdm trange memmap load device Timer timer GradientTape strategy_scope scope parallel_backend
    parallel_config profile record config_context ExcelWriter HDFStore StringIO BytesIO Model TaskGroup timeout
    timeout_at Progress Live Console
    """
)
"""Context managers that let exceptions through, so that what stands in them has run when the cell goes on."""

LITERAL_CALLS = words(
    """
    print display Markdown HTML Latex Math Template PromptTemplate from_template from_messages compile sub subn
    match search findall finditer fullmatch strftime strptime title xlabel ylabel set_title set_xlabel set_ylabel
    suptitle text annotate legend getLogger
    """
)
"""Calls whose strings name no variable, however they look: ``plt.title("$x$")``, ``Template("{x}")``."""

NAMESPACES = frozenset({"globals", "locals", "vars", "dir"})
NAMESPACE_ATTRIBUTES = words(
    """
    user_ns user_global_ns user_module run_cell run_cell_async run_line_magic run_cell_magic f_globals f_locals
    f_back _getframe currentframe __globals__
    """
)
"""Attributes that lead to the notebook's namespace by another way than a name."""

EVALUATORS = frozenset({"eval", "exec", "globals"})
"""Built-in functions that read any name when somebody else calls them."""
_SHELL_ONLY = words(
    """
    system getoutput getoutput_pager kernel config display_formatter history_manager magics_manager events
    set_custom_exc showtraceback execution_count input_transformers_cleanup input_transformers_post ast_transformers
    colors profile_dir ipython_dir enable_gui enable_matplotlib comm_manager set_next_input display_pub user_ns_hidden
    register_magic_function register_magics find_line_magic find_cell_magic has_trait parent_header
    """
)
"""What a cell may ask of IPython without asking for a variable."""
ANY_WORD = "any word"
"""Stands for the call of a text whose words may name anything: ``pd.eval("k + 1")``, ``ne.evaluate("a * b")``."""

RUN_ONCE_MAGICS = words("time capture prun keel_step snakeviz pyinstrument scalene viztracer")
"""Cell magics whose body runs once, in the notebook's namespace: a step may stand below one."""

EVERYTHING_MAGICS = words("who who_ls whos rerun edit ed psearch macro pastebin notebook")
VERBATIM_MAGICS = words(
    """
    bash sh script perl ruby html svg javascript js latex markdown writefile file keel_undo
    """
)
"""Cell magics whose text never names a variable: ``$x`` in ``%%bash`` is the shell's."""


SETTING_CALLS = frozenset({"setattr", "delattr", "object"})
"""Calls that set or delete the attribute that their second argument names; ``object`` is that of ``mock.patch``."""


def last_name(node: ast.AST) -> str:
    """``c`` of ``a.b.c``, ``a.b.c(…)`` and ``c``; else an empty string."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=inner):
            return last_name(inner)
    return ""


def called(func: ast.AST) -> str:
    """The name under which the calls of a function are known: the last part of its name, mostly."""
    name = last_name(func)
    if name in {"eval", "evaluate"} and isinstance(func, ast.Attribute):
        return ANY_WORD if root_name(func.value) in {"pd", "pandas", "ne", "numexpr"} else name
    return name


def is_modules(node: ast.AST) -> bool:
    """Whether an expression is ``sys.modules``."""
    return isinstance(node, ast.Attribute) and node.attr == "modules" and last_name(node.value) == "sys"


def leads_to_all(node: ast.Attribute) -> bool:
    """Whether an attribute leads to every name: ``builtins.eval``, ``sys.modules``, ``get_ipython().ev``."""
    if is_modules(node):
        return True
    if node.attr in EVALUATORS and last_name(node.value) in {"builtins", "__builtins__"}:
        return True
    asks = isinstance(node.value, ast.Call) and last_name(node.value) == "get_ipython"
    return asks and node.attr not in _SHELL_ONLY


def root_name(node: ast.AST) -> str:
    """``a`` of ``a.b[0].c``; else an empty string."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def root_of_chain(node: ast.AST) -> ast.Name | None:
    """The ``a`` of ``a.b[0].c().d``: what all else is a part of, or is asked of."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node if isinstance(node, ast.Name) else None


def dotted_name(node: ast.AST) -> str:
    """``a.b.c`` of an expression that starts with it (``a.b.c[0].d``); else an empty string."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            before = dotted_name(value)
            return f"{before}.{name}" if before and is_dotted(value) else before
        case ast.Subscript(value=value) | ast.Call(func=value):
            return dotted_name(value)
    return ""


def is_dotted(node: ast.AST) -> bool:
    """Whether an expression is nothing but ``a`` or ``a.b.c``."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def surely_entered(node: ast.expr) -> bool:
    """Whether a ``for`` over the expression runs its body at least once."""
    match node:
        case ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_]) | ast.Set(elts=[first, *_]):
            return not isinstance(first, ast.Starred)
        case ast.Constant(value=str() | bytes() as text):
            return len(text) > 0
        case ast.Call(func=ast.Name(id="range" | "trange"), args=bounds):
            return _counts_up(bounds)
        case ast.Call(func=ast.Name(id="enumerate" | "reversed" | "sorted" | "list" | "tqdm"), args=[first, *_]):
            return surely_entered(first)
    return False


def _counts_up(bounds: list[ast.expr]) -> bool:
    try:
        numbers = [ast.literal_eval(bound) for bound in bounds]
        return len(range(*numbers)) > 0
    except (ValueError, TypeError, OverflowError):
        return False


def constant_truth(test: ast.expr) -> bool | None:
    """The value of a test that is always the same in a notebook, else None."""
    match test:
        case ast.Constant(value=value):
            return bool(value)
        case ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]):
            return True
    return None


def always_matches(pattern: ast.pattern) -> bool:
    """Whether a ``case`` with this pattern and no guard takes every value."""
    match pattern:
        case ast.MatchAs(pattern=None):
            return True
        case ast.MatchAs(pattern=ast.pattern() as inner):
            return always_matches(inner)
        case ast.MatchOr(patterns=patterns):
            return any(map(always_matches, patterns))
    return False
