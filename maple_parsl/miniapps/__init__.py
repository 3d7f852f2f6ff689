"""Small training programs that try a launch end to end.

Five model families (gpt, bert, vit, resnet, unet) on synthetic data with learnable structure, trained by
one of six ways to distribute: ddp, fsdp, tp, pp, zero (DeepSpeed) and, for gpt, 3d.  The same seed and the
same number of samples per step give the same losses whichever way is chosen, so a wrong launch shows.

The folder is self-contained: copied to a cluster it needs only Python >= 3.9 and torch (and DeepSpeed for
``zero``; and numpy, which the object collectives of older torch releases use).  Start it as a script from any
directory, one process per device::

    torchrun --nproc-per-node=2 miniapps/train.py --model gpt --paradigm fsdp

Environment (there is no other configuration):

=================  ==========================================================================================
RANK, LOCAL_RANK,  the process's place in the job; without WORLD_SIZE the program runs as one process
WORLD_SIZE
MASTER_ADDR/PORT   where rank 0 listens
MAPLE_DEVICE       cuda, xpu or cpu (default: the accelerator torch sees, else cpu)
MAPLE_BACKEND      communication backend (default: nccl for cuda, xccl for xpu, gloo for cpu)
MAPLE_RUN_DIR      where metrics.jsonl, ranks/ and checkpoints/ go, on storage that all ranks share
                   (default: the working directory)
MAPLE_RESUME       1: go on from the newest complete checkpoint, if there is one
MAPLE_STEP_SLEEP   seconds to sleep in each step, to make a run last
MAPLE_FAIL         RANK:STEP:CODE makes that rank exit with that code when it reaches that step
=================  ==========================================================================================

torch 2.6 has two gaps on the CPU that torch 2.13 has not: fsdp fails there, and pp hangs over gloo with
``--schedule 1f1b`` (the default, gpipe, works).

SIGUSR1 saves a checkpoint after the current step.  SIGTERM saves one and ends the program with code 143.
"""
