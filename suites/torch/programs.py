# SPDX-License-Identifier: Apache-2.0
"""usage: programs.py BACKEND RANKS FOLDER [PROGRAM...]

Programs as people write them for torch.distributed, with any backend. Each is a function of the rank and the number of
ranks that prints. RANKS processes run one after the other; what rank R prints in a program is FOLDER/PROGRAM.R.
"""
import contextlib
import datetime
import os
import pathlib
import sys
import threading
import time
import traceback

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "training"))
from train import Net  # noqa: E402

PROGRAMS = {}
BEYOND_GLOO = set()  # programs that the backend gloo of torch 1.13 refuses


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def beyond_gloo(function):
    BEYOND_GLOO.add(function.__name__)
    return program(function)


@program
def six_collectives(rank, size):
    last = size - 1
    number = torch.tensor([rank + 1.0])
    dist.reduce(number, dst=0, op=dist.ReduceOp.SUM)
    if rank == 0:
        print("reduce", number)
    number = torch.tensor([rank + 1.0, -rank])
    dist.all_reduce(number)
    print("all_reduce", number)
    several = torch.arange(4) + rank
    dist.broadcast(several, src=last)
    print("broadcast", several)
    mine = torch.empty(2)
    dist.scatter(mine, [torch.full((2,), 10.0 * i) for i in range(size)] if rank == last else None, src=last)
    print("scatter", mine)
    all_of_them = [torch.empty(2) for _ in range(size)] if rank == 0 else None
    dist.gather(mine + rank, all_of_them, dst=0)
    print("gather", all_of_them)
    all_of_them = [torch.empty(2) for _ in range(size)]
    dist.all_gather(all_of_them, mine + 0.5)
    print("all_gather", all_of_them)


@program
def point_to_point(rank, size):
    """A number goes around, first with calls that block, then with calls that do not."""
    if size == 1:
        return
    number = torch.zeros(1)
    if rank == 0:
        number += 1
        dist.send(number, dst=1)
        dist.recv(number, src=size - 1)
    else:
        dist.recv(number, src=rank - 1)
        number += 1
        dist.send(number, dst=(rank + 1) % size)
    print("around", number)
    got = torch.zeros(3)
    requests = [dist.isend(torch.full((3,), float(rank)), dst=(rank + 1) % size), dist.irecv(got, src=(rank - 1) % size)]
    for request in requests:
        request.wait()
    print("neighbour", got)


@program
def even_ranks(rank, size):
    group = dist.new_group(list(range(0, size, 2)))
    number = torch.ones(1)
    if rank % 2 == 0:
        dist.all_reduce(number, group=group)
    print(number[0])
    if rank % 2 == 0:
        dist.destroy_process_group(group)
    for alone in range(size):
        group = dist.new_group([alone])
        if rank == alone:
            dist.all_reduce(number, group=group)
            dist.barrier(group=group)
    print(number)


@program
def barrier(rank, size):
    """Nobody leaves before the last has come."""
    came = pathlib.Path(os.environ["PROGRAMS_FOLDER"], "came")
    for turn in range(size):
        if rank == turn:
            time.sleep(0.1)
            came.with_suffix(f".{turn}").touch()
        dist.barrier()
        print("turn", turn, came.with_suffix(f".{turn}").exists())


def all_reduce_in_a_ring(tensor, rank, size):
    """Each rank adds up one chunk, which then goes around."""
    chunks = list(tensor.chunk(size))
    if len(chunks) < size:  # chunk makes fewer of a short tensor
        chunks = [tensor[tensor.numel() * i // size:tensor.numel() * (i + 1) // size] for i in range(size)]
    left, right = (rank - 1) % size, (rank + 1) % size
    for step in range(2 * (size - 1)):
        out = chunks[(rank - step) % size]
        into = chunks[(rank - step - 1) % size]
        got = torch.empty_like(into)
        sent = dist.isend(out.clone(), right)
        dist.recv(got, left)
        sent.wait()
        if step < size - 1:
            into += got
        else:
            into.copy_(got)


@program
def ring(rank, size):
    for length in [2, 7, 1000, 300_000]:
        ours = torch.arange(length, dtype=torch.float) % 17 + rank
        theirs = ours.clone()
        all_reduce_in_a_ring(ours, rank, size)
        dist.all_reduce(theirs)
        print(length, bool((ours == theirs).all()), ours.sum())


@program
def tags(rank, size):
    if size == 1:
        return
    if rank == 0:
        requests = [dist.isend(torch.tensor([float(tag)]), dst=1, tag=tag) for tag in [7, 3, 5]]
        for request in requests:
            request.wait()
        sources, numbers = [], []
        for _ in range(size - 1):
            number = torch.empty(1)
            sources.append(dist.recv(number))
            numbers.append(number.item())
        print(sorted(sources), sorted(numbers))
    else:
        if rank == 1:
            for tag in [3, 5, 7]:
                number = torch.empty(1)
                dist.recv(number, src=0, tag=tag)
                print(tag, number)
        dist.send(torch.tensor([rank * 1.5]), dst=0)
    dist.barrier()
    sent, got = torch.full((2,), float(rank)), torch.empty(2)
    for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, (rank + 1) % size),
                                           dist.P2POp(dist.irecv, got, (rank - 1) % size)]):
        request.wait()
    print("batch", got)


