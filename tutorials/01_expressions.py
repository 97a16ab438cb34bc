"""1. Expressions: variables, operators, compiling, state, gradients, printing.  Run: python tutorials/01_expressions.py"""
import numpy as np

import symconv as sc
import symconv.tensor as T

# A variable stands for an array that is not there yet. It has a dtype and a rank, and as much of its shape as you tell.
x = T.vector("x")                                    # config.floatX (float32), one axis of any size
M = T.matrix("M", dtype="float64", shape=(None, 3))  # any number of rows, three columns
print(x.type, M.type)

# Python's operators, NumPy's methods and the functions of `T` build expressions. Nothing is computed yet.
y = T.exp(-x ** 2) + 1
print("y =", sc.pprint(y))
centred = M - M.mean(axis=0)                         # broadcasting is NumPy's
assert centred.type == M.type

# `compile` turns an expression into a function of arrays. Kernels are made when shapes are first met, and kept.
f = sc.compile([x], y)
values = np.array([0.0, 1.0, 2.0], "float32")
np.testing.assert_allclose(f(values), np.exp(-values ** 2) + 1, rtol=1e-6)

# Several outputs: a list or a dict. For a quick look at a value, `eval`.
both = sc.compile([x], {"sum": x.sum(), "largest": x.max()})
assert both(values) == {"sum": 3.0, "largest": 2.0}
assert (x * 2).eval({x: values}).tolist() == [0, 2, 4]

# A shared variable is state: it keeps its value between calls, and functions that use it share it.
# `updates` give new values, all computed from the old ones and stored together after the call.
total = sc.shared(np.float32(0), name="total")
accumulate = sc.compile([x], total, updates=[(total, total + x.sum())])
assert accumulate(values) == 0                       # the output is computed from the old value
assert accumulate(values) == 3
assert total.get_value() == 6
total.set_value(np.float32(100))
assert accumulate(values) == 100

# Two updates swap two values: both read the old ones.
a, b = sc.shared(np.float32(1), name="a"), sc.shared(np.float32(2), name="b")
sc.compile([], updates=[(a, b), (b, a)])()
assert (a.get_value(), b.get_value()) == (2, 1)

# `givens` replace a part of an expression before compiling: here the input by state that is already there.
data = sc.shared(np.arange(6, dtype="float32"), name="data")
start = T.lscalar("start")
on_a_slice = sc.compile([start], y, givens={x: data[start:start + 2]})
np.testing.assert_allclose(on_a_slice(3), np.exp(-np.array([9.0, 16.0])) + 1, rtol=1e-6)

# Gradients are expressions too, so they can be compiled, printed, and differentiated again.
cost = (x ** 3).sum()
slope = sc.grad(cost, x)
curvature = sc.grad(slope.sum(), x)
both_of_them = sc.compile([x], [slope, curvature])
first, second = both_of_them(values)
np.testing.assert_allclose(first, 3 * values ** 2, rtol=1e-6)
np.testing.assert_allclose(second, 6 * values, rtol=1e-6)
print("slope =", sc.pprint(slope))

# All derivatives of every element by every element: the slopes of x³ stand on the diagonal, and so do the second ones of its sum.
matrices = sc.compile([x], [sc.jacobian(x ** 3, x), sc.hessian(cost, x)])
first, second = matrices(values)
np.testing.assert_allclose(first, np.diag(3 * values ** 2), rtol=1e-6)
np.testing.assert_allclose(second, np.diag(6 * values), rtol=1e-6)

# What is written is rewritten before it runs: this loss is stable although its formula overflows.
wide = T.dvector("wide")
loss = T.log(1 + T.exp(wide))                        # becomes softplus
assert np.isclose(sc.compile([wide], loss)([1000.0])[0], 1000)
assert np.isinf(sc.compile([wide], loss, mode="reference")([1000.0])[0])  # as written, without rewriting

# Look at a graph: as a tree; compiled, each line says what runs it. An error names your line and the sizes.
print()
sc.debugprint(f)
message = ""
try:
    T.ones((2, 3)) + T.ones((2, 4))
except sc.UserError as error:
    message = str(error)
print("\nas it should, a mistake is told where it is written:", message, sep="\n")
assert __file__.rsplit("/", 1)[-1] in message
