"""What a terminal and a script get to see of a mapping."""

from __future__ import annotations

import io
import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from kgrag_assets.cli.plain_text import attribute_name, plain
from kgrag_assets.cli.showing import ShowError, an_attribute_to_look_at, as_json, explain, find_attribute, summary
from kgrag_assets.lake.lake import Lake
from kgrag_assets.rows.schema_attributes import SCHEMA_ATTRIBUTES
from kgrag_assets_tests.cli.finished_task import PAIRS, SOURCE, TARGET, attribute_row, fill, publish_snapshot

LONG = SOURCE[5][1]
WIDTHS = pytest.mark.parametrize("width", [40, 80, 160])


def _printed(width: int, show: Any, *args: Any, **options: Any) -> str:
    buffer = io.StringIO()
    show(Console(file=buffer, width=width, **options), *args)
    return buffer.getvalue()


def _words(text: str) -> str:
    """Return the text without its line breaks and paddings."""
    return " ".join(text.split())


def test_summary_shows_each_decision_with_score_and_fact(lake: Lake) -> None:
    fill(lake)
    publish_snapshot(lake, lake.paths.snapshot)
    text = _printed(160, summary, lake, "clinic")
    lines = [line.split("  ") for line in text.splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert ["dob", "person.birth_datetime", "0.88", "human — date of birth — day of birth"] in cells
    assert ["pat_no", "person.person_id", "0.91"] in cells
    assert ["parking_permit_no", "no match", "no target scores 0.50 or more; the best has 0.45"] in cells
    assert text.index("pat_master") < text.index("dob") < text.index("lab.results") < text.index("val.num")
    assert "gender_concept_id  " in text
    assert "person.person_id  0.53" not in _words(text)  # an alternative is not part of the mapping
    assert "clinic: 4 proposed, 2 source columns without a match" in text


def test_summary_shows_metrics_cost_and_database(lake: Lake) -> None:
    fill(lake)
    before = _printed(80, summary, lake, "clinic")
    assert _words(f"{lake.paths.snapshot} is not published yet") in before
    publish_snapshot(lake, lake.paths.snapshot)
    text = _words(_printed(80, summary, lake, "clinic"))
    assert (
        text.index("precision 0.750 0.65 to 0.85 5") < text.index("hit@1 0.800") < text.index("reduction ratio 0.700")
    )
    assert "mrr - 5" in text
    assert "3 of 5 true pairs found; lost: 1 judged, but another (or none) proposed, 1 never became a candidate" in text
    assert "9 pairs judged by openai (gpt-4o-mini): 1,800 tokens in, 180 out, 0.0009 USD" in text
    assert "1 without an answer that could be read: 1 timeout" in text
    assert "1 input row not taken; the first: source.csv, row 9: the column has no name" in text
    assert text.endswith(f"database: {lake.paths.snapshot}")


def test_summary_without_reference_and_without_calls(lake: Lake) -> None:
    fill(lake, reference=False, judge="offline")
    text = _words(_printed(80, summary, lake, "clinic"))
    assert "No reference, so no metrics" in text
    assert "9 pairs judged by offline (offline-1)" in text
    assert "tokens" not in text
    assert "USD" not in text


def test_a_database_path_is_never_broken(lake: Lake) -> None:
    fill(lake)
    assert str(lake.paths.snapshot) in _printed(20, summary, lake, "clinic")


@WIDTHS
def test_no_line_is_wider_than_the_terminal_and_long_names_are_whole(lake: Lake, width: int) -> None:
    fill(lake)
    shown = (
        _printed(width, summary, lake, "clinic"),
        _printed(width, explain, lake, "clinic", LONG),
        _printed(width, explain, lake, "clinic", "unit_source_value"),
    )
    for text in shown:
        lines = [line for line in text.splitlines() if not line.startswith("database:")]
        assert max(map(cell_len, lines)) <= width
    # The name is folded over several lines of its cell: put together, the pieces are the whole of it.
    width_of_cell = max(len("source column"), min(len(LONG), width // (5 if width > 100 else 3)))
    pieces = [line[2 : 2 + width_of_cell].strip() for line in shown[0].splitlines()]
    assert LONG in "".join(pieces)


def test_a_long_fact_is_cut_in_the_summary_and_whole_in_the_explanation(lake: Lake) -> None:
    text = " ".join(f"word{place}" for place in range(100))
    fact = {"head": "wd:Q1", "relation": "wd:P1", "tail": "wd:Q2", "text": text}
    pair = (SOURCE[0][:2], TARGET[0][:2], 0.9, "proposed", 0.9, "parsed", (fact,))
    fill(lake, source=SOURCE[:1], pairs=(pair,), not_matched=(), reference=False)
    for width in (80, 160):
        lines = _printed(width, summary, lake, "clinic").splitlines()
        assert 2 <= sum("word" in line for line in lines) <= 3
        assert any(line.rstrip().endswith("…") for line in lines)
        assert text in _words(_printed(width, explain, lake, "clinic", "pat_no"))


def test_pipes_and_no_color_get_no_escape_sequences(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(lake)
    assert "\x1b" not in _printed(80, summary, lake, "clinic", force_terminal=False)
    coloured = _printed(80, summary, lake, "clinic", force_terminal=True, color_system="truecolor")
    assert "\x1b[36m" in coloured
    assert "\x1b[2m" in coloured  # no match is dim
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[36m" not in _printed(80, summary, lake, "clinic", force_terminal=True, color_system="truecolor")


def test_explain_a_source_column(lake: Lake) -> None:
    fill(lake)
    text = _words(_printed(160, explain, lake, "clinic", "pat_master.dob"))
    assert "pat_master.dob (source) type date, 12 distinct values, 25% null" in text
    assert "column Day of birth table Patients of the clinic samples 1961-04-02 | 1990-12-30" in text
    assert "mapped to person.birth_datetime because: best of its list" in text
    assert "1 person.birth_datetime * 0.88 0.95 0.78 0.60 parsed yes" in text
    assert "2 person.person_id 0.41 0.30 0.31 0.60 recovered" in text
    assert "judge: dob and birth_datetime say the same" in text
    cited = (
        "- human — date of birth — day of birth triple by vector triples · 0.80 · Q5 P569 Q2000001 · cited by the judge"
    )
    assert cited in text
    assert text.count("cited by the judge") == 2  # once below each of the two candidates
    assert "reference: person.birth_datetime (proposed)" in text


def test_explain_says_what_is_missing(lake: Lake) -> None:
    fill(lake)
    unmatched = _words(_printed(120, explain, lake, "clinic", LONG))
    assert "no match because: no target scores 0.50 or more; the best has 0.45" in unmatched
    assert "reference: measurement.unit_source_value (judged, not proposed)" in unmatched
    unanswered = _words(_printed(120, explain, lake, "clinic", "sex"))
    assert "person.gender_concept_id * 0.55 - 0.45 0.60 timeout yes" in unanswered
    assert "judge: no reason given" in unanswered
    assert "no fact in the knowledge graph was near enough" in unanswered
    lost = _words(_printed(120, explain, lake, "clinic", "lab.results.val.num"))
    assert "reference: measurement.unit_source_value (never became a candidate)" in lost
    nothing = _words(_printed(120, explain, lake, "clinic", "parking_permit_no"))
    assert "reference: it maps this column to nothing" in nothing


def test_explain_a_target_column(lake: Lake) -> None:
    fill(lake)
    text = _words(_printed(120, explain, lake, "clinic", "person.person_id"))
    assert "person.person_id (target)" in text
    assert "mapped from pat_master.pat_no" in text
    order = [text.index(f"{place} pat_master.{name}") for place, name in enumerate(("pat_no *", "sex", "dob"), start=1)]
    assert order == sorted(order)
    unused = _words(_printed(120, explain, lake, "clinic", "unit_source_value"))
    assert "not used by the mapping because: 1 source column judged against it, none proposed" in unused


def test_only_the_best_ten_are_listed_and_the_rest_counted(lake: Lake) -> None:
    target = tuple(("t", f"c{place:02}", "", "unknown", "", "", []) for place in range(14))
    pairs = tuple(
        (SOURCE[0][:2], column[:2], 0.9 - place / 100, "alternative", 0.5, "parsed", ())
        for place, column in enumerate(target)
    )
    fill(lake, target=target, pairs=pairs, reference=False, not_matched=tuple(column[:2] for column in SOURCE))
    text = _printed(80, explain, lake, "clinic", "pat_no")
    assert "t.c09" in text
    assert "t.c10" not in text
    assert "and 4 more" in text
    assert len(as_json(lake, "clinic", "pat_no")["candidates"]) == 14


HOSTILE = (
    (
        "[bold red]t[/]",
        "[/]x",
        "[link=http://x]int",
        "integer",
        "\x1b]0;title\x07owned",
        "\x1b[2J\x9b31mred\u202e",
        ["a\nb"],
    ),
    ("cr\rlf\n", ":smile:", "", "unknown", "\x00\x07\x08", "", ["\x1b[31m"]),
)


@WIDTHS
def test_hostile_text_is_neither_markup_nor_control(lake: Lake, width: int) -> None:
    facts = ({"head": "wd:Q1", "relation": "wd:P1", "tail": "wd:Q2", "text": "[bold]f[/bold]\x1b[5m\x85"},)
    pairs = tuple((column[:2], TARGET[0][:2], 0.9, "proposed", 0.9, "parsed", facts) for column in HOSTILE)
    fill(lake, source=HOSTILE, pairs=pairs, not_matched=(), reference=False)
    shown = [_printed(width, summary, lake, "clinic")]
    shown += [_printed(width, explain, lake, "clinic", column) for column in ("[/]x", ":smile:", "person_id")]
    for text in shown:
        controls = {letter for letter in text if unicodedata.category(letter) == "Cc"} - {"\n"}
        assert controls == set()
        assert "\u202e" not in text
    whole = "".join("".join(shown).split())
    assert "[boldred]t[/]" in whole
    assert "[/]x" in whole
    assert ":smile:" in whole
    assert "[bold]f[/bold]" in whole


@given(st.text())
def test_plain_text_has_no_control_characters(text: str) -> None:
    kept = plain(text)
    assert all(unicodedata.category(letter) not in ("Cc", "Cs") for letter in kept)
    assert plain(kept) == kept
    assert len(plain(text, 5)) <= 5


def test_plain_text_keeps_what_names_are_made_of() -> None:
    for name in ("Größe", "🩺 pulse", "👩‍⚕️", "a\u00a0b", "[x]", "=1+1", "病人"):
        assert plain(name) == name


def _found(frame: Any, text: str) -> tuple[str, str, str]:
    row = find_attribute(frame, text)
    return row["side"], row["table_name"], row["column_name"]


def _schema(*attributes: tuple[str, str, str]) -> Any:
    rows = [
        attribute_row("t", side, place, (table, column, "", "unknown", "", "", []))
        for place, (side, table, column) in enumerate(attributes)
    ]
    return SCHEMA_ATTRIBUTES.frame(rows)


def test_find_tries_every_split_of_a_dotted_name() -> None:
    frame = _schema(("source", "a.b", "c"), ("source", "x", "y.z"), ("source", ".", "."))
    assert _found(frame, "a.b.c") == ("source", "a.b", "c")
    assert _found(frame, "x.y.z") == ("source", "x", "y.z")
    assert _found(frame, "...") == ("source", ".", ".")


def test_find_two_readings_of_a_dotted_name() -> None:
    frame = _schema(("source", "a.b", "c"), ("source", "a", "b.c"))
    with pytest.raises(ShowError, match=r'several columns: "a\.b"\.c \(source\), a\."b\.c" \(source\)'):
        find_attribute(frame, "a.b.c")
    assert _found(frame, '"a.b".c') == ("source", "a.b", "c")
    assert _found(frame, 'a."b.c"') == ("source", "a", "b.c")


def test_find_prefers_the_source_and_exact_case() -> None:
    frame = _schema(("target", "p", "id"), ("source", "p", "id"), ("source", "P", "ID"), ("target", "p", "Only"))
    assert _found(frame, "p.id") == ("source", "p", "id")
    assert _found(frame, "target:p.id") == ("target", "p", "id")
    assert _found(frame, "P.ID") == ("source", "P", "ID")
    assert _found(frame, "ID") == ("source", "P", "ID")
    assert _found(frame, "only") == ("target", "p", "Only")
    with pytest.raises(ShowError, match="several columns"):
        find_attribute(frame, "P.id")


def test_find_a_column_alone_only_where_it_is_unique() -> None:
    frame = _schema(("source", "a", "id"), ("source", "b", "id"), ("source", "b", "name"))
    assert _found(frame, "name") == ("source", "b", "name")
    with pytest.raises(ShowError, match=r"a\.id \(source\), b\.id \(source\)"):
        find_attribute(frame, "id")


def test_find_nothing_names_the_nearest() -> None:
    frame = _schema(("source", "pat", "birth_date"), ("target", "person", "birthday"), ("source", "lab", "zzz"))
    with pytest.raises(
        ShowError, match=r"no column birth_dat .* nearest are pat\.birth_date \(source\), person\.birthday"
    ):
        find_attribute(frame, "birth_dat")
    with pytest.raises(ShowError) as error:
        find_attribute(frame, "\x1b[31mx.y")
    assert "\x1b" not in str(error.value)
    with pytest.raises(ShowError, match="no attributes"):
        find_attribute(SCHEMA_ATTRIBUTES.empty(), "x")


_NAME = st.text(st.sampled_from('ab."'), min_size=1, max_size=4)


@given(st.lists(st.tuples(_NAME, _NAME), min_size=1, max_size=8, unique=True))
def test_the_quoted_spelling_of_a_name_finds_it(names: list[tuple[str, str]]) -> None:
    frame = _schema(*(("source", *name) for name in names))
    for table, column in names:
        text = attribute_name(table, column)
        # The quotes themselves may be part of another name.
        meant = [name for name in names if text in (".".join(name), attribute_name(*name))]
        if len(meant) == 1:
            assert _found(frame, text) == ("source", table, column)
        else:
            with pytest.raises(ShowError, match="several"):
                find_attribute(frame, text)


def test_an_unknown_task_names_the_nearest_and_an_unmapped_one_the_command(lake: Lake) -> None:
    with pytest.raises(ShowError, match="kgrag init"):
        as_json(lake, "clinic", None)
    fill(lake, "clinic")
    (lake.paths.tasks / "my task").mkdir(parents=True)
    with pytest.raises(ShowError, match="no task clinc; the nearest names are clinic"):
        as_json(lake, "clinc", None)
    with pytest.raises(ShowError, match="not mapped yet: run  kgrag run 'my task'"):
        as_json(lake, "my task", None)


def test_json_of_the_mapping(lake: Lake) -> None:
    fill(lake)
    value = json.loads(json.dumps(as_json(lake, "clinic", None), allow_nan=False))
    assert (value["proposed"], value["no_match"]) == (4, 2)
    assert [row["source_column"] for row in value["mapping"]] == [column[1] for column in SOURCE]
    assert value["mapping"][1]["top_fact"] == "human — date of birth — day of birth"
    assert {row["metric"]: row["value"] for row in value["metrics"]}["mrr"] is None
    assert value["cost"]["tokens_in"] == 200 * len(PAIRS)
    assert value["cost"]["unanswered"] == {"timeout": 1}
    assert value["database"] == str(lake.paths.snapshot)
    assert value["database_published"] is False


def test_json_of_a_column(lake: Lake) -> None:
    fill(lake)
    value = json.loads(json.dumps(as_json(lake, "clinic", "pat_master.dob"), allow_nan=False))
    assert value["decision"] == "proposed"
    assert value["mapped_to"] == ["person.birth_datetime"]
    assert value["attribute"]["sample_values"] == ["1961-04-02", "1990-12-30"]
    best, second = value["candidates"]
    assert (best["target_column"], best["is_true"], second["is_true"]) == ("birth_datetime", True, False)
    assert [(fact["ids"], fact["cited"]) for fact in best["facts"]] == [
        (["Q5", "P569", "Q2000001"], True),
        (["Q47574", "P279", "Q309314"], False),
    ]
    assert value["reference"][0]["outcome"] == "found"
    fill(lake, "unmeasured", reference=False)
    without = as_json(lake, "unmeasured", "dob")
    assert without["reference"] is None
    assert without["candidates"][0]["is_true"] is None


def test_the_suggested_column_is_a_proposal_with_a_fact_and_can_be_shown(lake: Lake) -> None:
    fill(lake)
    name = an_attribute_to_look_at(lake, "clinic")
    assert name == "pat_master.dob"  # pat_no scores higher, but no fact speaks for it
    assert as_json(lake, "clinic", name)["decision"] == "proposed"
    assert an_attribute_to_look_at(lake, "unknown") is None


def test_a_suggested_name_with_dots_is_quoted(lake: Lake) -> None:
    pair = (SOURCE[4][:2], TARGET[3][:2], 0.9, "proposed", 0.9, "parsed", ())
    fill(lake, pairs=(pair,), not_matched=(), reference=False)
    name = an_attribute_to_look_at(lake, "clinic")
    assert name == '"lab.results"."val.num"'
    assert as_json(lake, "clinic", name)["attribute"]["column_name"] == "val.num"
