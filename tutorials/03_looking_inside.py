"""3. Looking inside: what was compiled, why, what it costs, what is wrong.  Run: python tutorials/03_looking_inside.py

The network is that of `python -m symconv demo` (symconv/demo/network.py): two convolutions, two poolings, two dense layers.
"""
import json
import tempfile
from pathlib import Path

import numpy as np

import symconv as sc
import symconv.tensor as T
from symconv.demo.digits import load_digits
from symconv.demo.network import make_parameters, scores
from symconv.tensor import nnet

parameters = make_parameters(np.random.default_rng(0))
images, labels = T.tensor4("images", shape=(None, 1, 28, 28)), T.lvector("labels")
logits = scores(images, parameters)
loss = nnet.softmax_cross_entropy(logits, labels).mean()
updates = sc.optimizers.sgd(loss, parameters, learning_rate=0.05)
digits = load_digits()
x, y = digits.train_images[:16], digits.train_labels[:16]


def show(title, text, most=12):
    """Print the first lines of a text."""
    lines = str(text).split("\n")
    print(f"\n== {title}", *lines[:most], *([f"… {len(lines) - most} lines more"] if len(lines) > most else []), sep="\n")


# What you wrote, before compiling: a tree, and as mathematics.
show("as written", sc.debugprint(loss, file="str", depth=5))
show("as mathematics", sc.pprint(logits))

# What runs, after: each line an operation, its type, how images lie in memory, the step and the kernel that runs it, and, since it
# is profiled, its time for each call, GFLOP/s and share of all time.  print_memory=True says where every result lies.
train = sc.compile([images, labels], loss, updates=updates, profile=True, name="train")
first = train(x, y)
train(x, y)
show("as compiled", sc.debugprint(train, file="str", depth=7))
show("where results lie", sc.debugprint(train, file="str", depth=4, print_memory=True), 6)

# Why: for every convolution its problem in one line, the candidates with expected times or the reason why they refused, what was
# fused into it and what was not, how exact it is, your line.
report = train.explain("Conv")
show("why, for the convolutions", report, 24)
assert "fprop n16 c1 h28 w28 k20 r3 s3 p1 flip f32" in report
# All of it: layouts and what conversions cost, the memory plan, copies in and out, what the bits depend on.  Data: format="dict".
show("why, the rest", train.explain().partition("\nrewriting")[2], 30)
memory = train.explain(format="dict")["memory"]
assert memory["arena_bytes"] >= memory["lower_bound_bytes"]

# Every rewrite that was applied: phase, rule, both sides, and the lines of yours that it touched.
show("rewrites", train.rewrites, 5)
assert {"phase", "rule", "before", "after", "sources"} <= set(dir(train.rewrites[0]))
# The rewrites alone, on any expression; phases and rules are chosen by name.
v = T.vector("v")
show("a rewritten expression", sc.pprint(sc.rewrite_graph(T.log(1 + T.exp(v)))))
assert sc.pprint(sc.rewrite_graph(T.log(1 + T.exp(v)), exclude="stabilize")) == "log(1.0 + exp(v))"

# The generated code, by kernel.
name, source = next((name, text) for name, text in train.sources().items() if name.endswith("bias_relu"))
show(f"the source of {name}", source, 8)

# What it costs: where the time of a call goes, by operation, by your line, step by step with the part of what the machine could do.
show("profile", train.profile, 26)
with tempfile.TemporaryDirectory() as folder:
    train.profile.to_trace(Path(folder) / "trace.json")      # for https://ui.perfetto.dev
    events = json.loads((Path(folder) / "trace.json").read_text())["traceEvents"]
assert sum(event["name"] == "Conv fprop" for event in events) == 4

# The graph for other programs: networkx, JSON, DOT; and drawn (Graphviz where it is installed, else by symconv itself).
graph = sc.to_networkx(train)
assert "conv" in " ".join(attributes["implementation"] for _, attributes in graph.nodes(data=True))
with tempfile.TemporaryDirectory() as folder:
    assert "<svg" in sc.draw(train, Path(folder) / "train.svg").read_text(encoding="utf-8")

# All of it in one page without network: a slider through the phases of compilation, search, each node's candidates and source, the
# arena over time.  Name scopes group what belongs together.
with sc.name_scope("scaled"), sc.name_scope("loss"):
    scaled = loss * 0.5
assert scaled.scopes == ("scaled/loss",)
show("name scopes", sc.debugprint(scaled, file="str", depth=1, print_scope=True))
with tempfile.TemporaryDirectory() as folder:
    page = sc.to_html(train, Path(folder) / "train.html").read_text(encoding="utf-8")
assert "Content-Security-Policy" in page

# Is the compiler right? mode="debug" computes both sides of every rewrite and every kernel's reference on your own arguments, and
# guards memory around each result. It is slow, and finds what is wrong by name; here nothing is.
checked = sc.compile([images, labels], loss, mode="debug")
assert np.isfinite(checked(x[:2], y[:2]))

# Are the numbers right? mode="nan_guard" stops where the first NaN, infinity or huge value appears, and says in which operation.
guarded = sc.compile([v], T.log(v) * 2, mode="nan_guard")
assert guarded(np.ones(3, "float32")).sum() == 0
try:
    guarded(np.array([1.0, -1.0], "float32"))
    message = ""
except sc.errors.NumericalError as error:
    message = str(error)
show("the first NaN", message)
assert "NaN at [1]" in message

# Values and conditions of your own, looked at when the function runs: Print shows, Assert stops before any state has changed.
watched = sc.compile([v], sc.Print("v", attrs=("min", "max"))(sc.Assert("v must be positive")(v, v > 0)) + 1)
watched(np.float32([1, 5]))
try:
    watched(np.float32([1, -1]))
    message = ""
except sc.errors.AssertionFailedError as error:
    message = str(error)
show("an assertion that failed", message)
assert "v must be positive" in message

# An error when a function runs shows the operation, its inputs with shapes and strides, and your line; with
# config.exception_verbosity = "high" the expression too.
rows, index = T.matrix("rows"), T.lvector("index")
picked = sc.compile([rows, index], rows[index])
try:
    picked(np.zeros((3, 2), "float32"), np.array([5]))
    message = ""
except IndexError as error:
    message = str(error)
show("an index that is not there", message)
assert "float32, shape (3, 2), strides (8, 4) bytes" in message

# Does every step read what it is meant to? The memory plan, gone through byte by byte.
print(sc.check_memory(train))

# Which rewrite changes an answer? `python -m symconv bisect script.py` halves the rewrites until one is left; the script has to
# fail (an assert is enough) when its answer is wrong.  SYMCONV_DEBUG=1 to 4 logs stages, rewrites, selection, sources.

# The same expression as CUDA, run on this processor thread by thread: every access to memory is watched, races are found.
small = T.tensor4("small", shape=(None, 1, 12, 12))
pooled = nnet.max_pool_2d(nnet.relu(nnet.conv2d(small, parameters[0])), (2, 2)).sum(axis=(1, 2, 3))
patches = np.ascontiguousarray(x[:2, :, 8:20, 8:20])
on_emulator, on_cpu = (sc.compile([small], pooled, device=device)(patches) for device in ("emulator", "cpu"))
np.testing.assert_allclose(on_emulator, on_cpu, rtol=1e-4)

# A function and its state as a file that holds nothing to run; loading compiles again, from the kernel cache.
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "train.symconv"
    train.save(file)
    again = sc.load(file)
assert again(x, y) == train(x, y)
assert train(x, y) < first
print("done; python -m symconv doctor tells what this machine has")
