"""What the demo's knowledge graph is about: subjects, seeds and bounds that ``select_demo_graph.py`` chooses by."""

from __future__ import annotations

import re

# Relations whose statements are kept. The property-to-property ones link properties of like meaning.
INSTANCE_OF, SUBCLASS_OF = "P31", "P279"
PROPERTY_RELATIONS = (
    "P1647",  # subproperty of
    "P1659",  # see also
    "P1696",  # inverse property
    "P6609",  # value hierarchy property
    "P8379",  # qualifier for this property
    "P8882",  # complementary property
)

# A property is taken for its subject: it is an instance of one of these classes ...
SUBJECT_CLASSES = {
    "Q19887775": "Wikidata property related to medicine",
    "Q42752243": "Wikidata property related to anatomy",
    "Q42752262": "Wikidata property related to human anatomy",
    "Q89604788": "Wikidata property related to a medical facility",
    "Q42255152": "Wikidata property related to disability",
    "Q18608756": "Wikidata property for birth or death",
    "Q3702971": "personal data",
    "Q28100549": "Wikidata property to describe the elements of identity",
    "Q18636233": "Wikidata property for a person related event",
    "Q22661913": "Wikidata property for items about people with datatype 'time'",
    "Q51077484": "Wikidata property related to age",
    "Q102046040": "Wikidata property related to victims",
    "Q22964231": "Wikidata property for human relationships",
    "Q18608871": "Wikidata property for items about people",
    "Q64830420": "Wikidata property associated with people",
    "Q57955292": "Wikidata property for items about people or organisations",
    "Q24043375": "Wikidata property for occupations",
    "Q19643892": "Wikidata property to indicate a name",
    "Q26935994": "Wikidata property encoding a vCard value",
    "Q18636219": "Wikidata property with datatype 'time'",
    "Q51077473": "Wikidata property related to time and duration",
    "Q52513243": "Wikidata property for quantities",
    "Q21077852": "Wikidata property for physical quantities",
    "Q24710760": "Wikidata property of quantity type indicating a percentage",
    "Q51092447": "Wikidata property related to ratios and proportions",
    "Q28746712": "Wikidata property for causes and effects",
    "Q22984494": "Wikidata property related to demography",
    "Q18616084": "Wikidata property to indicate a language",
    "Q18615777": "Wikidata property to indicate a location",
    "Q18635217": "Wikidata property for specifying the location of an event",
    "Q19829914": "Wikidata property for places",
    "Q18608993": "Wikidata property for items about organizations",
    "Q22997934": "Wikidata property related to government and state",
    "Q22984026": "Wikidata property related to law and justice",
    "Q21451178": "Wikidata property related to economics",
    "Q62606615": "Wikidata property related to e-commerce",
    "Q30025373": "Wikidata property regarding utilization and ownership",
    "Q59910380": "Wikidata property related to data communication, storage, and retrieval",
    "Q15720608": "Wikidata qualifier",
    "Q18608359": "Wikidata property to indicate a source",
    "Q21099935": "Wikidata property with datatype string that is not an external identifier",
    "Q22988603": "Wikidata property related to biology",
    "Q21294996": "Wikidata property related to chemistry",
    "Q22988631": "Wikidata property related to mathematics",
}
# ... but identifiers in somebody's catalogue are thousands, and nearly all of them of persons, films or
# places. Of those only the ones with these subjects are taken.
IDENTIFIER_CLASSES = {
    "Q19887775": "Wikidata property related to medicine",
    "Q42752243": "Wikidata property related to anatomy",
    "Q89604788": "Wikidata property related to a medical facility",
    "Q19833835": "Wikidata property to identify substances",
    "Q42415644": "Wikidata property to identify proteins",
    "Q27038669": "Wikidata property for an international standard identifier",
    "Q48710051": "Wikidata property for an identifier having a checksum",
    "Q3702971": "personal data",
    "Q26935994": "Wikidata property encoding a vCard value",
    "Q6545185": "unique identifier",
    "Q93868746": "numeric ID",
}
# Many properties, "serial number" and RxNorm's among them, have no class that says their subject. These are
# taken by a word of their name or description.
NEUTRAL_CLASSES = {
    "Q18616576": "Wikidata property",
    "Q21264328": "Wikidata property for a multi-source identifier",
    "Q70564278": 'Wikidata property used as "depicts" (P180) qualifier on Commons',
    "Q18647515": "transitive property",
    "Q18647519": "asymmetric Wikidata property",
    "Q61719274": "non-restrictive qualifier",
    "Q61719275": "restrictive qualifier",
}
SUBJECT_TERMS = re.compile(
    r"\b(medic\w*|drugs?|pharma\w*|diseases?|patients?|clinical|diagnos\w*|symptoms?|health|persons?|dates?|time"
    r"|numbers?|numeric\w*|quantity|amount|codes?|values?|units?|limit|names?|address|price|cost|identifier|update)\b",
    re.IGNORECASE,
)
IDENTIFIER_TERMS = re.compile(
    r"\b(medic\w*|drugs?|pharma\w*|diseases?|patients?|clinical|diagnos\w*|symptoms?|health|hospitals?|RxNorm"
    r"|therapeutic|chemical (substances?|compounds?))\b",
    re.IGNORECASE,
)
# Properties that also belong to one of these are left out, whatever else they are. Matched in class labels.
EXCLUDED_SUBJECTS = re.compile(
    r"film|movie|television|music|\bsport|football|tennis|cycling|chess|game|comic|works of fiction|in-narrative|theat"
    r"|anime|manga|album|song|pornograph|astronom|spacecraft|taxon|bodies of water|Wikimedia|Wikidata entities"
    r"|sandbox|content rating|lexeme|lexico|poetry|literature|sculpture|heritage|geology|rail transport|railway"
    r"|airline|aircraft|weapons|military|Catholic|Christian|Judaism|Buddhism|fashion|tourism|plants|zoology"
    r"|elections|constraint|obsolete|property documentation|deprecated|transliteration|cultural",
    re.IGNORECASE,
)
EXCLUDED_LABELS = re.compile(
    r"DEPRECATED|^Sandbox|Wikidata|Wikimedia|Commons|^category |formatter|OpenStreetMap|SPARQL|film\b|rating\b|episode"
    r"|matches played",
)
# Datatypes whose properties say nothing a column could hold, unless it is an address card's, such as e-mail.
VCARD = "Q26935994"
EXCLUDED_DATATYPES = frozenset(
    {"commonsMedia", "url", "math", "wikibase-property", "wikibase-form", "wikibase-sense", "wikibase-lexeme"}
)

