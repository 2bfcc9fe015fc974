"""Required values: does a whole number meet an inequality such as ``>= 300``?

Owns the reading of both. Pure. The overlay's harness counts equality as less and as greater ("< 700" held for
700, by its tolerance); here "<" and ">" are strict.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from judges.rule_errors import RuleError

_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
_INEQUALITY = re.compile(r"\s*(<=|>=|==|<|>)\s*([+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}))\s*")
_WHOLE_NUMBER = re.compile(r"[+-]?\d{1,40}")


def whole_number(text: str) -> int | None:
    """Read a whole number with or without commas (``1,200``).

    None for anything else: decimals, units, more than 40 digits.
    """
    digits = text.strip().replace(",", "")
    return int(digits) if digits.isascii() and _WHOLE_NUMBER.fullmatch(digits) else None


def meets(value: int, inequality: str) -> bool:
    """Whether ``value`` meets an inequality: one of ``<= >= == < >`` and a number.

    Raises:
        RuleError: for anything else.
    """
    found = _INEQUALITY.fullmatch(inequality)
    if found is None:
        raise RuleError(
            f"required_values: expected an inequality such as '>= 300', found {inequality!r}; correct the task file"
        )
    return _COMPARISONS[found[1]](value, float(found[2]))
