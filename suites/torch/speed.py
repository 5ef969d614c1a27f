# SPDX-License-Identifier: Apache-2.0
"""How long calls of torch.distributed take with tutti and with Gloo: both through torch's own API, in one process each
rank, in turns.

usage: speed.py [--ranks P] [--busy N] [--calls all_reduce,...] [--sizes BYTES,...] [--csv FILE] [--svg FILE]

--busy N   so many busy processes beside the ranks. A time is the median over all calls of the slowest rank."""
import argparse
import csv
import multiprocessing
import os
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

SIZES = [8, 64, 512, 4096, 32768, 262144, 1 << 20, 4 << 20, 16 << 20]
BLOCKS = 6  # of each backend, in the order ABBA...
FIELDS = ["call", "bytes", "busy", "ranks", "tutti_us", "gloo_us", "ratio"]


def calls_of(elements, ranks):
    """By name: a call on tensors of that many floats, in the group that it is given."""
    one = torch.ones(elements)
    parts = [torch.empty(elements) for _ in range(ranks)]
    whole, gathered = torch.ones(elements * ranks), torch.empty(elements * ranks)
    return {
        "all_reduce": lambda group: dist.all_reduce(one, group=group),
        "all_gather": lambda group: dist.all_gather(parts, one, group=group),
        "broadcast": lambda group: dist.broadcast(one, 0, group=group),
        "all_gather_into_tensor": lambda group: dist.all_gather_into_tensor(gathered, one, group=group),
        "reduce_scatter_tensor": lambda group: dist.reduce_scatter_tensor(one, whole, group=group),
        "reduce_scatter": lambda group: dist.reduce_scatter(one, list(whole.chunk(ranks)), group=group),
        "all_to_all_single": lambda group: dist.all_to_all_single(gathered, whole, group=group),
    }


def has_gloo(call):
    return call in ("all_reduce", "all_gather", "broadcast")


def time_block(call, group, count):
    call(group), call(group)
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        call(group)
        times.append((time.perf_counter() - begin) * 1e6)
    return times


def measure(rank, options, folder):
    import tutti_torch  # noqa: F401
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=options.ranks)
    groups = {"tutti": dist.new_group(backend="tutti"), "gloo": dist.group.WORLD}
    rows = []
    for name in options.calls.split(","):
        for size in options.sizes:
            call = calls_of(size // 4, options.ranks)[name]
            backends = ["tutti", "gloo"] if has_gloo(name) else ["tutti"]
            count = 200 if size <= 4096 else 50 if size <= 262144 else 10 if size <= 1 << 20 else 4
            times = {backend: [] for backend in backends}
            for block in range(BLOCKS):
                for backend in backends if block % 2 == 0 else reversed(backends):
                    times[backend] += time_block(call, groups[backend], count)
            medians = torch.tensor([statistics.median(times[backend]) for backend in backends])
            dist.all_reduce(medians, op=dist.ReduceOp.MAX)
            ours, theirs = medians[0].item(), medians[1].item() if len(backends) == 2 else None
            rows.append({"call": name, "bytes": size, "busy": options.busy, "ranks": options.ranks,
                         "tutti_us": f"{ours:.2f}", "gloo_us": f"{theirs:.2f}" if theirs else "",
                         "ratio": f"{theirs / ours:.2f}" if theirs else ""})
            if rank == 0:
                print("{call:18} {bytes:>9} B  tutti {tutti_us:>10} us  gloo {gloo_us:>10} us  {ratio:>6}".format(**rows[-1]),
                      flush=True)
    if rank == 0:
        tell_means(rows)
        if options.csv:
            write_csv(options.csv, rows)
        if options.svg:
            draw(options.svg, rows)
    dist.destroy_process_group()


def tell_means(rows):
    for name in dict.fromkeys(row["call"] for row in rows):
        for title, limit in (("to 4 KiB", 4096), ("of all", max(row["bytes"] for row in rows))):
            ratios = [float(row["ratio"]) for row in rows if row["call"] == name and row["ratio"] and row["bytes"] <= limit]
            if ratios:
                print(f"{name}: gloo / tutti, geometric mean {title}: {statistics.geometric_mean(ratios):.2f}, "
                      f"least {min(ratios):.2f}", flush=True)


def write_csv(path, rows):
    """Rows are appended to those of another run."""
    is_new = not os.path.exists(path)
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def draw(path, rows):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    names = list(dict.fromkeys(row["call"] for row in rows))
    figure, axes = plt.subplots(1, len(names), figsize=(4 * len(names), 3.4), sharey=True, squeeze=False)
    for axis, name in zip(axes[0], names):
        for backend, colour in (("gloo", "#888888"), ("tutti", "#c2410c")):
            points = [(row["bytes"], float(row[f"{backend}_us"])) for row in rows
                      if row["call"] == name and row[f"{backend}_us"]]
            if points:
                axis.plot(*zip(*points), marker="o", markersize=3, color=colour, label=backend)
        axis.set(title=name, xscale="log", yscale="log", xlabel="bytes")
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("microseconds")
    axes[0][0].legend()
    figure.suptitle(f"{rows[0]['ranks']} ranks, {rows[0]['busy']} busy processes beside them")
    figure.tight_layout()
    figure.savefig(path)


def be_busy():
    while True:
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--calls", default="all_reduce,all_gather,broadcast")
    parser.add_argument("--sizes", type=lambda text: [int(word) for word in text.split(",")], default=SIZES)
    parser.add_argument("--csv")
    parser.add_argument("--svg")
    options = parser.parse_args()
    unknown = set(options.calls.split(",")) - set(calls_of(1, 1))
    if unknown:
        parser.error(f"--calls: unknown {', '.join(sorted(unknown))}: must be of {', '.join(calls_of(1, 1))}")
    others = [multiprocessing.Process(target=be_busy, daemon=True) for _ in range(options.busy)]
    for each in others:
        each.start()
    with tempfile.TemporaryDirectory(prefix="tutti-speed-") as folder:
        mp.spawn(measure, (options, folder), nprocs=options.ranks)
    for each in others:
        each.terminate()


if __name__ == "__main__":
    main()
