"""What a rule is, how it fails, and how a sequence of rules is run.

A rule is a small function ``rule_...(case)`` whose docstring's first line states it. The case
holds the object and the data it is tried on. A broken rule raises :class:`ConformanceError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

__all__ = ["BoundRule", "ConformanceError", "Report", "Rule", "Rules", "bind", "run"]

Case = TypeVar("Case")
# Says what a case lacks for a rule to apply to it; "" if nothing.
Needs = Callable[[Any], str]


class ConformanceError(AssertionError):
    """An object breaks a rule of its interface.

    The message says which rule, what was expected and what came. `rules` holds the names.
    """

    def __init__(self, message: str, rules: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.rules = tuple(rules)


@dataclass(frozen=True)
class Rule(Generic[Case]):
    """One rule: a function of a case, and what the case must have for it to apply."""

    check: Callable[[Case], None]
    needs: tuple[Needs, ...] = ()

    @property
    def name(self) -> str:
        """The function's name."""
        return self.check.__name__

    @property
    def text(self) -> str:
        """The rule in words: the first line of the function's docstring."""
        return (self.check.__doc__ or "").strip().partition("\n")[0].rstrip(".")


class Rules(list[Rule[Case]]):
    """A list of rules that functions are added to by decorating them."""

    def add(self, *needs: Needs) -> Callable[[Callable[[Case], None]], Callable[[Case], None]]:
        """Decorate a function as a rule; `needs` say what a case lacks for it to apply."""

        def decorate(check: Callable[[Case], None]) -> Callable[[Case], None]:
            self.append(Rule(check, needs))
            return check

        return decorate


@dataclass(frozen=True)
class BoundRule:
    """One rule for one object. Call it: it raises `ConformanceError` if the rule is broken."""

    subject: str
    rule: Rule[Any]
    case: Any

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.rule.name

    def lacking(self) -> str:
        """Return why the rule does not apply to the object; "" if it does."""
        try:
            return next((text for need in self.rule.needs if (text := need(self.case))), "")
        except Exception:  # what cannot even be asked is for the rule to report
            return ""

    def __call__(self) -> None:
        """Hold the object to the rule."""
        head = f"{self.subject} breaks {self.name} ({self.rule.text})"
        try:
            self.rule.check(self.case)
        except ConformanceError as error:
            raise ConformanceError(f"{head}: {error}", [self.name]) from error
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise ConformanceError(f"{head}: expected no error, got {what}", [self.name]) from error

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


@dataclass(frozen=True)
class Report:
    """What was checked: the rules that hold, and those that do not apply, with the reason."""

    subject: str
    held: tuple[str, ...]
    left_out: dict[str, str]

    def __str__(self) -> str:
        lines = [f"{self.subject}: {len(self.held)} rules hold"]
        lines += [f"  {name} does not apply: {why}" for name, why in self.left_out.items()]
        return "\n".join(lines)


def bind(subject: str, rules: Iterable[Rule[Any]], case: Any) -> list[BoundRule]:
    """Return the rules that apply to a case, ready to be called."""
    bound = (BoundRule(subject, rule, case) for rule in rules)
    return [rule for rule in bound if not rule.lacking()]


def run(
    subject: str, rules: Sequence[Rule[Any]], case: Any, only: Iterable[str] | None = None
) -> Report:
    """Run all rules, or those that `only` names, and raise one error for all that are broken."""
    chosen = {rule.name for rule in rules} if only is None else set(only)
    unknown = chosen - {rule.name for rule in rules}
    if unknown:
        names = ", ".join(rule.name for rule in rules)
        raise ValueError(f"there is no rule {sorted(unknown)}; the rules are {names}")
    held, left_out, broken = [], {}, []
    for rule in rules:
        if rule.name not in chosen:
            continue
        bound = BoundRule(subject, rule, case)
        lacking = bound.lacking()
        if lacking:
            left_out[rule.name] = lacking
            continue
        try:
            bound()
            held.append(rule.name)
        except ConformanceError as error:
            broken.append(error)
    if broken:
        rules_broken = [name for error in broken for name in error.rules]
        raise ConformanceError("\n".join(map(str, broken)), rules_broken) from broken[0]
    return Report(subject, tuple(held), left_out)
