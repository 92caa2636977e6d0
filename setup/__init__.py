"""Set up a machine (install.sh), and check that it can run emulations (doctor.py).

lock.py                  writes requirements.txt anew, with hashes
requirements-source.txt  packages that have no wheel
kernel/                  build the kernel of the engine `linux`

May import `common`, `fabric`, `topos`, `workloads`, `model` and `engines`.
"""