@program
def objects(rank, size):
    everything = [None] * size
    dist.all_gather_object(everything, {"rank": rank, "text": "x" * rank, "list": [rank] * 3})
    print(everything)
    told = [("from", rank)]
    dist.broadcast_object_list(told, src=size - 1)
    print(told)
    gathered = [None] * size if rank == 0 else None
    dist.gather_object(rank * 2, gathered, dst=0)
    print(gathered)
    one = [None]
    dist.scatter_object_list(one, [f"to {i}" for i in range(size)] if rank == 0 else [None] * size, src=0)
    print(one)


@program
def operations(rank, size):
    for name in ["SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]:
        for dtype in [torch.int32, torch.int64, torch.uint8, torch.int8]:
            tensor = torch.tensor([rank + 2, 6 - rank], dtype=dtype)
            dist.all_reduce(tensor, op=getattr(dist.ReduceOp, name))
            print(name, tensor)
    for dtype in [torch.float, torch.double, torch.half, torch.complex64]:
        tensor = torch.tensor([rank + 0.5, 2.0]).to(dtype)
        dist.all_reduce(tensor)
        print(tensor)


@program
def shapes(rank, size):
    strided = torch.arange(6.0).reshape(2, 3).t() + rank
    dist.all_reduce(strided)
    print(strided, strided.stride())
    nothing = torch.empty(0)
    dist.all_reduce(nothing)
    single = torch.tensor(2.5 + rank)
    dist.all_reduce(single)
    print(nothing, single)


@program
def overlaps(rank, size):
    """Tensors of one call that lie in one place, in ways that Gloo takes too, for it copies all of them."""
    whole = torch.arange(4.0 * size)
    parts = list(whole.chunk(size))
    dist.all_gather(parts, parts[rank] + 0)
    dist.all_gather(parts, parts[rank])
    print("in place", whole)
    parts[rank] += 100
    dist.all_gather(parts, parts[(rank + 1) % size])
    print("of the neighbour", whole)
    dist.all_gather(list(whole.flip(0).chunk(size)), whole[2:6] if size > 1 else whole)
    tensor = torch.full((2,), float(rank))
    dist.scatter(tensor, [tensor + 0, *[tensor] * (size - 1)] if rank == 0 else None, src=0)
    print("scattered to where it is from", tensor)
    matrix = torch.arange(6.0).reshape(2, 3)
    rows = [torch.empty(3, 2).t() for _ in range(size)]
    dist.all_gather(rows, matrix + rank)
    print("transposed", rows)


@program
def futures(rank, size):
    work = dist.all_reduce(torch.full((4,), rank + 1.0), async_op=True)
    doubled = work.get_future().then(lambda future: future.value()[0] * 2)
    print(doubled.wait())
    works = [dist.all_reduce(torch.full((2,), float(i)), async_op=True) for i in range(20)]
    print([work.is_completed() or work.wait() for work in reversed(works)])


@program
def sparse(rank, size):
    indices = torch.tensor([[0, rank + 1], [rank, 0]])
    tensor = torch.sparse_coo_tensor(indices, torch.tensor([1.0, rank + 2.0]), (size + 1, size + 1))
    dist.all_reduce(tensor)
    print(tensor.to_dense())


class Digits(torch.utils.data.Dataset):
    """Digits of seven segments, moved a little, with noise."""
    SEGMENTS = ["abcefg", "cf", "acdeg", "acdfg", "bcdf", "abdfg", "abdefg", "acf", "abcdefg", "abcdfg"]
    LINES = {"a": (4, 6, 9, 19), "b": (4, 14, 8, 10), "c": (4, 14, 18, 20), "d": (13, 15, 9, 19), "e": (14, 24, 8, 10),
             "f": (14, 24, 18, 20), "g": (22, 24, 9, 19)}

    def __init__(self, count=192):
        random = torch.Generator().manual_seed(7)
        self.labels = torch.randint(0, 10, (count,), generator=random)
        self.images = torch.randn(count, 1, 28, 28, generator=random) * 0.15
        for image, label in zip(self.images, self.labels):
            digit = torch.zeros(28, 28)
            for segment in self.SEGMENTS[label]:
                top, bottom, left, right = self.LINES[segment]
                digit[top:bottom, left:right] = 1
            image[0] += digit.roll(torch.randint(-3, 4, (2,), generator=random).tolist(), (0, 1))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index].item()


