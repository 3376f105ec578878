"""Train a classifier of handwritten digits with Keras, on as many ranks as Horovod finds.

Run it with ``hpclaunch submit --framework horovod --tasks 2 -- python keras_mnist.py``, under TensorFlow 2.12
and Horovod 0.28.1. ``--data`` names the folder of MNIST's four files (``train-images-idx3-ubyte.gz`` and so
on); without it the digits are made up, so that it runs where there is no network.
"""

import argparse
import gzip
from pathlib import Path

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with MNIST's files; default: made-up digits")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64, help="images of one rank in one step")
    parser.add_argument("--lr", type=float, default=0.001, help="learning rate of one rank")
    parser.add_argument("--warmup-epochs", type=int, default=1, help="until the learning rate fits all ranks")
    parser.add_argument("--checkpoint", default="mnist.h5")
    return parser.parse_args()


def read_idx(path: Path, head: int) -> np.ndarray:
    """Read one of MNIST's files, compressed or not, behind its head of this many bytes."""
    raw = path.read_bytes() if path.exists() else gzip.decompress(Path(f"{path}.gz").read_bytes())
    return np.frombuffer(raw, np.uint8, offset=head)


def digits(folder: Path | None, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images (N, 28, 28, 1) in [0, 1] and their labels; ``kind`` is train or t10k."""
    if folder is None:
        shapes = np.random.default_rng(0).random((10, 28, 28), np.float32)
        random = np.random.default_rng(1 if kind == "train" else 2)
        labels = random.integers(0, 10, 4096 if kind == "train" else 1024)
        images = 0.5 * shapes[labels] + 0.5 * random.random((len(labels), 28, 28), np.float32)
    else:
        images = read_idx(folder / f"{kind}-images-idx3-ubyte", 16).reshape(-1, 28, 28) / np.float32(255)
        labels = read_idx(folder / f"{kind}-labels-idx1-ubyte", 8)
    return images[..., None], labels.astype(np.int64)


def network() -> tf.keras.Model:
    """Return a small convolutional network."""
    return tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(16, 5, strides=2, activation="relu", input_shape=(28, 28, 1)),
            tf.keras.layers.Conv2D(32, 5, strides=2, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(128, activation="relu"),
            tf.keras.layers.Dense(10, activation="softmax"),
        ]
    )


def main() -> None:
    """Train, and let rank 0 tell of it and keep the model."""
    args = options()
    hvd.init()
    # Where the launcher lets a rank see its own GPU only, that one is number 0.
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank() % len(gpus)], "GPU")

    # Each rank has its part of the images; all ranks must do the same number of steps.
    images, labels = digits(args.data, "train")
    steps = len(images) // hvd.size() // args.batch_size
    mine = slice(hvd.rank(), hvd.size() * steps * args.batch_size, hvd.size())
    train = tf.data.Dataset.from_tensor_slices((images[mine], labels[mine])).shuffle(10000)

    # All ranks' batch is this many times larger, and so may the learning rate be; the warm-up leads there.
    learning_rate = args.lr * hvd.size()
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(learning_rate))
    model = network()
    model.compile(optimizer, "sparse_categorical_crossentropy", ["accuracy"])

    callbacks = [
        # All ranks start from rank 0's weights.
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        # Before all callbacks that read a metric.
        hvd.callbacks.MetricAverageCallback(),
        hvd.callbacks.LearningRateWarmupCallback(
            initial_lr=learning_rate, warmup_epochs=args.warmup_epochs, verbose=hvd.rank() == 0
        ),
    ]
    if hvd.rank() == 0:  # the other ranks would write into the same file
        callbacks.append(tf.keras.callbacks.ModelCheckpoint(args.checkpoint))

    model.fit(
        train.batch(args.batch_size),
        epochs=args.epochs,
        callbacks=callbacks,
        validation_data=digits(args.data, "t10k"),
        verbose=2 if hvd.rank() == 0 else 0,
    )


if __name__ == "__main__":
    main()
