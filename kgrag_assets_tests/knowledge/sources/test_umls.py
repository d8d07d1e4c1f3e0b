"""UMLS's tables: the published toy files, relations in made-up rows of the true columns, choices and refusals."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgrag_assets.knowledge.sources.blocks import ReadOptions
from kgrag_assets.knowledge.sources.umls import files_of, reader_of
from kgrag_assets.knowledge.sources.umls_documents import Documents, language_code, read_documents
from kgrag_assets.knowledge.sources.umls_relations import Directed, directed
from kgrag_assets_tests.knowledge.sources.reading import Found, read_files

TOY = Path(__file__).parents[3].parent / "shared" / "data" / "umls_toy" / "umls_META"
PLAIN = ReadOptions()


def name(
    cui: str,
    text: str,
    *,
    language: str = "ENG",
    status: str = "P",
    kind: str = "PF",
    preferred: str = "Y",
    source: str = "MSH",
    suppress: str = "N",
) -> str:
    return f"{cui}|{language}|{status}|L1|{kind}|S1|{preferred}|A1||M1|D1|{source}|MH|D1|{text}|0|{suppress}|256|"


def relation(
    cui1: str, rel: str, cui2: str, rela: str = "", *, source: str = "SNOMEDCT_US", suppress: str = "N"
) -> str:
    return f"{cui1}|A1|AUI|{rel}|{cui2}|A2|AUI|{rela}|R1||{source}|{source}|||{suppress}||"


def definition(cui: str, text: str, *, source: str = "MSH", suppress: str = "N") -> str:
    return f"{cui}|A1|AT1||{source}|{text}|{suppress}||"


def write(folder: Path, **tables: list[str]) -> Path:
    for table, lines in tables.items():
        (folder / f"{table}.RRF").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return folder


def read(folder: Path, options: ReadOptions = PLAIN, block_bytes: int = 1 << 20) -> Found:
    return read_files(files_of(folder), reader_of, options, root=folder, block_bytes=block_bytes)


@pytest.mark.skipif(not TOY.is_dir(), reason="UMLS's toy files are not on this machine")
def test_the_published_toy_files() -> None:
    found = read(TOY)
    assert found.rejects == []
    assert found.labels == {
        "C0000005": "(131)I-Macroaggregated Albumin",
        "C0000039": "1,2-Dipalmitoylphosphatidylcholine",
        "T116": "Amino Acid, Peptide, or Protein",
        "T109": "Organic Chemical",
        "T121": "Pharmacologic Substance",
        "has_semantic_type": "has semantic type",
    }
    assert found.aliases["C0000005"] == ["(131)I-MAA"]
    assert found.descriptions == {
        "C0000039": "Synthetic phospholipid used in liposomes and lipid bilayers to study biological membranes."
    }
    assert found.edges == [
        ("C0000005", "has_semantic_type", "T116"),
        ("C0000039", "has_semantic_type", "T109"),
        ("C0000039", "has_semantic_type", "T121"),
    ]
    assert found.relations == {"has_semantic_type"}


def test_the_preferred_name_is_the_label_in_any_order(tmp_path: Path) -> None:
    lines = [
        name("C0000001", "third", kind="VO"),
        name("C0000001", "fourth", status="S"),
        name("C0000001", "first"),
        name("C0000001", "second", preferred="N"),
        name("C0000001", "premier", language="FRE"),
    ]
    for order in (lines, lines[::-1]):
        found = read(write(tmp_path, MRCONSO=order))
        assert found.labels == {"C0000001": "first"}
        assert found.aliases == {"C0000001": ["second", "third", "fourth"]}
    both = read(tmp_path, ReadOptions(languages=("fr", "mul", "ENG")))
    assert both.labels == {"C0000001": "premier"}
    assert both.aliases == {"C0000001": ["first", "second", "third", "fourth"]}


def test_the_next_name_stands_for_a_preferred_one_that_is_not_chosen(tmp_path: Path) -> None:
    write(
        tmp_path,
        MRCONSO=[
            name("C0000001", "obsolete", suppress="O"),
            name("C0000001", "elsewhere", status="S", source="ICD10"),
            name("C0000001", "here", status="S", source="MSH"),
            name("C0000002", "by an editor", suppress="E"),
            name("C0000003", "by its type", suppress="Y"),
        ],
    )
    assert read(tmp_path).labels == {"C0000001": "elsewhere"}
    chosen = read(tmp_path, ReadOptions(extra=(("sources", ("MSH",)), ("suppress", ("o", "e")))))
    assert chosen.labels == {"C0000001": "here", "C0000003": "by its type"}
    everything = read(tmp_path, ReadOptions(extra=(("suppress", ("none",)),)))
    assert everything.labels["C0000001"] == "obsolete"
    assert set(everything.labels) == {"C0000001", "C0000002", "C0000003"}


def test_only_names_list_a_concept(tmp_path: Path) -> None:
    """The other files do not say which source a concept is from: without a chosen name it is not in the graph."""
    write(
        tmp_path,
        MRCONSO=[name("C0000001", "one")],
        MRSTY=[
            "C0000001|T047|B2.2.1.2.1|Disease or Syndrome|AT1|256|",
            "C0000002|T047|B2.2.1.2.1|Disease or Syndrome|AT1||",
        ],
        MRREL=[relation("C0000001", "RO", "C0000002", "has_finding_site")],
    )
    found = read(tmp_path)
    assert found.listed == {"C0000001", "T047", "has_semantic_type", "has_finding_site"}


def test_definitions_in_the_chosen_languages_and_sources(tmp_path: Path) -> None:
    lines = [
        definition("C0000001", "Texto español.", source="MSHSPA"),
        definition("C0000001", "Hidden.", suppress="Y"),
        definition("C0000001", "First.", source="NCI"),
        definition("C0000001", "Second.", source="MSH"),
        definition("C0000002", "<p>Your <b>heart</b> beats &amp; beats.</p>", source="MEDLINEPLUS"),
        definition("C0000003", "Um texto.", source="XYZ"),
    ]
    write(tmp_path, MRDEF=lines)
    assert read(tmp_path).descriptions == {
        "C0000001": "First.",
        "C0000002": "Your heart beats & beats.",
        "C0000003": "Um texto.",
    }
    assert read(tmp_path, ReadOptions(languages=("es", "en"))).descriptions["C0000001"] == "Texto español."
    assert read(tmp_path, ReadOptions(extra=(("sources", ("MSH",)),))).descriptions == {"C0000001": "Second."}
    sab = [
        f"C1|C2|X_1|{source}|{'|' * 15}{language}|{'|' * 4}|" for source, language in (("XYZ", "POR"), ("NCI", "ENG"))
    ]
    write(tmp_path, MRSAB=sab)
    assert "C0000003" not in read(tmp_path).descriptions


def test_a_relation_is_kept_once_in_its_true_direction(tmp_path: Path) -> None:
    """A row says "CUI2 RELA CUI1": pneumonia (1) has the finding site lung (2), and is an infection (3)."""
    rows = [
        relation("C0000002", "RO", "C0000001", "has_finding_site"),
        relation("C0000001", "RO", "C0000002", "finding_site_of"),
        relation("C0000003", "CHD", "C0000001", "isa"),
        relation("C0000001", "PAR", "C0000003", "inverse_isa"),
    ]
    expected = {("C0000001", "has_finding_site", "C0000002"), ("C0000001", "isa", "C0000003")}
    for order in (rows, rows[::-1], rows[:1] + rows[3:], rows[1:3]):
        found = read(write(tmp_path, MRREL=order), block_bytes=1)
        assert set(found.edges) == expected
        assert len(found.edges) == 2
        assert found.labels == {"has_finding_site": "has finding site", "isa": "is a"}
        assert found.relations == {"has_finding_site", "isa"}


def test_the_example_of_the_reference_manual(tmp_path: Path) -> None:
    """A product, C2241537, has the ingredient aluminum hydroxide, C0002372; SY there is within one concept."""
    write(
        tmp_path,
        MRREL=[
            "C0002372|A0021548|AUI|SY|C0002372|A16796726|AUI||R112184262||RXNORM|RXNORM|||N||",
            "C0002372|A0022283|AUI|RO|C2241537|A14211642|AUI|has_ingredient|R91984327||MMSL|MMSL|||N||",
        ],
    )
    assert read(tmp_path).edges == [("C2241537", "has_ingredient", "C0002372")]


@pytest.mark.parametrize(
    ("rel", "edge", "label"),
    [
        ("PAR", ("C0000001", "PAR", "C0000002"), "has parent"),
        ("CHD", ("C0000002", "PAR", "C0000001"), "has parent"),
        ("RB", ("C0000001", "RB", "C0000002"), "has broader concept"),
        ("RN", ("C0000002", "RB", "C0000001"), "has broader concept"),
        ("AQ", ("C0000001", "AQ", "C0000002"), "has allowed qualifier"),
        ("QB", ("C0000002", "AQ", "C0000001"), "has allowed qualifier"),
        ("SY", ("C0000001", "SY", "C0000002"), "is a source's synonym of"),
        ("RO", ("C0000001", "RO", "C0000002"), "has other relationship to"),
    ],
)
def test_a_row_without_rela_is_read_by_its_rel(
    tmp_path: Path, rel: str, edge: tuple[str, str, str], label: str
) -> None:
    """REL is the relationship of the second concept to the first: with PAR the second is a parent of the first."""
    found = read(write(tmp_path, MRREL=[relation("C0000001", rel, "C0000002")]))
    assert (found.edges, found.labels) == ([edge], {edge[1]: label})
    inverse = {"PAR": "CHD", "CHD": "PAR", "RB": "RN", "RN": "RB", "AQ": "QB", "QB": "AQ"}.get(rel, rel)
    twice = read(write(tmp_path, MRREL=[relation("C0000002", inverse, "C0000001")]))
    assert twice.edges == [edge]


def test_what_is_no_relation_is_left_aside(tmp_path: Path) -> None:
    rows = [
        relation("C0000001", "RO", "C0000001", "has_part"),
        relation("C0000001", "XR", "C0000002"),
        relation("C0000001", "DEL", "C0000002"),
        relation("C0000001", "RO", "C0000002", "has_part", suppress="O"),
    ]
    found = read(write(tmp_path, MRREL=rows))
    assert (found.edges, found.rejects) == ([], [])


def test_sources_and_wanted_relations(tmp_path: Path) -> None:
    rows = [
        relation("C0000002", "RO", "C0000001", "has_part", source="FMA"),
        relation("C0000003", "CHD", "C0000001", "isa"),
    ]
    write(tmp_path, MRREL=rows)
    assert read(tmp_path, ReadOptions(extra=(("sources", ("FMA",)),))).edges == [("C0000001", "has_part", "C0000002")]
    without = read(tmp_path, ReadOptions(without_relations=("has_part",)))
    assert (without.edges, without.relations) == ([("C0000001", "isa", "C0000003")], {"isa"})


DOCUMENTED = [
    "RELA|has_target|rela_inverse|hits|",
    "RELA|has_target|expanded_form|Has  target|",
    "RELA|near|rela_inverse|near|",
    "RELA|void|rela_inverse|####|",
    "REL|PAR|expanded_form|has parent relationship in a Metathesaurus source vocabulary|",
]


def test_documents_beside_the_files_name_inverses(tmp_path: Path) -> None:
    rows = [
        relation("C0000002", "RO", "C0000001", "has_target"),
        relation("C0000001", "RO", "C0000002", "hits"),
        relation("C0000002", "RO", "C0000001", "near"),
        relation("C0000001", "RO", "C0000002", "near"),
        relation("C0000002", "RO", "C0000001", "void"),
    ]
    write(tmp_path, MRREL=rows)
    before = reader_of(tmp_path / "MRREL.RRF").version
    assert len(read(tmp_path).edges) == 5
    (tmp_path / "MRDOC.RRF.gz").write_bytes(gzip.compress("\n".join(DOCUMENTED).encode()))
    found = read(tmp_path)
    assert found.edges == [
        ("C0000001", "has_target", "C0000002"),
        ("C0000001", "near", "C0000002"),
        ("C0000001", "void", "C0000002"),
    ]
    assert found.labels == {"has_target": "Has target", "near": "near", "void": "void"}
    # The same bytes read otherwise are another unit.
    assert reader_of(tmp_path / "MRREL.RRF").version != before


def test_damaged_documents_are_left_aside(tmp_path: Path) -> None:
    (tmp_path / "MRDOC.RRF.gz").write_bytes(b"no gzip")
    assert read_documents(tmp_path) == Documents()


RELAS = [
    "isa", "inverse_isa", "has_part", "part_of", "mapped_to", "mapped_from", "uniquely_mapped_to",
    "uniquely_mapped_from", "mth_has_xml_form", "mth_xml_form_of", "due_to", "cause_of", "consists_of", "constitutes",
    "may_treat", "may_be_treated_by", "has_contraindicated_drug", "contraindicated_with_disease", "same_as",
    "is_location_of_anatomic_structure", "used_by", "inverse_was_a", "was_a", "contained_in", "contains",
]  # fmt: skip
PAIRS = [
    ("isa", "inverse_isa"), ("has_part", "part_of"), ("mapped_to", "mapped_from"),
    ("mth_has_xml_form", "mth_xml_form_of"), ("due_to", "cause_of"), ("constitutes", "consists_of"),
    ("may_treat", "may_be_treated_by"), ("has_contraindicated_drug", "contraindicated_with_disease"),
    ("was_a", "inverse_was_a"), ("uniquely_mapped_to", "uniquely_mapped_from"),
]  # fmt: skip


@pytest.mark.parametrize(("kept", "turned"), PAIRS)
def test_of_two_inverse_names_one_is_kept_whichever_row_is_read(kept: str, turned: str) -> None:
    for inverses in ({}, {kept: turned, turned: kept}):
        assert directed("RO", kept, inverses) == Directed(kept, second_first=True)
        assert directed("RO", turned, inverses) == Directed(kept, second_first=False)


names_of_relations = st.one_of(
    st.sampled_from(RELAS), st.from_regex(r"(has_|is_|inverse_|mth_)?[a-z]{1,4}(_of|_by|_to|_from)?", fullmatch=True)
)


@given(names_of_relations, names_of_relations)
def test_both_rows_of_a_documented_pair_give_one_edge(first: str, second: str) -> None:
    inverses = {first: second, second: first}
    forth, back = directed("RO", first, inverses), directed("RO", second, inverses)
    assert forth is not None
    assert back is not None
    assert forth.relation == back.relation
    assert forth.both_ways == back.both_ways == (first == second)
    if first != second:
        assert forth.second_first is not back.second_first


@given(names_of_relations)
def test_a_name_that_is_kept_stays_as_it_is(rela: str) -> None:
    kept = directed("RO", rela, {})
    assert kept is not None
    again = directed("RO", kept.relation, {})
    assert again is not None
    assert (again.relation, again.second_first) == (kept.relation, True)


@pytest.mark.parametrize(
    ("table", "line", "reason"),
    [
        ("MRCONSO", name("X0000001", "x"), "the first column is not a CUI: 'X0000001'"),
        ("MRCONSO", name("C0000001", " "), "the name is empty"),
        ("MRCONSO", name("C0000001", "a|b"), "19 columns where MRCONSO has 18"),
        ("MRCONSO", "C0000001|ENG|", "2 columns where MRCONSO has 18"),
        ("MRDEF", definition("C1", "x"), "the first column is not a CUI"),
        ("MRDEF", definition("C0000001", " "), "the definition is empty"),
        ("MRSTY", "C0000001|047|B2|Disease|AT1|256|", "the second column is not a TUI"),
        ("MRSTY", "C0000001|T047|B2||AT1|256|", "the semantic type has no name"),
        ("MRREL", relation("C0000001", "RO", "C2", "isa"), "not two CUIs"),
        ("MRREL", relation("C0000001", "RO", "C0000002", "is a"), "not a relation"),
        ("MRREL", relation("C0000001", "", "C0000002"), "not a relation"),
    ],
)
def test_one_bad_row_is_refused_and_loses_no_other(tmp_path: Path, table: str, line: str, reason: str) -> None:
    good = {
        "MRCONSO": name("C0000007", "seven"),
        "MRDEF": definition("C0000007", "A number."),
        "MRSTY": "C0000007|T081|A2|Quantitative Concept|AT1|256|",
        "MRREL": relation("C0000007", "CHD", "C0000008", "isa"),
    }[table]
    found = read(write(tmp_path, **{table: [good, line, good]}))
    ((file, row, why, content),) = found.rejects
    assert (file, row, content) == (f"{table}.RRF", 2, line)
    assert why.startswith(reason)
    assert "C0000001" not in {*found.labels, *found.descriptions, *(end for edge in found.edges for end in edge)}


def test_a_file_of_other_columns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "MRREL.RRF").write_text("C0000001\tRO\tC0000002\n")
    assert read(tmp_path).reasons == [(1, "MRREL has 16 columns, each with a | behind it")]


def test_files_in_their_order_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "META").mkdir()
    for packed in ("MRREL.RRF", "MRCONSO.RRF.gz", "MRSTY.RRF.bz2", "MRSAT.RRF", "MRXW_ENG.RRF", "MRDOC.RRF"):
        (tmp_path / "META" / packed).write_bytes(b"")
    assert [path.name for path in files_of(tmp_path)] == ["MRCONSO.RRF.gz", "MRSTY.RRF.bz2", "MRREL.RRF"]


@pytest.mark.parametrize(
    ("language", "code"), [("en", "ENG"), ("en-gb", "ENG"), ("eng", "ENG"), ("de", "GER"), ("mul", None)]
)
def test_codes_of_languages(language: str, code: str | None) -> None:
    assert language_code(language) == code


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("MSH", "ENG"),
        ("MSHSPA", "SPA"),
        ("LNC-DE-DE", "GER"),
        ("SNOMEDCT_US", "ENG"),
        ("SCTSPA", "SPA"),
        ("RXNORM", "ENG"),
    ],
)
def test_a_source_tells_its_language_by_its_name(source: str, code: str) -> None:
    assert Documents().language_of(source) == code