def share_of_digits(rank, size, batch=64):
    digits = Digits()
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(1234)).tolist()
    share = len(digits) // size
    own = torch.utils.data.Subset(digits, order[rank * share:(rank + 1) * share])
    return torch.utils.data.DataLoader(own, batch_size=batch // size, num_workers=0)


@program
def distributed_sgd(rank, size):
    torch.manual_seed(1234)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    for epoch in range(2):
        total = 0.0
        for images, labels in share_of_digits(rank, size):
            optimizer.zero_grad()
            loss = F.nll_loss(model(images), labels)
            total += loss.item()
            loss.backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
                parameter.grad /= size
            optimizer.step()
        print(epoch, total)


@program
def data_parallel(rank, size):
    """DDP, whose autograd thread waits for futures."""
    torch.manual_seed(1234)
    model = nn.parallel.DistributedDataParallel(Net(), bucket_cap_mb=0.05)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for images, labels in share_of_digits(rank, size):
        optimizer.zero_grad()
        F.nll_loss(model(images), labels).backward()
        optimizer.step()
    print(sum(parameter.double().abs().sum().item() for parameter in model.parameters()))


@program
def zero(rank, size):
    from torch.distributed.optim import ZeroRedundancyOptimizer
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, lr=0.01)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.full((2, 8), step + 1.0)).sum().backward()
        optimizer.step()
    print([parameter.sum().item() for parameter in model.parameters()])


@program
def pipeline(rank, size):
    """Each rank is a stage: small batches go forward, then their gradients come back."""
    torch.manual_seed(rank)
    stage = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.1)
    for step in range(2):
        optimizer.zero_grad()
        kept = []
        for batch in range(4):
            x = torch.full((2, 8), 1.0 + batch + step)
            if rank > 0:
                dist.recv(x, src=rank - 1)
                x.requires_grad_()
            y = stage(x)
            if rank < size - 1:
                dist.send(y.detach(), dst=rank + 1)
            kept.append((x, y))
        for x, y in reversed(kept):
            gradient = torch.ones_like(y)
            if rank < size - 1:
                dist.recv(gradient, src=rank + 1)
            y.backward(gradient)
            if rank > 0:
                dist.send(x.grad, dst=rank - 1)
        optimizer.step()
    print([parameter.sum().item() for parameter in stage.parameters()])


@program
def parameter_server(rank, size):
    """Rank 0 adds up what comes, from whomever, and answers."""
    weights = torch.zeros(4)
    if rank == 0:
        came = []
        for _ in range(3 * (size - 1)):
            gradient = torch.empty(4)
            came.append(dist.recv(gradient))
            weights += gradient
            dist.send(weights, dst=came[-1])
        print(sorted(came), weights)
    else:
        for _ in range(3):
            dist.send(torch.full((4,), float(rank)), dst=0)
            dist.recv(weights, src=0)
    dist.barrier()


@program
def halo(rank, size):
    """Heat on a line: ranks exchange the ends of their parts."""
    heat = torch.zeros(10)
    if rank == 0:
        heat[1] = 100
    for _ in range(20):
        exchanges = []
        if rank > 0:
            exchanges += [dist.P2POp(dist.isend, heat[1:2], rank - 1), dist.P2POp(dist.irecv, heat[0:1], rank - 1)]
        if rank < size - 1:
            exchanges += [dist.P2POp(dist.isend, heat[-2:-1], rank + 1), dist.P2POp(dist.irecv, heat[-1:], rank + 1)]
        for request in dist.batch_isend_irecv(exchanges) if exchanges else []:
            request.wait()
        heat[1:-1] += 0.2 * (heat[:-2] - 2 * heat[1:-1] + heat[2:])
    print(heat)


@program
def lists_under_way(rank, size):
    """From and to every root at once, waited for backwards."""
    works, results = [], []
    for root in range(size):
        out, every = torch.empty(3), [torch.empty(1) for _ in range(size)]
        into = [torch.empty(2) for _ in range(size)] if rank == root else None
        to = [torch.full((3,), 10.0 * root + i) for i in range(size)] if rank == root else None
        works += [dist.scatter(out, to, src=root, async_op=True),
                  dist.gather(torch.full((2,), rank + 0.5), into, dst=root, async_op=True),
                  dist.all_gather(every, torch.tensor([float(rank * root)]), async_op=True)]
        results += [out, into, every]
    for work in reversed(works):
        work.wait()
    print(results)


