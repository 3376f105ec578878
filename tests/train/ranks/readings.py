"""Ways of reading on ranks that stand for two nodes: every image must arrive, or its node be named.

Arguments: the ways with commas between them, a folder of uncompressed files; then perhaps a scratch folder
for faulty ones.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from mpi4py import MPI

from hpclaunch.train.collective import AgreedError
from hpclaunch.train.data import image_sources
from hpclaunch.train.data.dataset import load_dataset

COMM = MPI.COMM_WORLD
SECOND_NODE = COMM.Get_rank() >= COMM.Get_size() // 2


def check_images(way: str, folder: Path) -> None:
    """Random wishes of all ranks are fulfilled, again and again; the test images are cut over the ranks."""
    expected = load_dataset("mnist", folder, log=lambda line: None)
    source = image_sources.open_source(way, "mnist", folder, COMM, lambda line: None)
    np.testing.assert_array_equal(source.train_labels, expected.train_labels)
    np.testing.assert_array_equal(source.test_images, expected.test_images[source.test_part])
    parts = COMM.allgather(range(50)[source.test_part])
    assert [place for part in parts for place in part] == list(range(50))
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(301)
        # The last rank wants nothing in the second round.
        bounds = [0, 10, 150, 301 if seed == 1 else 200, 301]
        wishes = [order[bounds[rank] : bounds[rank + 1]] for rank in range(4)]
        take = source.epoch(wishes.__getitem__)
        mine = wishes[COMM.Get_rank()]
        for places in (slice(0, 7), slice(3, len(mine)), slice(0, 0)):
            np.testing.assert_array_equal(take(places), expected.train_images[mine[places]])


def check_refusal(way: str, folder: Path, fault: str, scratch: Path) -> None:
    """The second node sees other files than the first."""
    own = scratch / f"second node, {way}, {fault}"
    if COMM.Get_rank() == 0:
        shutil.copytree(folder, own)
        images = own / "train-images-idx3-ubyte"
        content = images.read_bytes()
        if fault == "missing":
            images.unlink()
        else:
            images.write_bytes(content + b"\0" if fault == "longer" else content[:-1] + b"\xff")
    COMM.Barrier()
    true_check = image_sources._File.check

    def check(self: Any, *, content: bool) -> None:
        if SECOND_NODE:
            self.path = str(own / Path(self.path).name)
        true_check(self, content=content)

    with mock.patch.object(image_sources._File, "check", check):
        try:
            image_sources.open_source(way, "mnist", folder, COMM, lambda line: None)
        except AgreedError as agreed:
            message = agreed.error.message
        else:
            raise AssertionError("accepted")
    found = {
        "missing": "No such file",
        "longer": "bytes, another size than on rank 0",
        "other": "other images",
    }
    assert message.startswith(f"rank 2: {own / 'train-images-idx3-ubyte'} on {os.uname().nodename}: "), (
        message
    )
    assert found[fault] in message, message


if __name__ == "__main__":
    data = Path(sys.argv[2])
    NODE = COMM.Split(int(SECOND_NODE), COMM.Get_rank())
    # All ranks are on one machine; where they stand is divided by hand.
    with mock.patch.object(image_sources, "_node", return_value=NODE):
        for way in sys.argv[1].split(","):
            if COMM.Get_rank() == 0:
                print(way, flush=True)  # shown where it fails
            if len(sys.argv) > 3:
                for wrong in ("missing", "longer", "other"):
                    check_refusal(way, data, wrong, Path(sys.argv[3]))
            else:
                check_images(way, data)
