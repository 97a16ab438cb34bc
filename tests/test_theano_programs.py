"""Small programs as Theano's users write them, whole: they compile, and learn."""
from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import symconv as sc
import symconv.tensor as T
from symconv.demo.digits import load_digits
from symconv.tensor.nnet import conv2d
from symconv.tensor.nnet.abstract_conv import conv2d_grad_wrt_inputs, conv2d_transpose
from symconv.tensor.shared_randomstreams import RandomStreams
from symconv.tensor.signal import pool


@pytest.fixture
def rng():
    return np.random.RandomState(0)


def parameter(rng, *shape, name=None):
    return sc.shared((rng.randn(*shape) / np.sqrt(np.prod(shape[1:]))).astype(sc.config.floatX), name=name, borrow=True)


def first_and_last(step, n):
    costs = [float(step()) for _ in range(n)]
    return costs[0], costs[-1]


def test_logistic_regression_on_slices_of_shared_data(rng):
    data = rng.randn(120, 8)
    train_x = sc.shared(np.asarray(data, dtype=sc.config.floatX), borrow=True)
    train_y = T.cast(sc.shared(np.asarray((data @ rng.randn(8, 3)).argmax(1), dtype=sc.config.floatX), borrow=True), "int32")
    index, x, y = T.lscalar(), T.matrix("x"), T.ivector("y")
    W, b = sc.shared(np.zeros((8, 3), sc.config.floatX), "W"), sc.shared(np.zeros((3,), sc.config.floatX), "b")
    p_y_given_x = T.nnet.softmax(T.dot(x, W) + b)
    cost = -T.mean(T.log(p_y_given_x)[T.arange(y.shape[0]), y])
    givens = {x: train_x[index * 60:(index + 1) * 60], y: train_y[index * 60:(index + 1) * 60]}
    updates = [(W, W - 0.5 * T.grad(cost=cost, wrt=W)), (b, b - 0.5 * T.grad(cost=cost, wrt=b))]
    train = sc.function(inputs=[index], outputs=cost, updates=updates, givens=givens)
    errors = sc.function(inputs=[index], outputs=T.mean(T.neq(T.argmax(p_y_given_x, axis=1), y)), givens=givens)
    before, after = first_and_last(lambda: (train(0), train(1))[0], 60)
    assert before == pytest.approx(np.log(3), rel=1e-6)
    assert after < before / 3
    assert max(errors(0), errors(1)) < 0.1


def test_lenet(rng):
    digits = load_digits()
    index, x, y = T.lscalar(), T.matrix("x"), T.ivector("y")
    train_x = sc.shared(digits.train_images[:100].reshape(100, 784), borrow=True)
    train_y = sc.shared(digits.train_labels[:100].astype("int32"))
    W1, W2, V = parameter(rng, 4, 1, 5, 5), parameter(rng, 6, 4, 5, 5), parameter(rng, 96, 10)
    b1, b2 = (sc.shared(np.zeros((n,), sc.config.floatX), broadcastable=(False,)) for n in (4, 6))
    out = x.reshape((50, 1, 28, 28))
    for W, b, image_shape, filter_shape in ((W1, b1, (50, 1, 28, 28), (4, 1, 5, 5)), (W2, b2, (50, 4, 12, 12), (6, 4, 5, 5))):
        out = conv2d(input=out, filters=W, filter_shape=filter_shape, input_shape=image_shape)
        out = T.tanh(pool.pool_2d(input=out, ws=(2, 2), ignore_border=True) + b.dimshuffle("x", 0, "x", "x"))
    cost = T.nnet.categorical_crossentropy(T.nnet.softmax(T.dot(out.flatten(2), V)), y).mean()
    params = [W1, b1, W2, b2, V]
    updates = [(p, p - 0.1 * g) for p, g in zip(params, T.grad(cost, params), strict=True)]
    train = sc.function([index], cost, updates=updates,
                        givens={x: train_x[index * 50:(index + 1) * 50], y: train_y[index * 50:(index + 1) * 50]})
    before, after = first_and_last(lambda: (train(0), train(1))[0], 15)
    assert after < before / 2


