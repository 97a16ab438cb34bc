"""3. Looking inside: what was compiled, why, what it costs, what is wrong.  Run: python tutorials/03_looking_inside.py"""
import tempfile
from pathlib import Path

import numpy as np

import symconv as sc
import symconv.tensor as T
from symconv.tensor import nnet

generator = np.random.default_rng(0)
images, labels = T.tensor4("images", shape=(None, 1, 12, 12)), T.lvector("labels")
filters = sc.shared(generator.normal(0, 0.3, (4, 1, 3, 3)).astype("float32"), name="filters")
weights = sc.shared(generator.normal(0, 0.1, (4 * 25, 3)).astype("float32"), name="weights")
hidden = nnet.max_pool_2d(T.tanh(nnet.conv2d(images, filters)), (2, 2))
loss = nnet.softmax_cross_entropy(T.dot(hidden.flatten(2), weights), labels).mean()
parameters = [filters, weights]
updates = [(each, each - 0.1 * gradient) for each, gradient in zip(parameters, sc.grad(loss, parameters), strict=True)]
x = generator.normal(size=(16, 1, 12, 12)).astype("float32")
y = generator.integers(0, 3, 16)

# What you wrote, before compiling; and what runs, after: each line an operation, its type, and the kernel that runs it.
assert "Conv{fprop" in sc.debugprint(loss, file="str")
train = sc.compile([images, labels], loss, updates=updates, profile=True, name="train")
first = train(x, y)
print(sc.debugprint(train, file="str", depth=4))

# Why: for every convolution its problem in one line, the candidates with expected times, what was fused into it, your line.
report = train.explain("Conv")
print(report)
assert "fprop n16 c1 h12 w12 k4 r3 s3 flip f32 +tanh" in report

# Every rewrite that was applied: the rule, both sides, and the lines of yours that it touched.
for application in train.rewrites.applications[:3]:
    print(application)

# What it costs, step by step (compiled with profile=True).
train(x, y)
print(train.profile)

# Is the compiler right? mode="debug" computes both sides of every rewrite and every kernel's reference on your own arguments, and
# guards memory around each result. It is slow, and finds what is wrong by name; here nothing is.
checked = sc.compile([images, labels], loss, mode="debug")
assert np.isfinite(checked(x, y))

# Are the numbers right? mode="nan_guard" stops where the first NaN, infinity or huge value appears, and says in which operation.
v = T.vector("v")
guarded = sc.compile([v], T.log(v) * 2, mode="nan_guard")
assert guarded(np.ones(3, "float32")).sum() == 0
try:
    guarded(np.array([1.0, -1.0], "float32"))
    message = ""
except sc.errors.NumericalError as error:
    message = str(error)
print(message)
assert "NaN at [1]" in message

# Values and conditions of your own, looked at when the function runs: Print shows, Assert stops before any state has changed.
watched = sc.compile([v], sc.Print("v", attrs=("min", "max"))(sc.Assert("v must be positive")(v, v > 0)) + 1)
watched(np.float32([1, 5]))
try:
    watched(np.float32([1, -1]))
    message = ""
except sc.errors.AssertionFailedError as error:
    message = str(error)
print(message)
assert "v must be positive" in message

# Does every step read what it is meant to? The memory plan, gone through byte by byte.
print(sc.check_memory(train))

# Which rewrite changes an answer? `python -m symconv bisect script.py` halves the rewrites until one is left; the script has to
# fail (an assert is enough) when its answer is wrong.

# The same expression as CUDA, run on this processor thread by thread: every access to memory is watched, races are found.
on_emulator = sc.compile([images, labels], loss, device="emulator")
on_cpu = sc.compile([images, labels], loss)
assert abs(float(on_emulator(x[:4], y[:4])) - float(on_cpu(x[:4], y[:4]))) < 1e-5

# A function and its state as a file that holds nothing to run; loading compiles again, from the kernel cache.
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "train.symconv"
    train.save(file)
    again = sc.load(file)
assert again(x, y) == train(x, y)
assert train(x, y) < first
print("done; python -m symconv doctor tells what this machine has")