@program
def messages_of_many_lengths(rank, size):
    """To everybody with tags, received in another order."""
    lengths = [1, 0, 1000, 100_000, 3]
    others = [peer for peer in range(size) if peer != rank]
    sent = [dist.isend(torch.full((length,), rank * 10.0 + tag), dst=peer, tag=tag)
            for peer in others for tag, length in enumerate(lengths)]
    got = {(peer, tag): torch.empty(lengths[tag]) for peer in reversed(others) for tag in reversed(range(len(lengths)))}
    for work in [*[dist.irecv(tensor, src=peer, tag=tag) for (peer, tag), tensor in got.items()], *sent]:
        work.wait()
    print({key: (tensor.numel(), tensor.sum()) for key, tensor in got.items()})


@program
def overlapping_groups(rank, size):
    """Each rank is in a group with its neighbours, and in one of all, numbered backwards."""
    number = torch.tensor([rank + 1.0])
    pairs = [dist.new_group([i, i + 1]) for i in range(size - 1)]
    for i, pair in enumerate(pairs):
        if rank in (i, i + 1):
            dist.all_reduce(number, group=pair)
            print(i, number, dist.get_rank(pair), dist.get_world_size(pair))
    everybody = dist.new_group(list(reversed(range(size))))
    told = torch.tensor([float(rank)])
    dist.broadcast(told, src=size - 1, group=everybody)
    print(told)
    for i, pair in enumerate(pairs):
        if rank in (i, i + 1):
            dist.destroy_process_group(pair)
    dist.all_reduce(number, group=everybody)
    print(number)


@program
def threads(rank, size):
    """Two threads call at the same time, each in a group of its own."""
    sums = [torch.zeros(1), torch.zeros(1)]

    def add_up(which, group):
        for step in range(50):
            number = torch.tensor([float(rank + which + step)])
            dist.all_reduce(number, group=group)
            sums[which] += number

    workers = [threading.Thread(target=add_up, args=(which, dist.new_group())) for which in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(sums)


@program
def through_autograd(rank, size):
    """Gradients of collectives are collectives."""
    from torch.distributed.nn import functional
    x = torch.full((2,), rank + 1.0, requires_grad=True)
    summed = functional.all_reduce(x)
    (summed * (rank + 1)).sum().backward()
    print(summed, x.grad)
    x = torch.full((2,), rank + 1.0, requires_grad=True)
    gathered = functional.all_gather(x)
    sum((i + 1) * part.sum() for i, part in enumerate(gathered)).backward()
    print(gathered, x.grad)


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.heads = nn.Linear(4, 4), nn.ModuleList([nn.Linear(4, 2), nn.Linear(4, 2)])

    def forward(self, x, head):
        return self.heads[head](self.body(x))


@program
def data_parallel_otherwise(rank, size):
    """DDP with parameters that not all ranks use, with steps that stay local, and where ranks have more data than others."""
    torch.manual_seed(3)
    model = nn.parallel.DistributedDataParallel(Heads(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 4) * (rank + 1), (step + rank) % 2).sum().backward()
        optimizer.step()
    print([parameter.sum().item() for parameter in model.parameters()])
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 4))
    for step in range(4):
        with model.no_sync() if step % 2 == 0 else contextlib.nullcontext():
            model(torch.full((2, 4), rank + step + 1.0)).sum().backward()
    print([parameter.grad.sum().item() for parameter in model.parameters()])
    with model.join():
        for step in range(2 + 2 * rank):
            model.zero_grad()
            model(torch.full((2, 4), step + 1.0)).sum().backward()
    print([parameter.grad.sum().item() for parameter in model.parameters()])


