"""Programs in a small part of Python's syntax. Pure.

    acked: volatile = 0          # a field of the report, reset after each report
    inflight: report = 0         # one that keeps its value
    gain: control = 8            # a number that the agent may set

    acked += Ack.bytes_acked     # on every acknowledgement
    inflight = Flow.bytes_in_flight
    if Ack.lost_pkts_sample > 0 or Flow.was_timeout:
        report()

All `if` statements are tried on every acknowledgement. They cannot be nested.
"""

from __future__ import annotations

import ast
import bisect
import warnings
from collections.abc import Callable, Iterator

from ccp.language import (
    INFINITE,
    MAX_DEPTH,
    MAX_NUMBER,
    Assignment,
    Conditional,
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

KINDS = {"volatile": (True, True), "report": (True, False), "control": (False, False)}
"""Words of declarations: whether it is a field of the report, and whether each report resets it."""
_BINARY: dict[type[ast.AST], Op] = {
    ast.Add: Op.ADD, ast.Sub: Op.SUB, ast.Mult: Op.MUL, ast.FloorDiv: Op.DIV, ast.Div: Op.DIV,
    ast.Gt: Op.GT, ast.Lt: Op.LT, ast.Eq: Op.EQUIV,
}  # fmt: skip
_LOGIC: dict[type[ast.AST], Op] = {ast.And: Op.MUL, ast.Or: Op.ADD}
_FUNCTIONS = {"min": Op.MIN, "max": Op.MAX, "later": Op.MAXWRAP, "ewma": Op.EWMA}


def parse(text: str) -> SyntaxTree:
    """Return the declarations and events. Raises ProgramError with line and column."""
    try:
        tree = _parsed(text)
    except SyntaxError as error:
        place = Position(error.lineno or 1, error.offset or 1)
        raise place.error(error.msg) from None
    except ValueError as error:
        raise ProgramError(f"program: {error}") from None
    except (RecursionError, MemoryError):
        lines = text.split("\n")
        fitting = bisect.bisect(range(len(lines)), False, key=lambda n: _overflows(lines[: n + 1]))
        raise Position(fitting + 1, 1).too_deep() from None
    _check_depth(tree)
    statements = tree.body
    declarations = [_declaration(each) for each in statements if isinstance(each, ast.AnnAssign)]
    rest = [each for each in statements if not isinstance(each, ast.AnnAssign)]
    return SyntaxTree(tuple(declarations), tuple(_events(rest)))


def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings(action="ignore"):  # of Python, about its future syntax
        return ast.parse(text)


def _overflows(lines: list[str]) -> bool:
    """Return whether these lines overflow the stack of Python's parser."""
    try:
        _parsed("\n".join(lines))
    except (RecursionError, MemoryError):
        return True
    except SyntaxError:
        pass  # an expression goes on in the next line
    return False


def _check_depth(tree: ast.AST) -> None:
    """Raise ProgramError for an expression that the functions below could not descend into."""
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if isinstance(node, ast.expr):
            depth += 1
            if depth > MAX_DEPTH:
                raise _place(node).too_deep()
        waiting += [(child, depth) for child in ast.iter_child_nodes(node)]


def _place(node: ast.stmt | ast.expr) -> Position:
    return Position(node.lineno, node.col_offset + 1)


def _declaration(node: ast.AnnAssign) -> Declaration:
    kind = node.annotation.id if isinstance(node.annotation, ast.Name) else ""
    if kind not in KINDS or not isinstance(node.target, ast.Name):
        raise _place(node).error(f"write NAME: KIND = NUMBER with one of the kinds {', '.join(KINDS)}")
    report, volatile = KINDS[kind]
    at = _place(node)
    return Declaration(at.name(node.target.id), report, volatile, _initial(node), at)


def _initial(node: ast.AnnAssign) -> int:
    if isinstance(node.value, ast.Name) and node.value.id == "infinity":
        return INFINITE
    value = _expression(node.value) if node.value else None
    if not isinstance(value, Literal):
        raise _place(node.value or node).error("the initial value must be a number or infinity")
    return value.value


def _events(statements: list[ast.stmt]) -> Iterator[WhenClause]:
    """Join statements outside of `if` to events that always happen."""
    always: list[ast.stmt] = []
    for each in [*statements, None]:
        if each is not None and not isinstance(each, ast.If):
            always.append(each)
            continue
        if always:
            yield _event(Literal(1, _place(always[0])), always)
            always = []
        if each is not None:
            if each.orelse:
                raise _place(each.orelse[0]).error("elif and else are not supported; write another if")
            yield _event(_expression(each.test), each.body)


def _event(condition: Expression, body: list[ast.stmt]) -> WhenClause:
    at = _place(body[-1])
    onwards = Assignment(Name("__fallthrough", at), Literal(1, at))
    return WhenClause(condition, (*(_assignment(each) for each in body), onwards))


def _assignment(node: ast.stmt) -> Assignment:
    at = _place(node)
    if isinstance(node, ast.Expr) and _is_call(node.value, "report"):
        return Assignment(Name("__shouldReport", at), Literal(1, at))
    if isinstance(node, ast.AugAssign):
        target = _name(node.target)
        return Assignment(target, Operation(_operation(node.op, at), target, _expression(node.value), at))
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return Assignment(_name(node.targets[0]), _expression(node.value))
    raise at.error("a statement must be an assignment, an if that is not inside another, or report()")


def _is_call(node: ast.expr, name: str) -> bool:
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    return called and not node.args and not node.keywords  # type: ignore[attr-defined]


def _name(node: ast.expr) -> Name:
    at = _place(node)
    if isinstance(node, ast.Name):
        return Name(at.name(node.id), at)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return Name(at.name(f"{node.value.id}.{node.attr}"), at)
    raise at.error("a name is expected here")


def _operation(node: ast.operator | ast.cmpop, at: Position) -> Op:
    if type(node) not in _BINARY:
        raise at.error(f"the datapath has no operation {type(node).__name__}; it has + - * // < > ==")
    return _BINARY[type(node)]


def _expression(node: ast.expr) -> Expression:
    parse_it = _PARSERS.get(type(node))
    if parse_it is None:
        raise _place(node).error(f"{type(node).__name__} is not part of the language")
    return parse_it(node)


def _number(node: ast.Constant) -> Expression:
    value = node.value
    if isinstance(value, bool):
        return Literal(int(value), _place(node))
    if not isinstance(value, int) or value > MAX_NUMBER:
        raise _place(node).error(f"numbers are integers from 0 to {MAX_NUMBER}")
    return Literal(value, _place(node))


def _binary(node: ast.BinOp) -> Expression:
    at = _place(node)
    return Operation(_operation(node.op, at), _expression(node.left), _expression(node.right), at)


def _compare(node: ast.Compare) -> Expression:
    if len(node.ops) != 1:
        raise _place(node).error("compare two values at a time, and join comparisons with and")
    at = _place(node)
    return Operation(
        _operation(node.ops[0], at), _expression(node.left), _expression(node.comparators[0]), at
    )


def _logic(node: ast.BoolOp) -> Expression:
    if len(node.values) > MAX_DEPTH:
        raise _place(node).too_deep()
    first, *others = (_expression(each) for each in node.values)
    for other in others:
        first = Operation(_LOGIC[type(node.op)], first, other, _place(node))
    return first


def _not(node: ast.UnaryOp) -> Expression:
    at = _place(node)
    if not isinstance(node.op, ast.Not):
        raise at.error("the datapath has no negative numbers")
    return Operation(Op.EQUIV, _expression(node.operand), Literal(0, at), at)


def _choice(node: ast.IfExp) -> Expression:
    return Conditional(_expression(node.test), _expression(node.body), _expression(node.orelse), _place(node))


def _call(node: ast.Call) -> Expression:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in _FUNCTIONS or len(node.args) != 2 or node.keywords:
        raise _place(node).error(f"functions are {', '.join(_FUNCTIONS)}, with two arguments")
    left, right = (_expression(each) for each in node.args)
    return Operation(_FUNCTIONS[name], left, right, _place(node))


_PARSERS: dict[type[ast.expr], Callable[..., Expression]] = {
    ast.Constant: _number, ast.BinOp: _binary, ast.Compare: _compare, ast.BoolOp: _logic, ast.UnaryOp: _not,
    ast.IfExp: _choice, ast.Call: _call, ast.Name: _name, ast.Attribute: _name,
}  # fmt: skip
