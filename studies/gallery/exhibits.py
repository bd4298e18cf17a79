"""What a steward decided for each of the five tables, and which questions an analyst asks of the release.

Everything here was fixed before a row was read, as a steward has to do it. Schemas lie in `schemas/`. The numbers that
come out are on the pages; what is written here about results is only what follows from the decisions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SCHEMAS = Path(__file__).parent / "schemas"


@dataclass(frozen=True)
class Rate:
    """A cross-tabulation: how large a share of rows has a label, in each group of another column."""

    title: str
    label: Mapping[str, str]
    by: str


@dataclass(frozen=True)
class Exhibit:
    """One table: where it is from, how it is released, and what is asked."""

    name: str
    title: str
    file: str
    rows_are: str
    source: str
    licence: str
    epsilon: float
    delta: float
    method: str
    decisions: tuple[tuple[str, str], ...]
    rate: Rate
    formula: str
    model: str
    limits: tuple[str, ...]
    options: Mapping[str, object] = field(default_factory=dict)
    copies: int = 5
    harder: str = ""
    """A second formula, whose result shows where the stand-in fails."""
    harder_why: str = ""

    @property
    def schema(self) -> Path:
        """The schema file."""
        return SCHEMAS / f"{self.name}.yaml"


COPIES = (
    "five copies, each measured anew (`--copies 5 --copies-mode remeasure`)",
    "Analysts will fit models. Only copies with noise of their own show how much of a coefficient is noise; the "
    "price is that each copy gets a fifth of the budget.",
)
ONE_COPY = (
    "one copy",
    "`pool` answers shares, rates and models from the noisy tables themselves, with intervals that contain the noise. "
    "Several copies, each measured anew, would divide the budget.",
)
DELTA = ("δ = 10⁻⁷", "Far below 1 / number of people, so that the chance of no protection stays negligible.")

CENSUS = Exhibit(
    name="census",
    title="A census extract: England and Wales, 2011",
    file="uk_census2011/data.parquet",
    rows_are="person",
    source="2011 Census Microdata Teaching File of the Office for National Statistics, an extract of six regions",
    licence="Open Government Licence",
    epsilon=1.0,
    delta=1e-7,
    method="auto",
    copies=1,
    decisions=(
        ("the unit is a row", "The user guide says that each person has one record."),
        ("`Person ID` is left out", "It identifies people and describes nobody."),
        ("`Residence Type` is left out", "The extract is defined as people in households, so its value is public."),
        (
            "all ten regions are listed, although the extract has six",
            "The list is that of the codebook. Removing the four empty ones would mean looking at the rows.",
        ),
        (
            "four rules for children",
            "The user guide says that nobody under 16 is asked about work, and the law that nobody of that age is "
            "married. Cells that cannot occur get no noise.",
        ),
        ("ε = 1", "Health and religion are sensitive, and one release is planned."),
        DELTA,
        (
            "the default method, `auto`, which picks `ensemble` here",
            "Nobody can say which of the sixteen columns will be studied. `ensemble` keeps all pairs as far as the "
            "noise allows, and came nearest to most tables in our [comparison](../choosing.md).",
        ),
        ONE_COPY,
    ),
    rate=Rate("Very good health by age", {"Health": "1"}, "Age"),
    formula="Health[1] ~ Age + `Marital Status`",
    model="logistic regression of very good health on age and marital status",
    harder="Health[1] ~ Age + `Economic Activity`",
    harder_why="Every child has the economic activity `-9`. The only others who have it are students who live away, "
    "whose health was not recorded and so does not count as very good. In the raw file the coefficients of age and "
    "activity are therefore large, opposite and an artefact of a few hundred records; noise on these records moves "
    "all of them together. Such a model says little even on the raw file, whatever its intervals contain.",
    limits=(
        "Relations of three columns, such as health by activity within an age group, were not measured. In the "
        "synthetic rows they are those of the model.",
    ),
)

ACS = Exhibit(
    name="acs",
    title="A household survey: American Community Survey, 2019",
    file="nist_crc_acs2019/national2019.parquet",
    rows_are="person",
    source="NIST Diverse Communities Data Excerpts, national excerpt, from the public use file of the US Census Bureau",
    licence="NIST licence, free to use with acknowledgement",
    epsilon=2.0,
    delta=1e-7,
    method="nist_mst",
    options={
        "marginals": "PINCP×EDU:4, PINCP×SEX:4, PINCP×AGEP:4, OWN_RENT×MSP:2, OWN_RENT×HOUSING_TYPE, OWN_RENT×PINCP, "
        "AGEP×EDU:2, AGEP×MSP:2, AGEP×NPF, AGEP×DPHY, DPHY×DREM, DPHY×DEAR, DPHY×DEYE, PINCP×POVPIP:2, "
        "PINCP×INDP_CAT:2, RAC1P×HISP, PUMA×RAC1P, PUMA×OWN_RENT, SEX×EDU",
    },
    decisions=(
        ("the unit is a row", "The survey has one record for each person."),
        (
            "`PINCP_DECILE`, `DENSITY` and `INDP` are left out",
            "The first two follow from income and area, and the third is the fine form of `INDP_CAT`. Columns that "
            "repeat others take budget and add nothing.",
        ),
        (
            "the weights `PWGTP` and `WGTP` are left out",
            "They tie a record to its place in the sample design, and a stand-in has no such design. So the release "
            "describes the sample and not the population of the United States.",
        ),
        ("`NOC` is left out", "The number of own children nearly follows from the size of the family (`NPF`)."),
        (
            "income has 18 bins with edges at round amounts, and 0 as a special value",
            "Many people have exactly no income. Bins of equal width up to 1,341,000 would put nearly everybody in "
            "the first.",
        ),
        (
            "bounds of income from the dictionary that NIST publishes",
            "They are published. A steward without such a list would take a round number that is surely high enough.",
        ),
        (
            "three rules",
            "The dictionary says that nobody under 15 has a marital status, and that people in group quarters neither "
            "own nor rent. Cells that cannot occur get no noise.",
        ),
        (
            "method `nist_mst` with a list of nineteen tables",
            "Economists asked for income by education, sex and age. Tables that are named are measured for certain.",
        ),
        ("ε = 2", "18 columns share the budget, and the table has only 27,000 rows."),
        DELTA,
        COPIES,
    ),
    rate=Rate("People in homes that the household owns, by marital status", {"OWN_RENT": "1"}, "MSP"),
    formula="PINCP ~ SEX + AGEP + EDU",
    model="linear regression of income on sex, age and education",
    limits=(
        "Incomes come back anywhere within their bin. The last bin reaches from 500,000 to 1,341,000, where real "
        "incomes lie near the lower end, so means, slopes and above all their errors are too large.",
        "Income has a long tail, to which least squares is sensitive. A regression of income classes, or of medians, "
        "would suffer less.",
    ),
)

VOTING = Exhibit(
    name="voting",
    title="A survey over thirty years: voting in the United States",
    file="cps_voting/data.parquet",
    rows_are="person",
    source="Current Population Survey, November supplements 1994 to 2024, a sample of 100,000 records",
    licence="MIT (package cpsvote); the records are a work of the US government",
    epsilon=1.0,
    delta=1e-7,
    method="auto",
    copies=1,
    decisions=(
        (
            "the unit is a row",
            "Each record is one person in one survey. Households leave the sample after sixteen months, so nobody is "
            "in two supplements that are two years apart.",
        ),
        (
            "thirteen columns are left out",
            "`FILE` repeats `YEAR`. Most others were asked only in some years or only of those who voted, so that most "
            "of their cells are empty by design. The two turnout columns are computed from `VRS_VOTE`.",
        ),
        ("the weights are left out", "As in the other survey: the stand-in describes the sample."),
        ("answers such as REFUSED stay labels", "Who does not answer is itself a subject of research."),
        ("one rule", "The questionnaire asks nobody under 15 about voting."),
        (
            "the default method, `auto`, which picks `ensemble` here",
            "Many studies will use the release, and no list of tables would serve all of them.",
        ),
        ("ε = 1", "Votes are sensitive, and the sample is large."),
        DELTA,
        ONE_COPY,
    ),
    rate=Rate("Answered that they voted, by education", {"VRS_VOTE": "YES"}, "EDUCATION"),
    formula="VRS_VOTE[YES] ~ AGE + VRS_RESIDENCE",
    model="logistic regression of the answer that one voted on age and time at the same address",
    harder="VRS_VOTE[YES] ~ AGE + EDUCATION",
    harder_why="Education has sixteen levels, and few people have one of the lowest or highest. `pool` leaves out "
    "levels of which too few rows stand out of the noise, so that coefficients may be differences from another level "
    "than in the raw file. A model that joins such levels does not have this weakness.",
    limits=(
        "Turnout by state and year was not measured: 51 × 16 × 6 cells would each hold about twenty rows. The "
        "stand-in's figures for young voters in one state come from the model, and nobody should study a law of one "
        "state on them.",
    ),
)

HOSPITAL = Exhibit(
    name="hospital",
    title="Several rows for a person: hospital stays with diabetes",
    file="diabetes130/data.parquet",
    rows_are="hospital stay",
    source="Diabetes 130-US hospitals for years 1999-2008, UCI archive (Strack and others, 2014)",
    licence="CC BY 4.0",
    epsilon=3.0,
    delta=1e-7,
    method="nist_mst",
    options={
        "marginals": "readmitted×A1Cresult:4, readmitted×number_inpatient:4, readmitted×time_in_hospital:2, "
        "readmitted×insulin:2, readmitted×discharge_disposition_id, readmitted×age, A1Cresult×insulin, "
        "A1Cresult×time_in_hospital, age×discharge_disposition_id, age×race, race×gender, "
        "admission_type_id×admission_source_id, admission_type_id×max_glu_serum, insulin×diabetesMed, insulin×change, "
        "insulin×metformin, number_inpatient×number_emergency, time_in_hospital×num_medications, "
        "time_in_hospital×num_lab_procedures, num_medications×num_procedures, age×number_diagnoses",
    },
    decisions=(
        (
            "the unit is a patient with at most 3 stays",
            "Patients come back, so protecting a single stay would not protect a person. Three is a compromise that "
            "was made without looking: further stays of a patient are left out, and every one more makes all noise "
            "wider.",
        ),
        (
            "the three diagnoses are left out",
            "Each has more than 700 ICD-9 codes. Grouped by chapter they could be kept; nobody asked for them.",
        ),
        (
            "`weight`, `payer_code` and `medical_specialty` are left out",
            "The description of the file says that they are mostly missing.",
        ),
        (
            "of the 24 medicines two are kept",
            "The study asks for insulin, and metformin is the usual first medicine. Each further column would take a "
            "part of the budget.",
        ),
        (
            "bounds of counts are wide and round, bins narrow near 0",
            "The description gives no bounds. Values beyond would fall into the last bin.",
        ),
        (
            "`None` is a label of the two tests",
            "It means that a test was not made, which is the question of the study, and not that a value is missing.",
        ),
        (
            "method `nist_mst` with a list of 21 tables",
            "The question of the study is readmission by HbA1c test. The list names it, and the clinical relations "
            "that a reader would expect.",
        ),
        ("ε = 3", "The unit is three rows, so noise is up to three times as wide as for one row."),
        DELTA,
        COPIES,
    ),
    rate=Rate("Back in hospital within 30 days, by HbA1c test", {"readmitted": "<30"}, "A1Cresult"),
    formula="readmitted[<30] ~ A1Cresult + number_inpatient + time_in_hospital + insulin",
    model="logistic regression of readmission within 30 days on the HbA1c test, earlier stays, days and insulin",
    limits=(
        "Stays beyond the third of a patient are left out, and patients with many stays come back most. So the "
        "released rate of readmission is below that of all stays. This is a price of protecting people and not "
        "noise; the intervals do not contain it.",
        "The rows of the stand-in are stays of nobody: they cannot be linked to histories of patients.",
        "The effect of the HbA1c test is small. What the raw file shows of it is not much larger than the change "
        "that the limit of three stays makes.",
        "Over all pairs of columns the stand-in is only a little nearer than independent columns would be: most "
        "pairs of this table are hardly related, and those that are not on the list are not measured.",
    ),
)

BANK = Exhibit(
    name="bank",
    title="A rare outcome: a bank's telephone campaign",
    file="bank_marketing/data.parquet",
    rows_are="telephone contact",
    source="Bank Marketing (bank-additional-full), UCI archive (Moro, Cortez and Rita, 2014)",
    licence="CC BY 4.0",
    epsilon=2.0,
    delta=1e-7,
    method="aim",
    options={
        "workload": "y×poutcome:8, y×month:8, y×contact:4, y×age:4, y×job:4, y×campaign:4, y×education:2, y×marital, "
        "y×pdays:2, job×education:2, job×age:2, job×marital, age×marital, poutcome×previous:2, poutcome×pdays:2, "
        "contact×month:2, campaign×month, housing×loan, default×education, default×age, month×day_of_week, "
        "month×poutcome",
    },
    decisions=(
        (
            "the unit is a row",
            "The file has no number of a client, although the description says that some were called more than once. "
            "So a client with three calls is protected only at 3 ε. A bank that has the number must name it as the "
            "unit.",
        ),
        (
            "`duration` is left out",
            "It is known only after the call, when the outcome is known too; the description advises against its use.",
        ),
        (
            "five economic indicators are left out",
            "They are published series, the same for everybody on a day. Noise on public numbers would be wasted.",
        ),
        (
            "999 is a special value of `pdays`",
            "The description says that it stands for a client who was never called before.",
        ),
        ("two rules", "A client without an earlier contact has no outcome of one, and the reverse."),
        (
            "method `aim` with a workload of 22 tables",
            "Pairs with the outcome have the highest weights. `aim` measures what it predicts worst and skips what "
            "follows from the rest.",
        ),
        ("ε = 2", "The outcome is rare, and rare outcomes need small noise."),
        DELTA,
        COPIES,
    ),
    rate=Rate("Took the deposit, by month of the call", {"y": "yes"}, "month"),
    formula="y ~ poutcome + contact + age + campaign + job",
    model="logistic regression of taking the deposit on earlier outcome, kind of contact, age, number of calls and job",
    limits=(
        "Months with few calls have few deposits in all, so their rates are known within wide intervals.",
        "`age` enters the model as a straight line. A curve would be kept only as far as the pair of age and outcome "
        "was measured.",
    ),
)

EXHIBITS = (CENSUS, ACS, VOTING, HOSPITAL, BANK)
