"""What can go wrong with a search program; neither error leaves this package."""

from __future__ import annotations


class ProgramError(Exception):
    """A program cannot go on; ``line`` counts from 1, 0 where nothing says which it is."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


class OverBudgetError(ProgramError):
    """A program has taken all the steps, asked all the questions, or used all the time that it may."""
