"""Build the kernel of the engine `linux` from the distribution's packaged source, and remove built ones.

build.py     build the guest's kernel
machine.py   what a build needs of the machine
package.py   the packaged kernel source
progress.py  progress of a build
running.py   programs of a build, with log and deadlines
trial.py     a first boot of a built kernel

May import `common` and `engines`.
"""
