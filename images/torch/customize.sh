#!/bin/sh
# Read by tools/mkimage/install.sh: $root is the new root, and inside runs a command in it.
inside useradd --create-home --uid 1000 --shell /bin/bash work
ln -sf vim.tiny "$root/usr/bin/vim"

# Debian builds PyTorch without libuv, which torchrun and the stores of workers take for granted, some of them
# whatever USE_LIBUV says. The store of torch.distributed does without it here.
inside python3 - <<'END'
import py_compile
path = "/usr/lib/python3/dist-packages/torch/distributed/__init__.py"
text = open(path).read()
mark = "    class _DistributedPdb("
store = '''    class TCPStore(TCPStore):
        def __init__(self, *args, use_libuv=False, **kwargs):
            super().__init__(*args, use_libuv=False, **kwargs)

'''
assert text.count(mark) == 1, path
open(path, "w").write(text.replace(mark, store + mark))
py_compile.compile(path, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
END
