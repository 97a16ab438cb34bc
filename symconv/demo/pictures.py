"""A sheet of digits with what the network takes them for."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_CELL, _COLUMNS, _SCALE = 76, 10, 2
_RIGHT, _WRONG = (20, 110, 60), (190, 30, 30)


def save_predictions(path: Path, images: Array, predictions: Array, labels: Array) -> None:
    """Write a PNG of the images (n, 1, 28, 28), each with its predicted class; in red with the true one where it is wrong."""
    from PIL import Image, ImageDraw, ImageFont

    rows = -(-len(images) // _COLUMNS)
    sheet = Image.new("RGB", (_COLUMNS * _CELL, rows * (_CELL + 18)), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(15)
    for number, (image, predicted, label) in enumerate(zip(images[:, 0], predictions, labels, strict=True)):
        left, top = number % _COLUMNS * _CELL + 10, number // _COLUMNS * (_CELL + 18) + 6
        tile = Image.fromarray((255 - 255 * image).astype(np.uint8)).resize((28 * _SCALE, 28 * _SCALE), Image.Resampling.NEAREST)
        sheet.paste(tile, (left, top))
        right = predicted == label
        text = f"{predicted}" if right else f"{predicted}, not {label}"
        draw.text((left, top + 28 * _SCALE + 2), text, _RIGHT if right else _WRONG, font)
    sheet.save(path)
