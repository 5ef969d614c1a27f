#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Distributed SGD on torch, as the tutorials have it: the network of `tutti train`, digits drawn here or MNIST's files,
gradients averaged by one all_reduce for each parameter, or by DistributedDataParallel. Prints the mean loss of every
epoch. It knows nothing of a backend but its name: a program of its kind runs with `tutti` as it ran with `gloo`."""
import argparse
import importlib
import math
import os
import pathlib
import random
import struct

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn

SEED = 1234


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        x = F.relu(self.fc1(x.view(-1, 320)))
        return F.log_softmax(self.fc2(x), dim=1)


class Partition:
    """A rank's part of a data set, by indices."""

    def __init__(self, data, indices):
        self.data, self.indices = data, indices

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, index):
        return self.data[self.indices[index]]


class DataPartitioner:
    """Shuffles all indices by a seed and cuts them into shares."""

    def __init__(self, data, shares, seed=SEED):
        self.data = data
        indices = list(range(len(data)))
        random.Random(seed).shuffle(indices)
        self.partitions = []
        for share in shares:
            length = int(share * len(data))
            self.partitions.append(indices[:length])
            indices = indices[length:]

    def use(self, part):
        return Partition(self.data, self.partitions[part])


STROKES = {  # of each digit, in a box from 0 to 1: lines through points
    0: [[(.5 + .32 * math.cos(a), .5 + .47 * math.sin(a)) for a in [i * math.pi / 6 for i in range(13)]]],
    1: [[(.3, .22), (.55, .03), (.55, .97)]],
    2: [[(.18, .27), (.3, .06), (.5, .02), (.72, .07), (.82, .27), (.75, .42), (.15, .96), (.85, .96)]],
    3: [[(.2, .1), (.5, .03), (.78, .25), (.5, .48)], [(.5, .48), (.83, .72), (.5, .97), (.17, .88)]],
    4: [[(.6, .03), (.12, .65), (.9, .65)], [(.66, .35), (.66, .98)]],
    5: [[(.8, .04), (.25, .04), (.22, .45), (.55, .4), (.79, .68), (.5, .96), (.18, .88)]],
    6: [[(.68, .03), (.3, .4), (.2, .7), (.5, .96), (.8, .7), (.5, .45), (.22, .62)]],
    7: [[(.14, .05), (.86, .05), (.4, .97)]],
    8: [[(.5, .05), (.75, .27), (.5, .49), (.25, .27), (.5, .05)], [(.5, .49), (.81, .73), (.5, .97), (.19, .73), (.5, .49)]],
    9: [[(.77, .3), (.48, .04), (.19, .3), (.48, .55), (.77, .3), (.74, .6), (.55, .97)]],
}


def drawn(count, seed):
    """Pairs of an image [1, 28, 28] and its digit, from strokes that are turned, scaled, shifted, and noise."""
    draws = random.Random(seed)
    rows, columns = torch.meshgrid(torch.arange(28.), torch.arange(28.), indexing="ij")
    data = []
    for _ in range(count):
        digit, turn = draws.randrange(10), draws.uniform(-.25, .25)
        width, height, pen = draws.uniform(11, 15), draws.uniform(16, 20), draws.uniform(.8, 1.5)
        middle = draws.uniform(12, 16), draws.uniform(12, 16)
        nearest = torch.full((28, 28), 28.)
        for stroke in STROKES[digit]:
            places = []
            for x, y in stroke:
                x, y = (x - .5) * width, (y - .5) * height
                places.append((middle[0] + x * math.cos(turn) - y * math.sin(turn), middle[1] + x * math.sin(turn) + y * math.cos(turn)))
            for (ax, ay), (bx, by) in zip(places, places[1:]):
                length = max((bx - ax) ** 2 + (by - ay) ** 2, 1e-9)
                share = (((columns - ax) * (bx - ax) + (rows - ay) * (by - ay)) / length).clamp(0, 1)
                nearest = torch.minimum(nearest, torch.hypot(columns - ax - share * (bx - ax), rows - ay - share * (by - ay)))
        noise = torch.tensor([draws.uniform(-.08, .08) for _ in range(784)]).view(28, 28)
        ink = ((pen + .5 - nearest).clamp(0, 1) + noise).clamp(0, 1)
        data.append((((ink - .1307) / .3081).unsqueeze(0), digit))
    return data


