"""The private namespaces of a run, the machine's lock, and the pipe to the parent process.

disk.py       detection of a full disk
inside.py     the first process in the private namespaces
isolation.py  keep a run in private namespaces, so that nothing outlives it
lock.py       a lock for one emulation at a time per machine
mounts.py     mount(2) and unshare(2) for the calling thread

May import `common`.
"""
