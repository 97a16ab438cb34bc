"""Train, report, show what was compiled, draw."""
from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from tqdm import tqdm

import symconv as sc

from .digits import Digits, load_digits, shifted
from .network import Network, make_network
from .pictures import save_predictions

BATCH = 32


def run_demo(epochs: int = 15, seed: int = 0, output: Path = Path(".")) -> float:
    """Run the demonstration; writes `demo_graph.svg` and `demo_digits.png` into `output` and returns the test accuracy."""
    output.mkdir(parents=True, exist_ok=True)
    digits = load_digits()
    print(f"{len(digits.train_labels)} digits to learn from, {len(digits.test_labels)} held out")
    network = make_network(seed)
    start = time.perf_counter()
    accuracy = fit(network, digits, epochs, seed)
    print(f"trained in {time.perf_counter() - start:.1f} s, compiling included")
    show(network, digits, output)
    print(f"test accuracy {100 * accuracy:.2f} %")
    return accuracy


def fit(network: Network, digits: Digits, epochs: int, seed: int) -> float:
    """Train with shifted images and a falling learning rate; the accuracy on the held-out digits at the end."""
    generator = np.random.default_rng(seed + 1)
    count = len(digits.train_labels)
    first_rate = float(network.learning_rate.get_value())
    test_accuracy = 0.0
    for epoch in range(epochs):
        network.learning_rate.set_value(np.float32(first_rate * (1 + np.cos(np.pi * epoch / epochs)) / 2))
        images, order = shifted(digits.train_images, generator), generator.permutation(count)
        losses = [float(network.train(images[chosen], digits.train_labels[chosen]))
                  for chosen in tqdm(np.split(order, range(BATCH, count, BATCH)), f"epoch {epoch + 1:2}/{epochs}", leave=False)]
        test_accuracy = float(np.mean(network.predict(digits.test_images) == digits.test_labels))
        print(f"epoch {epoch + 1:2}: loss {np.mean(losses):.4f}, test accuracy {100 * test_accuracy:.2f} %")
    return test_accuracy


def show(network: Network, digits: Digits, output: Path) -> None:
    """Print the compiled training function and the choice of its kernels; write the graph and some predictions."""
    print("\nthe compiled training step:")
    sc.debugprint(network.train)
    print("\nwhich kernel each convolution got:")
    print(network.train.explain())
    sc.draw(network.train, output / "demo_graph.svg")
    chosen = np.random.default_rng(0).choice(len(digits.test_labels), 40, replace=False)
    save_predictions(output / "demo_digits.png", digits.test_images[chosen], network.predict(digits.test_images[chosen]),
                     digits.test_labels[chosen])
    print(f"\nwrote {output / 'demo_graph.svg'} and {output / 'demo_digits.png'}")