# The items start from these, by subject. Labels are stated to be readable and are checked against the source.
HEALTH_SEEDS = {
    "Q12136": "disease",
    "Q169872": "symptom",
    "Q1441305": "clinical sign",
    "Q639907": "medical finding",
    "Q2057971": "health problem",
    "Q7189713": "physiological condition",
    "Q18123741": "infectious disease",
    "Q12078": "cancer",
    "Q193078": "injury",
    "Q1346149": "complication",
    "Q11516357": "adverse event",
    "Q3269441": "side effect",
    "Q54932064": "disease attributes",
    "Q12206": "diabetes mellitus",
    "Q1931388": "cause of death",
    "Q2438541": "manner of death",
    "Q12140": "medication",
    "Q8386": "drug",
    "Q28885102": "pharmaceutical product",
    "Q86746756": "medicinal product",
    "Q79529": "chemical substance",
    "Q796194": "medical procedure",
    "Q177719": "medical diagnosis",
    "Q2671652": "medical test",
    "Q835153": "physical examination",
    "Q5690807": "health assessment",
    "Q179661": "treatment",
    "Q12147": "health",
    "Q31207": "health care",
    "Q55645123": "health care provider",
    "Q11974939": "health professional",
    "Q39631": "physician",
    "Q3922583": "health profession",
    "Q66811410": "medical profession",
    "Q930752": "medical specialty",
    "Q44597158": "health specialty",
    "Q11190": "medicine",
    "Q843601": "health science",
    "Q128406": "pharmacology",
    "Q499500": "clinical pathology",
    "Q121176": "nursing",
    "Q4260475": "medical facility",
    "Q16917": "hospital",
    "Q13107184": "pharmacy",
    "Q483242": "laboratory",
    "Q27043950": "anatomical entity",
    "Q712378": "organ",
    "Q4936952": "anatomical structure",
    "Q50377228": "chemical actions and uses",
}
PERSON_SEEDS = {
    "Q5": "human",
    "Q215627": "person",
    "Q3702971": "personal data",
    "Q4369513": "sex of humans",
    "Q290": "sex",
    "Q48277": "gender",
    "Q48264": "gender identity",
    "Q6581097": "male",
    "Q6581072": "female",
    "Q3254959": "race",
    "Q41710": "ethnic group",
    "Q231002": "nationality",
    "Q82799": "name",
    "Q1071027": "personal name",
    "Q202444": "given name",
    "Q101352": "family name",
    "Q2389905": "date of birth",
    "Q14819852": "birth",
    "Q1322263": "place of birth",
    "Q4": "death",
    "Q185836": "age of a person",
    "Q100343219": "age",
    "Q171318": "kinship",
    "Q11920938": "marital status",
    "Q7566": "parent",
    "Q47988": "identity document",
    "Q28640": "profession",
    "Q12737077": "occupation",
    "Q702269": "professional",
    "Q703534": "employee",
    "Q852835": "customer",
    "Q214339": "role",
    "Q189970": "social status",
}
TIME_SEEDS = {
    "Q186408": "point in time",
    "Q205892": "calendar date",
    "Q14333806": "time",
    "Q186081": "time interval",
    "Q1790144": "unit of time",
    "Q573": "day",
    "Q5151": "month",
    "Q577": "year",
    "Q25235": "hour",
    "Q7727": "minute",
    "Q23387": "week",
    "Q2199864": "duration",
    "Q24575110": "start time",
    "Q529711": "beginning",
    "Q12769393": "end",
    "Q11652": "frequency",
    "Q1190554": "occurrence",
    "Q1656682": "event",
    "Q1318578": "appointment",
    "Q2761147": "meeting",
}
CODE_SEEDS = {
    "Q853614": "identifier",
    "Q6545185": "unique identifier",
    "Q188889": "code",
    "Q11563": "number",
    "Q214995": "telephone number",
    "Q13582682": "classification",
    "Q1469824": "controlled vocabulary",
    "Q8380731": "terminology",
    "Q317623": "technical standard",
    "Q151885": "concept",
    "Q12139612": "list",
    "Q102786": "abbreviation",
    "Q3604202": "user account",
    "Q42848": "data",
    "Q8513": "database",
    "Q1172284": "data set",
    "Q19386377": "register",
    "Q20826013": "software version",
}
QUANTITY_SEEDS = {
    "Q309314": "quantity",
    "Q107715": "physical quantity",
    "Q4373292": "physical property",
    "Q47574": "unit of measurement",
    "Q223662": "SI base unit",
    "Q12453": "measurement",
    "Q2041172": "measuring instrument",
    "Q1003030": "test",
    "Q2995644": "result",
    "Q193181": "observation",
    "Q3686031": "concentration",
    "Q11423": "mass",
    "Q39297": "volume",
    "Q10578722": "maximum",
    "Q10585806": "minimum",
    "Q3481047": "ratio",
    "Q11229": "percent",
    "Q614112": "number of entities",
    "Q12916": "real number",
    "Q12503": "integer",
    "Q1207505": "quality",
}
PLACE_SEEDS = {
    "Q319608": "postal address",
    "Q64826646": "address",
    "Q79007": "street",
    "Q515": "city",
    "Q3957": "town",
    "Q28575": "county",
    "Q107390": "federated state",
    "Q6256": "country",
    "Q2221906": "geographic location",
    "Q17334923": "location",
    "Q699405": "residence",
    "Q180516": "room",
    "Q55697304": "parking facility",
    "Q6501349": "parking lot",
}
ADMINISTRATION_SEEDS = {
    "Q49848": "document",
    "Q234460": "text",
    "Q1151067": "rule",
    "Q3312801": "permit",
    "Q79719": "license",
    "Q196756": "certificate",
    "Q10870555": "report",
    "Q43183": "insurance",
    "Q160151": "price",
    "Q240673": "cost",
    "Q1148747": "payment",
    "Q8142": "currency",
    "Q43229": "organization",
    "Q178706": "institution",
    "Q327333": "government agency",
    "Q93288": "contract",
    "Q22445448": "request",
    "Q28877": "goods",
    "Q2424752": "product",
    "Q7406919": "service",
    "Q34770": "language",
}