def mnist(folder, count):
    """The same from MNIST's IDX files."""
    images = (pathlib.Path(folder) / "train-images-idx3-ubyte").read_bytes()
    labels = (pathlib.Path(folder) / "train-labels-idx1-ubyte").read_bytes()
    magic, number, height, width = struct.unpack(">4I", images[:16])
    if (magic, height, width) != (0x803, 28, 28) or struct.unpack(">2I", labels[:8]) != (0x801, number):
        raise SystemExit(f"--data: '{folder}' has no images of 28 x 28 pixels with as many labels")
    if len(images) != 16 + number * 784 or len(labels) != 8 + number:
        raise SystemExit(f"--data: the files in '{folder}' are not as long as they say")
    count = min(count, number)
    pixels = torch.tensor(list(images[16:16 + count * 784]), dtype=torch.float).view(count, 1, 28, 28)
    return list(zip((pixels / 255 - .1307) / .3081, labels[8:8 + count]))


def average_gradients(model):
    """An all_reduce for each parameter, when the backward pass is over."""
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad.data, op=dist.ReduceOp.SUM)
        parameter.grad.data /= dist.get_world_size()


def train(asked):
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(SEED)
    data = mnist(asked.data, asked.images) if asked.data else drawn(asked.images, SEED)
    share = DataPartitioner(data, [1 / size] * size).use(rank)
    loader = torch.utils.data.DataLoader(share, batch_size=max(asked.batch // size, 1), shuffle=True,
                                         num_workers=asked.workers)
    model = Net()
    learner = nn.parallel.DistributedDataParallel(model) if asked.ddp else model
    optimizer = torch.optim.SGD(model.parameters(), lr=asked.rate, momentum=asked.momentum)
    for epoch in range(asked.epochs):
        total = torch.zeros(1)
        for images, digits in loader:
            optimizer.zero_grad()
            loss = F.nll_loss(learner(images), digits)
            total += loss.detach()
            loss.backward()
            if not asked.ddp:
                average_gradients(model)
            optimizer.step()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}: loss {total.item() / size / len(loader):.4f}", flush=True)
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    parts = [torch.empty_like(flat) for _ in range(size)]
    dist.all_gather(parts, flat)
    if rank == 0:
        same = all(torch.equal(part, flat) for part in parts)
        print(f"{size} ranks with {asked.backend}: " + ("one network" if same else "DIFFERENT NETWORKS"), flush=True)
    if not all(torch.equal(part, flat) for part in parts):
        raise SystemExit(1)


def process(rank, size, asked):
    torch.set_num_threads(1)
    if asked.backend not in ("gloo", "nccl", "mpi"):
        importlib.import_module(f"{asked.backend}_torch")  # registers the backend of that name
    if size:  # started here
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(size))
    dist.init_process_group(asked.backend)
    train(asked)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("backend", nargs="?", default="gloo", help="of torch.distributed: gloo, tutti, ... (gloo)")
    parser.add_argument("--ranks", type=int, default=2, help="where torchrun has not started them (2)")
    parser.add_argument("--images", type=int, default=1024, help="to learn from (1024)")
    parser.add_argument("--batch", type=int, default=64, help="images of one step, on all ranks together (64)")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--data", help="a folder with MNIST's files, unpacked")
    parser.add_argument("--workers", type=int, default=0, help="processes of each rank that load its data (0)")
    parser.add_argument("--ddp", action="store_true", help="let DistributedDataParallel add up gradients, in buckets that overlap")
    asked = parser.parse_args()
    if "RANK" in os.environ:  # torchrun
        process(int(os.environ["RANK"]), 0, asked)
        return
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", str(29500 + os.getpid() % 10000))
    mp.spawn(process, (asked.ranks, asked), asked.ranks)


if __name__ == "__main__":
    main()
