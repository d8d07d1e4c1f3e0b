"""The steps that a search program may take."""

from __future__ import annotations

from kgrag_assets.retrieval.search_code.errors import OverBudgetError

# A statement is a step, each round of a loop is one, and so are this many parts of expressions.
PARTS_PER_STEP = 100


class Steps:
    """Counts steps, and the parts of expressions that make up steps."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts = 0
        self.taken = 0

    def step(self, line: int) -> None:
        """Take a step.

        Raises:
            OverBudgetError: there is none left.
        """
        if self.taken >= self._most:
            raise OverBudgetError(line, f"stopped after {self._most} steps")
        self.taken += 1

    def parts(self, line: int, count: int = 1) -> None:
        """Work through parts of expressions.

        Raises:
            OverBudgetError: they make up a step, and there is none left.
        """
        self._parts += count
        while self._parts >= PARTS_PER_STEP:
            self._parts -= PARTS_PER_STEP
            self.step(line)