# How far the subclasses of the seeds are followed down, by subject.
DOWN = (
    (HEALTH_SEEDS, 3),
    (PERSON_SEEDS, 1),
    (TIME_SEEDS, 1),
    (CODE_SEEDS, 1),
    (QUANTITY_SEEDS, 1),
    (PLACE_SEEDS, 1),
    (ADMINISTRATION_SEEDS, 1),
)
# How far superclasses are followed up; the top (entity) is nowhere more than ten steps away.
UP = 3
# A class with more subclasses (or instances) than this is a hub: it is kept, but not followed down.
HUB = 50
# Classes whose instances are values or kinds, worth having; instances of all others are single things.
INSTANCES_OF = {
    "Q12136": "disease",
    "Q2057971": "health problem",
    "Q18123741": "infectious disease",
    "Q1931388": "cause of death",
    "Q2438541": "manner of death",
    "Q930752": "medical specialty",
    "Q44597158": "health specialty",
    "Q3922583": "health profession",
    "Q66811410": "medical profession",
    "Q11190": "medicine",
    "Q7189713": "physiological condition",
    "Q54932064": "disease attributes",
    "Q4369513": "sex of humans",
    "Q48264": "gender identity",
    "Q3254959": "race",
    "Q11920938": "marital status",
    "Q1790144": "unit of time",
    "Q47574": "unit of measurement",
    "Q223662": "SI base unit",
    "Q853614": "identifier",
    "Q6545185": "unique identifier",
    "Q3702971": "personal data",
    "Q107715": "physical quantity",
    "Q4373292": "physical property",
    "Q1207505": "quality",
}
# Classes of one country or institution ("county of Texas", "junior college (Japan)") and of invented worlds.
PARTICULAR = re.compile(
    r"\b(of|in|for|from|by) (the )?[A-Z]|\([A-Z][a-z]+\)$|^[A-Z][a-z]+n? |fiction|film|Wikimedia|Wikidata|video game"
    r"|television|anime|manga|comic|\bsex(ual)? (act|work)|porn|erotic|deity|mytholog|princely|award|title of honor"
    r"|military|warfare|nobility|monarch",
)