def test_denoising_autoencoder_of_transposed_convolutions(rng):
    x = T.ftensor4("x")
    noisy = x * RandomStreams(seed=234).binomial(size=x.shape, n=1, p=0.8, dtype=sc.config.floatX)
    W1, W2, V1, V2 = (parameter(rng, *shape) for shape in ((4, 1, 3, 3), (8, 4, 3, 3), (8, 4, 3, 3), (4, 1, 3, 3)))
    h = T.nnet.relu(conv2d(noisy, W1, border_mode="half", subsample=(2, 2)))
    h = T.nnet.relu(conv2d(h, W2, border_mode="half", subsample=(2, 2)), alpha=0.1)
    h = T.nnet.elu(conv2d_transpose(h, V1, output_shape=(None, 4, 8, 8), border_mode="half", input_dilation=(2, 2)))
    code = conv2d_grad_wrt_inputs(h, V2, input_shape=(None, 1, 16, 16), border_mode="half", subsample=(2, 2))
    cost = T.nnet.binary_crossentropy(T.nnet.sigmoid(code), x).mean()
    updates = OrderedDict()
    params = [W1, W2, V1, V2]
    for param, gradient in zip(params, sc.grad(cost, params), strict=True):
        square = sc.shared(param.get_value() * 0.0, broadcastable=param.broadcastable)
        updates[square] = 0.9 * square + 0.1 * gradient ** 2
        updates[param] = param - 0.01 * gradient / T.sqrt(updates[square] + 1e-6)
    train = sc.function([x], cost, updates=updates, allow_input_downcast=True)
    images = load_digits().train_images[:16, :, 6:22, 6:22].astype("float64")
    before, after = first_and_last(lambda: train(images), 40)
    assert after < before / 1.5


def test_stack_of_dilated_causal_convolutions(rng):
    x = T.tensor3("x")
    params = [parameter(rng, 8, 1, 2)]
    h, skip = T.nnet.causal_conv1d(x, params[0], filter_shape=(8, 1, 2)), 0
    for dilation in (1, 2, 4):
        gate, signal, residual, out = (parameter(rng, 8, 8, size) for size in (2, 2, 1, 1))
        params += [gate, signal, out] if dilation == 4 else [gate, signal, residual, out]
        z = [T.nnet.causal_conv1d(h, w, filter_shape=(8, 8, 2), filter_dilation=dilation) for w in (signal, gate)]
        z = T.tanh(z[0]) * T.nnet.sigmoid(z[1])
        h, skip = h + T.nnet.conv1d(z, residual), skip + T.nnet.conv1d(z, out)
    params.append(parameter(rng, 1, 8, 1))
    predicted = T.nnet.conv1d(T.nnet.relu(skip), params[-1])
    cost = T.sqr(predicted[:, :, :-1] - x[:, :, 1:]).mean()
    updates = [(p, p - 0.05 * T.clip(g, -1, 1)) for p, g in zip(params, T.grad(cost, params), strict=True)]
    wave = np.sin(np.linspace(0, 20, 100)).astype(sc.config.floatX).reshape(1, 1, 100)
    train = sc.function([x], cost, updates=updates)
    before, after = first_and_last(lambda: train(wave), 60)
    assert after < before / 4
    predict = sc.function([x], predicted)
    later = wave.copy()
    later[:, :, 50:] = 9
    np.testing.assert_allclose(predict(later)[:, :, :50], predict(wave)[:, :, :50], rtol=1e-5, atol=1e-6)


def test_unrolled_lstm_with_masks_and_clipped_gradients(rng):
    steps, n, features = 4, 6, 3
    x, y, mask = T.tensor3("x"), T.matrix("y"), T.matrix("mask")
    W, U, V = parameter(rng, features, 4 * n), parameter(rng, n, 4 * n), parameter(rng, n, 1)
    b = sc.shared(np.zeros((4 * n,), sc.config.floatX), "b")
    h = T.alloc(np.asarray(0.0, sc.config.floatX), x.shape[1], n)
    c = T.zeros_like(h)
    for t in range(steps):
        z = T.dot(x[t], W) + T.dot(h, U) + b
        i, f, o, g = [z[:, k * n:(k + 1) * n] for k in range(4)]
        next_c = T.nnet.sigmoid(f) * c + T.nnet.hard_sigmoid(i) * T.tanh(g)
        m = mask[t].dimshuffle(0, "x")
        c, h = T.switch(m, next_c, c), T.switch(m, T.nnet.sigmoid(o) * T.tanh(next_c), h)
    cost = ((T.dot(h, V) - y) ** 2).mean()
    params = [W, U, V, b]
    gradients = T.grad(cost, params)
    norm = T.sqrt(sum(T.sum(g ** 2) for g in gradients))
    gradients = [T.switch(T.ge(norm, 1.0), g / norm, g) for g in gradients]
    train = sc.function([x, y, mask], cost, updates=[(p, p - np.float32(0.3) * g) for p, g in zip(params, gradients, strict=True)])
    inputs = rng.randn(steps, 16, features).astype(sc.config.floatX)
    kept = np.ones((steps, 16), sc.config.floatX)
    kept[2:, 8:] = 0
    wanted = (inputs * kept[:, :, None]).sum((0, 2))[:, None] / 5
    before, after = first_and_last(lambda: train(inputs, wanted, kept), 150)
    assert after < before / 4
    predict = sc.function([x, mask], T.dot(h, V))
    other = inputs.copy()
    other[2:, 8:] = 7  # masked steps
    np.testing.assert_array_equal(predict(other, kept), predict(inputs, kept))


