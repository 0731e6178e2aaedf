#!/usr/bin/env python3
"""Learns to read handwritten digits and writes down how well it does.

Reads digits.csv.gz beside this file; writes result.json and predictions.csv
there. Runs on plain CPUs within seconds.
"""
import csv
import gzip
import json
import os
import pathlib
import sys
import time

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

EPOCHS = 20
HERE = pathlib.Path(__file__).resolve().parent


def load(path):
    """Returns pixels scaled to 0..1, labels, and each row's number in the file."""
    with gzip.open(path, "rt", newline="") as f:
        rows = list(csv.reader(f))[1:]
    table = np.array(rows, dtype=np.int64)
    return table[:, 1:] / 16.0, table[:, 0], np.arange(1, len(table) + 1)


def replace(path, text):
    """Writes the file whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    os.replace(part, path)


def main():
    x, y, row = load(HERE / "digits.csv.gz")
    x_train, x_test, y_train, y_test, _, row_test = train_test_split(
        x, y, row, test_size=0.3, stratify=y, random_state=7)
    print(f"{len(y_train)} digits to learn from, {len(y_test)} to be tested on", flush=True)

    model = MLPClassifier(hidden_layer_sizes=(512, 256), batch_size=32, learning_rate_init=2e-4,
                          random_state=7)
    began = time.monotonic()
    for epoch in range(1, EPOCHS + 1):
        model.partial_fit(x_train, y_train, classes=np.arange(10))
        loss = log_loss(y_test, model.predict_proba(x_test), labels=np.arange(10))
        print(f"epoch {epoch:2d}/{EPOCHS}  loss {loss:.4f}  accuracy {model.score(x_test, y_test):.4f}", flush=True)
    seconds = time.monotonic() - began

    guess = model.predict(x_test)
    accuracy = float((guess == y_test).mean())
    lines = [f"{r},{t},{g}" for r, t, g in sorted(zip(row_test, y_test, guess))]
    replace(HERE / "predictions.csv", "\n".join(["row,label,guess", *lines]) + "\n")
    replace(HERE / "result.json", json.dumps({
        "accuracy": round(accuracy, 4),
        "tested": len(y_test),
        "epochs": EPOCHS,
        "seconds": round(seconds, 3),
        "python": sys.version.split()[0],
    }, indent=2) + "\n")
    print(f"accuracy {accuracy:.4f} after {seconds:.1f} s; wrote result.json", flush=True)


if __name__ == "__main__":
    main()
