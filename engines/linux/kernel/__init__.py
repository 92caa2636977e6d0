"""The guest's kernel: what it is made from (fragment.config, edits/, congestion/), and where built ones are.

source.py  what a kernel is built from, and a hash of it
store.py   built kernels, one folder each, outside the clone

`setup/kernel/` builds it. The C files here and the text that the edits insert are parts of the Linux kernel
and have its licence (GPL-2.0; docs/virtual-linux.md).

May import `common` and `model`.
"""