def test_restricted_boltzmann_machine_with_a_persistent_chain(rng):
    visible, hidden, stream, floatX = 16, 8, RandomStreams(rng.randint(2 ** 30)), sc.config.floatX
    W = sc.shared(np.asarray(rng.uniform(-0.3, 0.3, (visible, hidden)), dtype=floatX), borrow=True)
    hbias, vbias = (sc.shared(np.zeros(n, floatX), borrow=True) for n in (hidden, visible))

    def energy(v):
        return -T.sum(T.log(1 + T.exp(T.dot(v, W) + hbias)), axis=1) - T.dot(v, vbias)

    def draw(mean):
        return stream.binomial(size=mean.shape, n=1, p=mean, dtype=floatX)

    x, index = T.matrix("x"), T.lscalar()
    chain = h = sc.shared(np.zeros((20, hidden), floatX))
    for _ in range(3):
        end = draw(T.nnet.sigmoid(T.dot(h, W.T) + vbias))
        h = draw(T.nnet.sigmoid(T.dot(end, W) + hbias))
    cost, params = T.mean(energy(x)) - T.mean(energy(end)), [W, hbias, vbias]
    gradients = T.grad(cost, params, consider_constant=[end])
    updates = OrderedDict((p, p - g * T.cast(0.1, floatX)) for p, g in zip(params, gradients, strict=True))
    bit = sc.shared(value=0, name="bit")
    flipped = T.set_subtensor(x[:, bit], 1 - x[:, bit])
    likelihood = T.mean(visible * T.log(T.nnet.sigmoid(energy(flipped) - energy(x))))
    updates[chain], updates[bit] = h, (bit + 1) % visible
    patterns = np.repeat(rng.randint(0, 2, (4, visible)), 20, 0)[rng.permutation(80)]
    data = sc.shared(np.asarray(patterns, dtype=floatX), borrow=True)
    train = sc.function([index], likelihood, updates=updates, givens={x: data[index * 20:(index + 1) * 20]})
    epochs = [np.mean([train(batch) for batch in range(4)]) for _ in range(60)]
    assert np.mean(epochs[:4]) < -8
    assert np.mean(epochs[-4:]) > -5
    assert bit.get_value() == 240 % visible


class TiedAutoencoder:
    """Makes what it is not given, as layers of tutorials do."""

    def __init__(self, rng, x, n, W=None, bias=None):
        self.W = W or parameter(rng, 12, n)
        if not bias:
            bias = sc.shared(np.zeros(n, sc.config.floatX))
        self.bias, self.back = bias, sc.shared(np.zeros(12, sc.config.floatX))
        self.x, self.params = x, [self.W, self.bias, self.back]

    def cost(self, stream, corruption):
        kept = stream.binomial(size=self.x.shape, n=1, p=1 - corruption, dtype=sc.config.floatX)
        code = T.nnet.sigmoid(T.dot(kept * self.x, self.W) + self.bias)
        z = T.nnet.sigmoid(T.dot(code, self.W.T) + self.back)
        return T.mean(-T.sum(self.x * T.log(z) + (1 - self.x) * T.log(1 - z), axis=1))


def test_denoising_autoencoder_with_tied_weights_and_default_arguments(rng):
    x, corruption, rate = T.matrix("x"), T.scalar("corruption"), T.scalar("rate")
    W, bias = parameter(rng, 12, 8), sc.shared(np.zeros(8, sc.config.floatX))
    model = TiedAutoencoder(rng, x, 8, W, bias)
    assert (model.W, model.bias) == (W, bias)
    cost = model.cost(RandomStreams(9), corruption)
    updates = [(p, p - rate * g) for p, g in zip(model.params, T.grad(cost, model.params), strict=True)]
    train = sc.function([x, sc.In(corruption, value=0.2), sc.In(rate, value=0.5)], cost, updates=updates)
    images = np.repeat(np.eye(4, dtype="float32"), 3, axis=1)
    before, after = first_and_last(lambda: train(images, corruption=0.1), 300)
    assert after < before / 2
    still = train.copy(delete_updates=True)
    value = W.get_value()
    still(images)
    np.testing.assert_array_equal(W.get_value(), value)


