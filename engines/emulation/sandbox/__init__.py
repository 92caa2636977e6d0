"""The private namespaces of a run, and the root helper that makes them.

client.py     start the helper, become the user, lock the machine, open a connection
helper.py     the root helper: the part of refabric that stays root
inside.py     the first process in the private namespaces
isolation.py  keep a run in private namespaces, so that nothing outlives it
mounts.py     mount(2), open_tree(2), move_mount(2) and unshare(2) for the calling thread

May import `common`.
"""
