"""Places in the text of a DDL statement: a column's type as written, comments at line ends, what can be blanked."""

from __future__ import annotations

import re
from dataclasses import dataclass

import sqlglot

# Words that end a column's type: what follows is a constraint or a property.
_AFTER_TYPE = re.compile(
    r"NOT|NULL|DEFAULT|PRIMARY|REFERENCES|UNIQUE|CHECK|CONSTRAINT|COMMENT|GENERATED|AUTO_?INCREMENT|IDENTITY|COLLATE|AS"
    r"|ENABLE|DISABLE|ON|CHARSET|VIRTUAL|STORED|INVISIBLE|VISIBLE|KEY|SPARSE|ROWGUIDCOL|FOREIGN|PERSISTED|MASKED|ALWAYS"
)
# What Oracle writes behind a constraint and sqlglot does not know; without it the statement means the same.
_ORACLE_STATES = frozenset({"ENABLE", "DISABLE", "NOVALIDATE", "VALIDATE", "RELY", "NORELY"})
_COMMENT = re.compile(r"\s*(?:--|#)+(.*)|\s*/\*(.*?)\*/\s*$", re.DOTALL)


@dataclass(frozen=True)
class Token:
    """A word, name, text or sign of a statement; ``end`` is the place behind its last character."""

    text: str
    start: int
    end: int


def tokenize(sql: str, dialect: str) -> list[Token]:
    """Split a statement into its tokens; comments and white space are none.

    Raises:
        sqlglot.errors.TokenError: a quote or comment is never closed.
    """
    return [Token(token.text, token.start, token.end + 1) for token in sqlglot.tokenize(sql, read=dialect)]


def reduced(sql: str, dialect: str) -> str:
    """Blank out what stands behind the column list and Oracle's constraint states; places stay as they are."""
    letters = list(sql)
    depth = 0
    tokens = tokenize(sql, dialect)
    for place, token in enumerate(tokens):
        word = token.text.upper()
        if token.text == "(":
            depth += 1
        elif token.text == ")":
            depth -= 1
            if depth == 0:
                return "".join(letters[: token.end])
        following = tokens[place + 1].text.upper() if place + 1 < len(tokens) else ""
        using = word == "USING" and following == "INDEX"
        if word == "LONG" and following == "RAW":
            # RAW alone is as good: the type's text is taken from the statement as it was.
            letters[token.start : token.end] = " " * (token.end - token.start)
        if depth >= 1 and (using or word in _ORACLE_STATES or word == "USING INDEX"):
            end = token.end
            if using or word == "USING INDEX":
                rest = tokens[place + 1 :]
                level = 0
                for later in rest:
                    if level == 0 and (later.text in {",", ")"} or later.text.upper() in _ORACLE_STATES):
                        break
                    level += {"(": 1, ")": -1}.get(later.text, 0)
                    end = later.end
            for index in range(token.start, end):
                letters[index] = " "
    return "".join(letters)


def trailing_comments(sql: str, tokens: list[Token]) -> list[tuple[int, str]]:
    """Find the comments behind something in their line: the place of that, and the text."""
    found: list[tuple[int, str]] = []
    for token, later in zip(tokens, [*tokens[1:], Token("", len(sql) + 1, len(sql) + 1)], strict=True):
        end = sql.find("\n", token.end)
        end = len(sql) if end < 0 else end
        # At the end of the line, or in front of the comma.
        wanted = later.start > end or later.text in {",", ")"}
        match = _COMMENT.match(sql[token.end : min(end, later.start)]) if wanted else None
        if match:
            text = (match.group(1) or match.group(2) or "").strip(" \t\r-*")
            if text:
                found.append((token.start, text))
    return found


def type_text(sql: str, tokens: list[Token], name_start: int) -> str:
    """Cut out the type as written: from behind the column's name to its first constraint."""
    after = [token for token in tokens if token.start > name_start]
    depth, end, begin = 0, None, None
    for place, token in enumerate(after):
        word = token.text.upper().split(" ")[0] if token.text else ""
        following = after[place + 1].text.upper() if place + 1 < len(after) else ""
        charset = token.text.upper().startswith("CHARACTER SET") or (word == "CHARACTER" and following == "SET")
        if depth == 0 and (token.text in {",", ")"} or _AFTER_TYPE.fullmatch(word) or charset):
            break
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(token.text, 0)
        begin = token.start if begin is None else begin
        end = token.end
    if begin is None or end is None:
        return ""
    text = " ".join(sql[begin:end].split())
    return re.sub(r"^\[([^\]]+)\]", r"\1", text)