def test_running_statistics_kept_through_clones(rng):
    """Training moves them, though no update names them; what predicts only reads them."""
    x, t = T.tensor4("x"), T.ivector("t")
    W, V = parameter(rng, 4, 1, 3, 3), parameter(rng, 4 * 36, 3)
    mean, inv_std = sc.shared(np.zeros(4, "float32"), "mean"), sc.shared(np.ones(4, "float32"), "inv_std")
    y = conv2d(x, W, border_mode="half")
    seen, seen_inv_std = y.mean((0, 2, 3)), T.inv(T.sqrt(y.var((0, 2, 3)) + 1e-4))
    running, running_inv_std = sc.clone(mean, share_inputs=False), sc.clone(inv_std, share_inputs=False)
    running.default_update = 0.5 * running + 0.5 * seen
    running_inv_std.default_update = 0.5 * running_inv_std + 0.5 * seen_inv_std
    outputs = []
    for m, s in ((seen + 0 * running, seen_inv_std + 0 * running_inv_std), (mean, inv_std)):
        h = T.nnet.relu((y - m.dimshuffle("x", 0, "x", "x")) * s.dimshuffle("x", 0, "x", "x"))
        h = pool.pool_2d(h, ws=(2, 2), stride=(2, 2), ignore_border=True)
        outputs.append(T.nnet.softmax(T.dot(h.flatten(2), V)))
    loss = T.nnet.categorical_crossentropy(outputs[0], t).mean()
    updates = OrderedDict()
    for p, g in zip((W, V), sc.grad(loss, [W, V]), strict=True):
        velocity = sc.shared(np.zeros_like(p.get_value(borrow=True)), broadcastable=p.broadcastable)
        updates[velocity] = 0.9 * velocity - 0.02 * g
        updates[p] = p + 0.9 * updates[velocity] - 0.02 * g
    train = sc.function([x, t], loss, updates=updates)
    accuracy = sc.function([x, t], T.mean(T.eq(T.argmax(outputs[1], axis=1), t), dtype=sc.config.floatX))
    images = rng.rand(24, 1, 12, 12).astype("float32")
    labels = images[:, 0].reshape(24, 3, 48).sum(2).argmax(1).astype("int32")
    wanted, values = sc.function([x], seen), np.zeros(4)
    for _ in range(40):
        values = 0.5 * values + 0.5 * wanted(images)
        train(images, labels)
    np.testing.assert_allclose(mean.get_value(), values, rtol=1e-4, atol=1e-6)
    assert accuracy(images, labels) > 0.9
    np.testing.assert_allclose(mean.get_value(), values, rtol=1e-4, atol=1e-6)


def test_conditional_generator_and_discriminator(rng):
    x, z, y = T.tensor4(), T.matrix(), T.matrix()
    planes = y.dimshuffle(0, 1, "x", "x")

    def beside(images):
        return T.concatenate([images, planes * T.ones((images.shape[0], y.shape[1], images.shape[2], images.shape[3]))], axis=1)

    def enlarged(images, w):
        sizes = (None, w.get_value().shape[1], images.shape[2] * 2, images.shape[3] * 2)
        return conv2d_grad_wrt_inputs(images, w, input_shape=sizes, border_mode=(2, 2), subsample=(2, 2))

    makers = [parameter(rng, *shape) for shape in ((9, 128), (11, 4, 5, 5), (7, 1, 5, 5))]
    judges = [parameter(rng, *shape) for shape in ((4, 4, 5, 5), (8 * 16 // 2 + 3, 1))]

    def made():
        h = T.nnet.relu(T.dot(T.concatenate([z, y], axis=1), makers[0])).reshape((z.shape[0], 8, 4, 4))
        return T.nnet.sigmoid(enlarged(beside(T.nnet.relu(enlarged(beside(h), makers[1]))), makers[2]))

    def judged(images):
        h = T.nnet.relu(conv2d(beside(images), judges[0], subsample=(4, 4), border_mode=(2, 2)), 0.2)
        return T.nnet.sigmoid(T.dot(T.concatenate([T.flatten(h, 2), y], axis=1), judges[1]))

    real, false = judged(x), judged(made())
    bce = T.nnet.binary_crossentropy
    judge_cost = bce(real, T.ones(real.shape)).mean() + bce(false, T.zeros(false.shape)).mean()
    maker_cost = bce(false, T.ones(false.shape)).mean()
    steps = [sc.function([x, z, y], cost, updates=[(p, p - 0.05 * g) for p, g in zip(ps, T.grad(cost, ps), strict=True)],
                         on_unused_input="ignore") for cost, ps in ((judge_cost, judges), (maker_cost, makers))]
    images = np.tile(rng.rand(1, 1, 16, 16), (8, 1, 1, 1)).astype("float32")
    labels, noise = np.eye(3, dtype="float32")[rng.randint(0, 3, 8)], rng.uniform(-1, 1, (8, 6)).astype("float32")
    assert sc.function([z, y], made())(noise, labels).shape == (8, 1, 16, 16)
    before, after = first_and_last(lambda: steps[0](images, noise, labels), 40)
    assert after < before / 1.5
    before, after = first_and_last(lambda: steps[1](images, noise, labels), 40)
    assert after < before / 1.5
