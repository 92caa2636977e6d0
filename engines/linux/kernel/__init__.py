"""The guest's kernel: what it is made from, and where built ones are. setup/kernel_build.py builds it.

The C files here and the text that the edits insert are parts of the Linux kernel and have its licence
(GPL-2.0; docs/virtual-linux.md). May import `common` and `model`.
"""
