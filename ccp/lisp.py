"""Programs in CCP's own notation, as portus reads it. Pure.

(def (Report (volatile acked 0) (inflight 0)) (gain 8))
(when true
  (:= Report.acked (+ Report.acked Ack.bytes_acked))
  (fallthrough))
(when (> Micros Flow.rtt_sample_us)
  (:= Micros 0)
  (report))
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ccp.language import (
    INFINITE,
    MAX_DEPTH,
    MAX_NUMBER,
    Assignment,
    Declaration,
    Expression,
    Literal,
    Name,
    Op,
    Operation,
    Position,
    ProgramError,
    SyntaxTree,
    WhenClause,
)

OPERATIONS = {
    "+": Op.ADD, "add": Op.ADD, "-": Op.SUB, "sub": Op.SUB, "*": Op.MUL, "mul": Op.MUL, "/": Op.DIV,
    "div": Op.DIV, "==": Op.EQUIV, "eq": Op.EQUIV, ">": Op.GT, "gt": Op.GT, "<": Op.LT, "lt": Op.LT,
    "max": Op.MAX, "wrapped_max": Op.MAXWRAP, "min": Op.MIN, "ewma": Op.EWMA, "if": Op.IF, "!if": Op.NOTIF,
    "&&": Op.MUL, "and": Op.MUL, "||": Op.ADD, "or": Op.ADD,
}  # fmt: skip
_WORDS = {"true": 1, "false": 0}
_TOKEN = re.compile(r"\s+|#[^\n]*|(?P<token>[()]|[^\s()#]+)")


@dataclass(frozen=True)
class Atom:
    text: str
    at: Position


@dataclass(frozen=True)
class Form:
    """A list in parentheses."""

    items: tuple[Atom | Form, ...]
    at: Position

    @property
    def head(self) -> str:
        return self.items[0].text if self.items and isinstance(self.items[0], Atom) else ""


def parse(text: str) -> SyntaxTree:
    """Return the declarations and events. Raises ProgramError with line and column."""
    forms = _forms(text)
    if not forms or forms[0].head != "def":
        place = forms[0].at if forms else Position(1, 1)
        raise place.error("a program begins with (def ...)")
    return SyntaxTree(tuple(_declarations(forms[0])), tuple(_event(form) for form in forms[1:]))


def _forms(text: str) -> list[Form]:
    open_: list[tuple[list[Atom | Form], Position]] = [([], Position(1, 1))]
    for atom in _tokens(text):
        if atom.text == "(":
            if len(open_) > MAX_DEPTH:
                raise atom.at.too_deep()
            open_.append(([], atom.at))
        elif atom.text == ")":
            if len(open_) == 1:
                raise atom.at.error("this parenthesis closes nothing")
            items, at = open_.pop()
            open_[-1][0].append(Form(tuple(items), at))
        else:
            open_[-1][0].append(atom)
    if len(open_) > 1:
        raise open_[-1][1].error("this parenthesis is not closed")
    forms: list[Form] = []
    for item in open_[0][0]:
        if not isinstance(item, Form):
            raise item.at.error(f"{item.text} is outside of all parentheses")
        forms.append(item)
    return forms


def _tokens(text: str) -> Iterator[Atom]:
    line, start = 1, 0
    for match in _TOKEN.finditer(text):
        if match["token"]:
            place = Position(line, match.start() - start + 1)
            yield Atom(place.name(match["token"]), place)
        line += match[0].count("\n")
        if "\n" in match[0]:
            start = match.start() + match[0].rindex("\n") + 1


def _declarations(form: Form) -> Iterator[Declaration]:
    for item in form.items[1:]:
        if not isinstance(item, Form):
            raise item.at.error("a declaration is (NAME NUMBER) or (volatile NAME NUMBER)")
        if item.head == "Report":
            for field in item.items[1:]:
                yield _declaration(field, report=True)
        else:
            yield _declaration(item, report=False)


def _declaration(item: Atom | Form, report: bool) -> Declaration:
    atoms = [each for each in item.items if isinstance(each, Atom)] if isinstance(item, Form) else []
    volatile = len(atoms) == 3 and atoms[0].text == "volatile"
    if not isinstance(item, Form) or len(atoms) != len(item.items) or len(atoms) != 2 + volatile:
        raise item.at.error("a declaration is (NAME NUMBER) or (volatile NAME NUMBER)")
    name, value = atoms[-2:]
    if value.text in ("+infinity", "infinity"):
        initial = INFINITE
    else:
        number = _atom(value)
        if not isinstance(number, Literal):
            raise value.at.error("the initial value must be a number or +infinity")
        initial = number.value
    return Declaration(name.at.name(name.text.removeprefix("Report.")), report, volatile, initial, item.at)


def _event(form: Form) -> WhenClause:
    if form.head != "when" or len(form.items) < 3:
        raise form.at.error("an event is (when CONDITION STATEMENT ...)")
    return WhenClause(_expression(form.items[1]), tuple(_statement(each) for each in form.items[2:]))


def _statement(item: Atom | Form) -> Assignment:
    if isinstance(item, Form) and len(item.items) == 1 and item.head in ("report", "fallthrough"):
        target = "__shouldReport" if item.head == "report" else "__fallthrough"
        return Assignment(Name(target, item.at), Literal(1, item.at))
    if isinstance(item, Form) and item.head in (":=", "bind") and len(item.items) == 3:
        target_item = item.items[1]
        if isinstance(target_item, Atom) and isinstance(_atom(target_item), Name):
            return Assignment(Name(target_item.text, target_item.at), _expression(item.items[2]))
    raise item.at.error("a statement is (:= NAME EXPRESSION), (report) or (fallthrough)")


def _expression(item: Atom | Form) -> Expression:
    if isinstance(item, Atom):
        return _atom(item)
    if item.head not in OPERATIONS:
        raise item.at.error(f"unknown operation {item.head or '()'}; choose from: {' '.join(OPERATIONS)}")
    if len(item.items) != 3:
        raise item.at.error(f"{item.head} takes two values")
    return Operation(OPERATIONS[item.head], _expression(item.items[1]), _expression(item.items[2]), item.at)


def _atom(atom: Atom) -> Name | Literal:
    if atom.text in _WORDS:
        return Literal(_WORDS[atom.text], atom.at)
    if not (atom.text.isascii() and atom.text.isdecimal()):
        if atom.text[0].isdigit() or atom.text[0] in "+-":
            raise atom.at.error(f"numbers are integers from 0 to {MAX_NUMBER}")
        return Name(atom.text, atom.at)
    if len(atom.text) > 12 or int(atom.text) > MAX_NUMBER:
        raise atom.at.error(f"numbers are integers from 0 to {MAX_NUMBER}")
    return Literal(int(atom.text), atom.at)


__all__ = ["OPERATIONS", "ProgramError", "parse"]