@program
def compressed_gradients(rank, size):
    """Hooks of DDP. That of PowerSGD waits for futures in callbacks of others."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
    power = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1, start_powerSGD_iter=2)
    for state, hook in [(power, powerSGD_hook.powerSGD_hook), (None, default_hooks.allreduce_hook)]:
        torch.manual_seed(3)
        model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 4)))
        model.register_comm_hook(state, hook)
        for step in range(4):
            model.zero_grad()
            model(torch.full((2, 16), (rank + step + 1.0) / 8)).sum().backward()
        print([parameter.grad.abs().sum().item() for parameter in model.parameters()])


@program
def averaged_models(rank, size):
    """Local steps, and the mean of all models from time to time."""
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    from torch.distributed.optim import PostLocalSGDOptimizer
    torch.manual_seed(1)
    model = nn.Linear(4, 2)
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), PeriodicModelAverager(period=2, warmup_steps=1))
    for _ in range(5):
        optimizer.zero_grad()
        model(torch.full((2, 4), rank + 1.0)).sum().backward()
        optimizer.step()
    print([parameter.sum().item() for parameter in model.parameters()])


@beyond_gloo
def lists(rank, size):
    out = torch.empty(2)
    dist.reduce_scatter(out, [torch.full((2,), float(rank + i)) for i in range(size)])
    print("reduce_scatter", out)
    received = [torch.empty(i + 1) for i in range(size)]
    dist.all_to_all(received, [torch.full((rank + 1,), 10.0 * rank + i) for i in range(size)])
    print("all_to_all", received)
    uneven = [torch.empty(i) for i in range(size)]
    dist.all_gather(uneven, torch.full((rank,), float(rank)))
    print("all_gather", uneven)
    one = torch.empty(size)
    dist.all_to_all_single(one, torch.arange(size) + 10.0 * rank)
    print("all_to_all_single", one)
    rows = torch.empty(size * (rank + 1), 2)
    dist.all_to_all_single(rows, torch.full((sum(range(1, size + 1)), 2), float(rank)), [rank + 1] * size,
                           list(range(1, size + 1)))
    print("splits", rows)


@beyond_gloo
def averages(rank, size):
    tensor = torch.tensor([rank, 2.0 * rank])
    dist.all_reduce(tensor, op=dist.ReduceOp.AVG)
    print("avg", tensor)
    tensor = torch.ones(2)
    dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(0.5 * (rank + 1)))
    print("premul_sum", tensor)
    for dtype in [torch.bool, torch.bfloat16, torch.int16]:
        tensor = torch.tensor([1, 0, rank]).to(dtype)
        dist.all_reduce(tensor)
        print(dtype, tensor)


@beyond_gloo
def logic(rank, size):
    """Bools, a column of a matrix, exchanges in place, and numbers that are conjugated when they are read."""
    for name in ["SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"]:
        tensor = torch.tensor([rank == 0, True, False])
        dist.all_reduce(tensor, op=getattr(dist.ReduceOp, name))
        print(name, tensor)
    columns = torch.zeros(3, 4)
    dist.broadcast(columns[:, 1] if rank else torch.ones(3), src=0)
    print(columns)
    numbers = torch.arange(size) + 10.0 * rank
    dist.all_to_all_single(numbers, numbers)
    print("exchanged where they lie", numbers)
    parts = list(numbers.chunk(size))
    dist.all_to_all(parts, parts)
    dist.all_to_all(parts, parts[1:] + parts[:1])
    print("and turned by one", numbers)
    dist.reduce_scatter(parts[rank], parts)
    print("and added up", numbers[rank])
    conjugated = torch.tensor([1 + 2j])
    got = [torch.empty(1, dtype=torch.complex64) for _ in range(size)]
    dist.all_gather(got, conjugated.conj() * (rank + 1))
    dist.broadcast(conjugated.conj(), src=0)
    print(got, conjugated)


@beyond_gloo
def sharded(rank, size):
    """What FSDP calls: a parameter in shards, gathered, and its gradient scattered."""
    shard = torch.full((3,), float(rank))
    whole = torch.empty(3 * size)
    dist._all_gather_base(whole, shard)
    print("whole", whole)
    dist._reduce_scatter_base(shard, whole)
    print("shard", shard)


def run(backend, rank, size, folder, names):
    os.environ["PROGRAMS_FOLDER"] = folder
    torch.set_num_threads(1)
    if backend == "tutti":
        import tutti_torch  # noqa: F401
    dist.init_process_group(backend, init_method=f"file://{folder}/meeting", rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=60))
    for name in names:
        with open(pathlib.Path(folder, f"{name}.{rank}"), "w", encoding="utf-8") as file:
            with contextlib.redirect_stdout(file):
                PROGRAMS[name](rank, size)
    dist.barrier()
    dist.destroy_process_group()


def main():
    backend, size, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    names = sys.argv[4:] or [name for name in PROGRAMS if backend != "gloo" or name not in BEYOND_GLOO]
    children = []
    for rank in range(size):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                run(backend, rank, size, folder, names)
                code = 0
            except Exception:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    sys.exit(any([os.waitpid(child, 0)[1] for child in children]))


if __name__ == "__main__":
    main()
