# SPDX-License-Identifier: Apache-2.0
"""Small algorithm files in MSCCL's XML, made here: right ones, and what a test changes in them."""


def step(number, kind, source, source_at, target, target_at, count=1, awaits=(-1, -1), is_awaited=False):
    return (f'      <step s="{number}" type="{kind}" srcbuf="{source}" srcoff="{source_at}" dstbuf="{target}" '
            f'dstoff="{target_at}" cnt="{count}" depid="{awaits[0]}" deps="{awaits[1]}" hasdep="{int(is_awaited)}"/>')


def algorithm(name, gpus, chunks, blocks_of, scratch=0, collective="allreduce", in_place=1):
    """blocks_of(gpu): thread blocks, each as (gpu to send to, gpu to receive from, channel, steps)."""
    lines = [f'<algo name="{name}" proto="Simple" nchannels="1" nchunksperloop="{chunks}" ngpus="{gpus}" '
             f'coll="{collective}" inplace="{in_place}">']
    for gpu in range(gpus):
        lines.append(f'  <gpu id="{gpu}" i_chunks="{chunks}" o_chunks="{chunks}" s_chunks="{scratch}">')
        for number, (send, receive, channel, steps) in enumerate(blocks_of(gpu)):
            lines.append(f'    <tb id="{number}" send="{send}" recv="{receive}" chan="{channel}">')
            lines += steps + ["    </tb>"]
        lines.append("  </gpu>")
    return "\n".join(lines + ["</algo>"]) + "\n"


def ring(gpus):
    """A chunk for each gpu goes round twice: to be added up, and then to be spread."""
    def blocks(gpu):
        at = [(gpu - k) % gpus for k in range(2 * gpus - 1)]
        kinds = ["s"] + ["rrs"] * (gpus - 2) + ["rrcs"] + ["rcs"] * (gpus - 2) + ["r"]
        return [((gpu + 1) % gpus, (gpu - 1) % gpus, 0,
                 [step(k, kind, "i", at[k], "i", at[k]) for k, kind in enumerate(kinds)])]
    return algorithm("ring", gpus, gpus, blocks)


def pairs(gpus, forgets=None):
    """A thread block for each other gpu: all send everything, the first block adds it up once all has come."""
    def blocks(gpu):
        others = [other for other in range(gpus) if other != gpu]
        made = []
        for k, other in enumerate(others):
            steps = [step(0, "s", "i", 0, "s", gpu), step(1, "r", "i", 0, "s", other, is_awaited=True)]
            if k == 0:
                for j in range(1, len(others)):
                    if forgets != (gpu, j):
                        steps.append(step(len(steps), "nop", "i", -1, "o", -1, count=0, awaits=(j, 0)))
                        steps[-1] = steps[-1].replace('deps="0"', 'deps="1"')
                # Every block has sent its input before it awaits what arrives.
                steps += [step(len(steps) + n, "re", "s", one, "i", 0) for n, one in enumerate(others)]
            made.append((other, other, 0, steps))
        return made
    return algorithm("pairs", gpus, 1, blocks, scratch=gpus)


def two_shot(gpus):
    """Every gpu adds up its own part, by way of scratch, and sends it to all."""
    def blocks(gpu):
        others = [other for other in range(gpus) if other != gpu]
        made = []
        for k, other in enumerate(others):
            steps = [step(0, "s", "i", other, "s", gpu), step(1, "r", "i", 0, "s", other, is_awaited=True)]
            if k == 0:
                for j in range(1, len(others)):
                    steps.append(step(len(steps), "nop", "i", -1, "o", -1, count=0, awaits=(j, 1)))
                steps += [step(len(steps) + n, "re", "s", one, "i", gpu, is_awaited=n == len(others) - 1)
                          for n, one in enumerate(others)]
                last = len(steps) - 1
                steps.append(step(len(steps), "s", "i", gpu, "i", gpu))
            else:
                steps.append(step(2, "s", "i", gpu, "i", gpu, awaits=(0, 2 * (gpus - 2) + 2)))
            steps.append(step(len(steps), "r", "i", other, "i", other))
            made.append((other, other, 0, steps))
        return made
    return algorithm("two_shot", gpus, gpus, blocks, scratch=gpus)


def gather(gpus, in_place=1):
    """all_gather: everybody sends its own chunk to everybody."""
    def blocks(gpu):
        own = [] if in_place else [(-1, -1, 0, [step(0, "cpy", "i", 0, "o", gpu)])]
        return own + [(other, other, 0, [step(0, "s", "i", 0, "o", gpu), step(1, "r", "i", 0, "o", other)])
                      for other in range(gpus) if other != gpu]
    return algorithm("gather", gpus, gpus, blocks, collective="allgather", in_place=in_place)


def crossed():
    """Two gpus that both send twice before they receive: one slot is too few."""
    def blocks(gpu):
        other = 1 - gpu
        return [(other, other, 0, [step(0, "s", "i", 0, "s", 0), step(1, "s", "i", 1, "s", 1),
                                   step(2, "rrc", "i", 0, "o", 0), step(3, "rrc", "i", 1, "o", 1)])]
    return algorithm("crossed", 2, 2, blocks, in_place=0)
