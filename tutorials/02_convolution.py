"""2. Convolution: kinds, sizes, gradients, pooling; then a net learns digits.  Run: python tutorials/02_convolution.py"""
import numpy as np

import symconv as sc
import symconv.tensor as T
from symconv.demo.digits import load_digits
from symconv.tensor import nnet

generator = np.random.default_rng(0)

# Layout: images (batch, channels, rows, columns), filters (filters, channels, rows, columns).
images, filters = T.tensor4("images"), T.tensor4("filters")
convolve = sc.compile([images, filters], nnet.conv2d(images, filters))
x = generator.normal(size=(10, 3, 32, 32)).astype("float32")
w = generator.normal(size=(16, 3, 3, 3)).astype("float32")
assert convolve(x, w).shape == (10, 16, 30, 30)

# `conv2d` is a true convolution: it flips the filters. An image of one point therefore gives back the filter itself.
point = np.zeros((1, 1, 3, 3))
point[0, 0, 1, 1] = 1
kernel = np.arange(9.0).reshape(1, 1, 3, 3)
full = nnet.conv2d(point, kernel, border_mode="full").eval()
assert np.array_equal(full[0, 0, 1:4, 1:4], kernel[0, 0])
unflipped = nnet.conv2d(point, kernel, border_mode="full", filter_flip=False).eval()
assert np.array_equal(unflipped[0, 0, 1:4, 1:4], kernel[0, 0, ::-1, ::-1])


# Padding is `border_mode`. With n the size of the image, k of the filter, p what is padded in all and s the stride, the result has
# (n + p - (k - 1)·dilation - 1) // s + 1 elements along an axis.
def size(n: int = 10, k: int = 3, **words: object) -> int:
    """The size of the result along one axis."""
    result = nnet.conv1d(np.zeros((1, 1, n)), np.zeros((1, 1, k)), **words)
    return result.type.shape[2]                      # shapes are known without running anything


assert size(border_mode="valid") == 10 - 3 + 1       # no padding
assert size(border_mode="full") == 10 + 3 - 1        # p = 2·(k - 1): every overlap
assert size(border_mode="half") == 10                # p = 2·(k // 2): the size is kept where k is odd …
assert size(border_mode="half", k=4) == 11           # … and one more where it is even
assert size(border_mode="same", k=4) == 10           # kept for every k; the odd zero goes behind
assert size(border_mode="same", subsample=3) == 4    # ⌈n / s⌉
assert size(border_mode="causal", filter_dilation=4) == 10  # all padding before: nothing looks ahead
assert size(border_mode=2) == 12                     # two zeros on each side
assert size(border_mode=[(0, 3)]) == 11              # zeros before and behind, for each axis

# Groups: channels and filters fall into groups that do not see each other. As many groups as channels: depthwise.
grouped = nnet.conv2d(np.ones((1, 4, 8, 8)), np.ones((6, 2, 3, 3)), num_groups=2)
assert grouped.type.shape == (1, 6, 6, 6)
assert grouped.eval()[0, 0, 0, 0] == 2 * 9           # two channels for each filter, not four
depthwise = nnet.depthwise_conv2d(np.ones((1, 4, 8, 8)), np.ones((4, 1, 3, 3)))
assert depthwise.eval()[0, 0, 0, 0] == 9

# The same operation in cuDNN's words, which do not flip unless told. The three kinds are one trilinear form:
# ⟨fprop(x, w), u⟩ = ⟨x, dgrad(u, w)⟩ = ⟨w, wgrad(x, u)⟩.
attributes = nnet.Conv_fprop_attributes().set_padding([1, 1]).set_stride([2, 2])
x, w = generator.normal(size=(2, 3, 9, 9)), generator.normal(size=(4, 3, 3, 3))
response = nnet.conv_fprop(x, w, attributes).eval()
u = generator.normal(size=response.shape)
data_gradient = nnet.conv_dgrad(u, w, padding=1, stride=2, image_shape=x.shape).eval()
weight_gradient = nnet.conv_wgrad(x, u, padding=1, stride=2, weight_shape=w.shape).eval()
inner = (response * u).sum()
np.testing.assert_allclose([(data_gradient * x).sum(), (weight_gradient * w).sum()], [inner, inner], rtol=1e-10)

# A transposed convolution goes from small to large: it is the data gradient, used forwards.
up = nnet.conv2d_transpose(np.ones((1, 4, 7, 7)), np.ones((4, 2, 3, 3)), border_mode=1, input_dilation=(2, 2), output_padding=1)
assert up.type.shape == (1, 2, 14, 14)

# Pooling. `ignore_border=True`, the default, leaves out windows that reach over the edge.
board = np.arange(25.0).reshape(1, 1, 5, 5)
assert nnet.max_pool_2d(board, 2).eval().tolist() == [[[[6, 8], [16, 18]]]]
assert nnet.max_pool_2d(board, 2, ignore_border=False).type.shape == (1, 1, 3, 3)
assert nnet.average_pool_2d(board, 5).eval().item() == 12
assert nnet.global_average_pool(board).eval().ravel().tolist() == [12]

# Now a net: two convolutions, one dense layer, momentum. Weights are state; one call of `train` is one step.
digits = load_digits()
pictures, labels = T.tensor4("pictures", shape=(None, 1, 28, 28)), T.lvector("labels")


def weights(name: str, *shape: int) -> sc.SharedVariable:
    """State with normal numbers that keep the size of a signal (He et al. 2015)."""
    fan_in = shape[0] if len(shape) == 2 else int(np.prod(shape[1:]))
    return sc.shared(generator.normal(0, np.sqrt(2 / fan_in), shape).astype("float32"), name)


W1, W2, W3 = weights("W1", 8, 1, 3, 3), weights("W2", 16, 8, 3, 3), weights("W3", 16 * 49, 10)
b1, b2, b3 = (sc.shared(np.zeros(n, "float32"), name) for n, name in ((8, "b1"), (16, "b2"), (10, "b3")))
h = nnet.max_pool_2d(nnet.relu(nnet.conv2d(pictures, W1, border_mode="half") + b1.dimshuffle("x", 0, "x", "x")), 2)
h = nnet.max_pool_2d(nnet.relu(nnet.conv2d(h, W2, border_mode="half") + b2.dimshuffle("x", 0, "x", "x")), 2)
scores = T.dot(h.flatten(2), W3) + b3
loss = nnet.softmax_cross_entropy(scores, labels).mean()

parameters = [W1, b1, W2, b2, W3, b3]
updates = []
for parameter, gradient in zip(parameters, sc.grad(loss, parameters), strict=True):
    velocity = sc.shared(np.zeros_like(parameter.get_value()), f"velocity_{parameter.name}")
    step = 0.9 * velocity - 0.05 * gradient
    updates += [(velocity, step), (parameter, parameter + step)]
train = sc.compile([pictures, labels], loss, updates=updates, name="train")
predict = sc.compile([pictures], scores.argmax(axis=1), name="predict")

order = generator.permutation(len(digits.train_labels))
for number, chosen in enumerate(np.split(order, range(50, len(order), 50))):
    value = train(digits.train_images[chosen], digits.train_labels[chosen])
    if number % 20 == 0:
        print(f"step {number:2}: loss {value:.3f}")
accuracy = np.mean(predict(digits.test_images) == digits.test_labels)
print(f"after one epoch {100 * accuracy:.1f} % of the held-out digits are right")
assert accuracy > 0.8

# Which kernel ran each convolution, why, and what was fused into it:
print(train.explain("Conv"))
