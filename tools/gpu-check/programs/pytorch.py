"""Uses PyTorch under a limit: pytorch.py LIMIT."""
import sys

import torch

limit = int(sys.argv[1])
failed = 0


def expect(good, what):
    global failed
    print("ok" if good else "FAILED", what, "(PyTorch %s)" % torch.__version__)
    failed |= not good


def refused(amount):
    try:
        torch.empty(amount, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError:
        return True
    return False


expect(torch.cuda.mem_get_info()[1] == limit, "mem_get_info reports the limit")
expect(torch.cuda.get_device_properties(0).total_memory == limit, "the GPU is reported as large as the limit")
part = torch.ones(limit // 4 * 3, dtype=torch.uint8, device="cuda")
expect(int(part[-1]) == 1, "three quarters of the limit can be had and used")
expect(refused(limit // 2), "half of the limit more is refused as out of memory")
del part
torch.cuda.empty_cache()
a = torch.randn(1024, 1024, device="cuda")
expect(bool(torch.isfinite(a @ a).all()), "a matrix product works")
expect(not refused(limit // 2), "what is freed can be had again")
sys.exit(failed)
