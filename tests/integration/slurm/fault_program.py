"""Data-parallel training of a line over gloo, as short as can be: what the faulty scripts of the tests start."""

import argparse
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--slurm", action="store_true", help="take the ranks from Slurm's variables")
    parser.add_argument("--steps", type=int, default=8)
    seconds = int(os.environ.get("TRAIN_TIMEOUT", "15"))
    parser.add_argument("--timeout", type=int, default=seconds, help="of the rendezvous, in seconds")
    parser.add_argument("--cache-gb", type=float, default=0, help="memory to reserve for data")
    args = parser.parse_args()
    cache = bytearray(int(args.cache_gb * 2**30))
    if args.slurm:
        for name, source in (("RANK", "PROCID"), ("WORLD_SIZE", "NTASKS"), ("LOCAL_RANK", "LOCALID")):
            os.environ[name] = os.environ[f"SLURM_{source}"]
    dist.init_process_group("gloo", timeout=timedelta(seconds=args.timeout))
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(1 + dist.get_rank())
    losses = []
    for _ in range(args.steps):
        x = torch.randn(64, 8)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    if dist.get_rank() == 0:
        print(f"trained {args.steps} steps, world {dist.get_world_size()}, loss {losses[0]:.4f} to {losses[-1]:.4f}")
    dist.destroy_process_group()
