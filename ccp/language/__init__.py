"""The language of datapath programs: two notations, one instruction set.

compiler.py       compile the text of a program in either notation
generator.py      compile declarations and events to instructions
instructions.py   instructions of the datapath and their binary form
lisp.py           programs in CCP's own notation, as portus reads it
programs.py       the programs that an agent installs, by name and by number
python_syntax.py  programs in a small part of Python's syntax
tree.py           the syntax tree of both notations

May import `common` and `ccp.names`.
"""
