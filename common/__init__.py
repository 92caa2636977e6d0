"""What every other package may use: errors, random draws, files, grammar.

draws.py         random draws that are identical on every machine
errors.py        the errors that refabric raises on purpose
files.py         files and folders that are either complete or absent
grammar.py       English grammar for messages: plurals, lists and numbers
interrupts.py    Ctrl-C that is never lost
lines.py         lines from a stream as its pieces arrive
named_files.py   files that a user names on a command line
printable.py     untrusted texts for a terminal
privileges.py    the user that this process works for, and how root becomes it
programs.py      the environment in which other programs are started
records.py       dataclass records from and to plain JSON
side_by_side.py  run independent tasks in parallel in forked processes
stored_json.py   strict JSON for files that anybody may have written
suggest.py       known names that are close to an unknown one
version.py       the version of refabric
writers.py       who writes a `.tmp-` folder, whether that process has ended, and removing what it left

May import no other package.
"""
