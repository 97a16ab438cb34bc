"""Python's operators and the methods of a variable: the syntax. What each means is registered by `ops/`.

The graph layer knows nothing of additions or sums; `ops/__init__.py` fills the table once with `register_meanings`, so
that gradient rules in `ops/` and users' programs are written with the same operators.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import GraphTypeError, InternalError, explain_error

if TYPE_CHECKING:
    from .variable import Variable

_MEANINGS: dict[str, Callable[..., Any]] = {}


def register_meanings(table: Mapping[str, Callable[..., Any]]) -> None:
    """Say what operators and methods mean: name (`add`, `sum`, …) to function; a name may be given once."""
    twice = _MEANINGS.keys() & table.keys()
    if twice:
        raise InternalError(f"operators registered twice: {sorted(twice)}")
    _MEANINGS.update(table)


def meaning(name: str) -> Callable[..., Any]:
    """The function registered for an operator or method."""
    try:
        return _MEANINGS[name]
    except KeyError:
        raise InternalError(f"the operator {name!r} has no registered meaning") from None


class Operators:
    """The operators and methods of `Variable`. `==` and `!=` are identity: use `T.eq` and `T.neq`."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy arrays on the left leave the operation to us

    def __add__(self, other: Any) -> Variable:
        return meaning("add")(self, other)

    def __radd__(self, other: Any) -> Variable:
        return meaning("add")(other, self)

    def __sub__(self, other: Any) -> Variable:
        return meaning("sub")(self, other)

    def __rsub__(self, other: Any) -> Variable:
        return meaning("sub")(other, self)

    def __mul__(self, other: Any) -> Variable:
        return meaning("mul")(self, other)

    def __rmul__(self, other: Any) -> Variable:
        return meaning("mul")(other, self)

    def __truediv__(self, other: Any) -> Variable:
        return meaning("true_div")(self, other)

    def __rtruediv__(self, other: Any) -> Variable:
        return meaning("true_div")(other, self)

    def __floordiv__(self, other: Any) -> Variable:
        return meaning("floor_div")(self, other)

    def __rfloordiv__(self, other: Any) -> Variable:
        return meaning("floor_div")(other, self)

    def __mod__(self, other: Any) -> Variable:
        return meaning("mod")(self, other)

    def __rmod__(self, other: Any) -> Variable:
        return meaning("mod")(other, self)

    def __pow__(self, other: Any) -> Variable:
        return meaning("pow")(self, other)

    def __rpow__(self, other: Any) -> Variable:
        return meaning("pow")(other, self)

    def __matmul__(self, other: Any) -> Variable:
        return meaning("matmul")(self, other)

    def __rmatmul__(self, other: Any) -> Variable:
        return meaning("matmul")(other, self)

    def __and__(self, other: Any) -> Variable:
        return meaning("and_")(self, other)

    def __rand__(self, other: Any) -> Variable:
        return meaning("and_")(other, self)

    def __or__(self, other: Any) -> Variable:
        return meaning("or_")(self, other)

    def __ror__(self, other: Any) -> Variable:
        return meaning("or_")(other, self)

    def __xor__(self, other: Any) -> Variable:
        return meaning("xor")(self, other)

    def __rxor__(self, other: Any) -> Variable:
        return meaning("xor")(other, self)

    def __invert__(self) -> Variable:
        return meaning("invert")(self)

    def __neg__(self) -> Variable:
        return meaning("neg")(self)

    def __pos__(self) -> Variable:
        return self  # type: ignore[return-value]

    def __abs__(self) -> Variable:
        return meaning("abs")(self)

    def __lt__(self, other: Any) -> Variable:
        return meaning("lt")(self, other)

    def __le__(self, other: Any) -> Variable:
        return meaning("le")(self, other)

    def __gt__(self, other: Any) -> Variable:
        return meaning("gt")(self, other)

    def __ge__(self, other: Any) -> Variable:
        return meaning("ge")(self, other)

    def __getitem__(self, index: Any) -> Variable:
        return meaning("getitem")(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        raise GraphTypeError(explain_error("an expression cannot be changed", f"an assignment to {self!r}[...]",
                                           "use what T.set_subtensor(x[index], value) gives (or T.inc_subtensor, for +=)"))

    def __bool__(self) -> bool:
        raise GraphTypeError(explain_error("a symbolic variable has no truth value before the function runs", repr(self),
                                           "use T.where(condition, a, b), or & | ~ instead of and, or, not"))

    def __len__(self) -> int:
        return meaning("length")(self)

    def __iter__(self) -> Any:
        return meaning("iterate")(self)

    @property
    def shape(self) -> Variable:
        """The shape as a symbolic int64 vector; `shape[i]` is a symbolic scalar."""
        return meaning("shape")(self)

    @property
    def size(self) -> Variable:
        """Number of elements, symbolic int64."""
        return meaning("size")(self)

    @property
    def T(self) -> Variable:
        """The axes in reverse order."""
        return meaning("transpose")(self)

    def sum(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Variable:
        """Sum over axes (all by default)."""
        return meaning("sum")(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def prod(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Variable:
        """Product over axes (all by default)."""
        return meaning("prod")(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Variable:
        """Mean over axes (all by default)."""
        return meaning("mean")(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def var(self, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Variable:
        """Variance over axes (all by default)."""
        return meaning("var")(self, axis=axis, ddof=ddof, keepdims=keepdims)

    def std(self, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Variable:
        """Standard deviation over axes (all by default)."""
        return meaning("std")(self, axis=axis, ddof=ddof, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Variable:
        """Maximum over axes (all by default); NaN wins."""
        return meaning("max")(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Variable:
        """Minimum over axes (all by default); NaN wins."""
        return meaning("min")(self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: Any = None, keepdims: bool = False) -> Variable:
        """Position of the first maximum along one axis (of the flattened tensor by default), int64."""
        return meaning("argmax")(self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: Any = None, keepdims: bool = False) -> Variable:
        """Position of the first minimum along one axis (of the flattened tensor by default), int64."""
        return meaning("argmin")(self, axis=axis, keepdims=keepdims)

    def any(self, axis: Any = None, keepdims: bool = False) -> Variable:
        """Whether any element is true, over axes (all by default)."""
        return meaning("any")(self, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, keepdims: bool = False) -> Variable:
        """Whether all elements are true, over axes (all by default)."""
        return meaning("all")(self, axis=axis, keepdims=keepdims)

    def dot(self, other: Any) -> Variable:
        """NumPy's dot product."""
        return meaning("dot")(self, other)

    def astype(self, dtype: Any) -> Variable:
        """The same values in another dtype."""
        return meaning("cast")(self, dtype)

    def reshape(self, *shape: Any, ndim: int | None = None) -> Variable:
        """Another shape with the same elements in row-major order; one size may be -1.

        `ndim` is needed where the shape is a symbolic vector of unknown length.
        """
        sizes: Any = shape[0] if len(shape) == 1 else shape
        return meaning("reshape")(self, sizes, ndim)

    def flatten(self, ndim: int = 1) -> Variable:
        """The last axes joined into one, so that `ndim` axes remain."""
        return meaning("flatten")(self, ndim)

    def ravel(self) -> Variable:
        """All elements in one axis, in row-major order."""
        return meaning("flatten")(self, 1)

    def dimshuffle(self, *pattern: Any) -> Variable:
        """Axes in another order; `"x"` inserts an axis of size 1, an axis of size 1 may be left out."""
        chosen: Sequence[Any] = pattern[0] if len(pattern) == 1 and isinstance(pattern[0], (list, tuple)) else pattern
        return meaning("dimshuffle")(self, chosen)

    def transpose(self, *axes: Any) -> Variable:
        """Axes in another order (reversed by default)."""
        chosen: Any = axes[0] if len(axes) == 1 and isinstance(axes[0], (list, tuple)) else (axes or None)
        return meaning("transpose")(self, chosen)

    def swapaxes(self, axis1: int, axis2: int) -> Variable:
        """Two axes exchanged."""
        return meaning("swapaxes")(self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Variable:
        """Without axes that are statically known to be of size 1."""
        return meaning("squeeze")(self, axis)

    def repeat(self, repeats: int, axis: int | None = None) -> Variable:
        """Every element repeated along an axis."""
        return meaning("repeat")(self, repeats, axis)

    def take(self, indices: Any, axis: int | None = None) -> Variable:
        """Elements by integer index along an axis."""
        return meaning("take")(self, indices, axis)

    def sort(self, axis: int | None = -1) -> Variable:
        """In ascending order along an axis (None: all elements); NaN at the end."""
        return meaning("sort")(self, axis)

    def argsort(self, axis: int | None = -1) -> Variable:
        """The positions, int64, that put an axis in ascending order."""
        return meaning("argsort")(self, axis)

    def cumsum(self, axis: int | None = None) -> Variable:
        """The sum of all elements up to each along an axis (None: of all elements)."""
        return meaning("cumsum")(self, axis)

    def cumprod(self, axis: int | None = None) -> Variable:
        """The product of all elements up to each along an axis (None: of all elements)."""
        return meaning("cumprod")(self, axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Variable:
        """A diagonal of two axes, as a last axis in their place."""
        return meaning("diagonal")(self, offset, axis1, axis2)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Variable:
        """The sum of a diagonal."""
        return meaning("trace")(self, offset, axis1, axis2)

    def norm(self, ord: float = 2, axis: Any = None, keepdims: bool = False) -> Variable:
        """The norm of order `ord` over axes (of all elements by default)."""
        return meaning("norm")(self, ord=ord, axis=axis, keepdims=keepdims)

    def round(self) -> Variable:
        """The nearest whole numbers; halves to the even one."""
        return meaning("round")(self)

    def clip(self, low: Any, high: Any) -> Variable:
        """Values limited to `low` … `high`; NaN stays."""
        return meaning("clip")(self, low, high)

    def eval(self, inputs: Mapping[Variable, Any] | None = None) -> Any:
        """The value: compiles a function of the given inputs (kept for the next call) and calls it."""
        return meaning("eval")(self, inputs or {})

    def __getattr__(self, name: str) -> Any:
        advice = _ABSENT.get(name, f"T.{name}(x)" if name in _FUNCTIONS else "")
        raise AttributeError(explain_error(f"a variable has no attribute {name!r}", do=advice))


# Methods of Theano's variables that are not here, and what to write instead.
_FUNCTIONS = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sqr", "sin", "cos", "tan", "sinh", "cosh",
              "tanh", "arcsin", "arccos", "arctan", "floor", "ceil", "trunc", "sgn", "deg2rad", "rad2deg", "zeros_like",
              "ones_like", "fill", "ptp")
_ABSENT = {"nonzero": "T.where(mask, x, 0): sizes cannot depend on values", "compress": "T.where(mask, x, 0)",
           "nonzero_values": "T.where(mask, x, 0): sizes cannot depend on values", "choose": "T.switch",
           "copy": "leave it out: expressions are never changed",
           "transfer": "leave it out: a function's device is that of compile(…, device=…)",
           "set": "T.set_subtensor(x[index], value)", "inc": "T.inc_subtensor(x[index], value)",
           "get_parents": "x.owner, and its inputs", **dict.fromkeys(("real", "imag", "conj"), "there are no complex numbers"),
           "get_value": "of an expression: x.eval({input: value}); shared variables have get_value()",
           "set_value": "shared variables have set_value(); other variables get their values when the function is called"}
