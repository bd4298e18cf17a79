"""What a column's name and storage type suggest: a kind with bounds or labels, to be confirmed by a person.

Nothing here ever sees a value. A name is cut into words (`dateOfBirth`, `DATE_OF_BIRTH` and `DateBirth` alike, joined
ones such as `FAMSIZE` by the words known here), and the first rule whose words occur decides. Words are English, with
the commonest German, French and Spanish ones. Words of two families that have nothing to do with each other (an age,
an amount of money) decide nothing. Bounds are wide, because a value outside them falls into the end bin; amounts that
may be of any size get public bins on a 1-2-5 scale. Where a list of labels is not the same everywhere, the column
becomes an open category, whose labels are paid for.
"""

import datetime as dt
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from understudy.schema.columns import WHOLE_LIMITS, GivenBins, PrivateBins
from understudy.schema.schema import looks_like_an_id

_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_FINE = PrivateBins(32)
_FIRST_DAY, _LAST_DAY = dt.date(1990, 1, 1), dt.date(2030, 12, 31)
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True, slots=True)
class Guess:
    """Keys of a column by name, `kind` among them, and why; without keys the column is better left out.

    An empty `kind` means that the name speaks for several, which `why` lists.
    """

    said: Mapping[str, object]
    why: str

    @property
    def kind(self) -> str:
        """The kind of column; empty if it is better left out, or if the name speaks for several."""
        return str(self.said.get("kind", ""))


def _left_out(why: str) -> Guess:
    return Guess({}, why)


def _spread(lower: float, upper: float, least: float = 1) -> GivenBins:
    """Bins between the bounds for amounts that may be of any size: edges 1, 2, 5, 10, 20 …, both ways from 0.

    >>> _spread(0, 40).edges, _spread(-10, 5).edges, _spread(0, 1, 0.5).edges
    ((0, 1, 2, 5, 10, 20, 40), (-10, -5, -2, -1, 0, 1, 2, 5), (0, 0.5, 1))
    """
    scale = [step * 10.0**power for power in range(-3, 19) for step in (1, 2, 5)]
    plain = [round(edge) if edge >= 1 else round(edge, 3) for edge in scale if edge >= least * 0.999]
    inside = [edge for edge in [*(-edge for edge in plain), 0, *plain] if lower < edge < upper]
    return GivenBins(tuple(sorted({lower, *inside, upper})))


def _whole(lower: int, upper: int, why: str, **more: object) -> Guess:
    wide = {"bins": _spread(lower, upper)} if upper - lower >= 1000 and "bins" not in more else {}
    return Guess({"kind": "integer", "lower": lower, "upper": upper, **wide, **more}, why)


def _real(lower: float, upper: float, why: str, **more: object) -> Guess:
    return Guess({"kind": "float", "lower": float(lower), "upper": float(upper), **more}, why)


def _days(lower: dt.date, why: str) -> Guess:
    said = {"kind": "date", "lower": lower, "upper": _LAST_DAY, "bins": _FINE}
    return Guess(said, f"{why}, in ISO form (else add `format`)")


def _listed(why: str) -> Guess:
    return Guess({"kind": "open_category"}, f"{why}; a list of labels is better (`kind: category`), if it is public")


def _labels(labels: tuple[str, ...], why: str) -> Guess:
    return Guess({"kind": "category", "labels": labels, "ignore_case": True}, why)


AN_ID = _left_out("its name suggests an id")
"""What the name of a column that tells units apart suggests."""
_FLAG = Guess({"kind": "boolean"}, "yes or no")
_MILLION = 1_000_000
_ZEROS = {"special": (0,), "decimals": 2}
_MONEY = _real(0, _MILLION, "an amount of money; zero apart", bins=_spread(0, _MILLION), **_ZEROS)
_SIGNED_MONEY = _real(
    -_MILLION, _MILLION, "an amount of money, perhaps negative; zero apart", bins=_spread(-_MILLION, _MILLION), **_ZEROS
)
_MEASURE = _real(0, 10_000, "a measured amount", bins=_spread(0, 10_000, 0.1))
_LOGARITHM = _real(-20, 20, "a logarithm", bins=80)
_AGE = _whole(0, 120, "years of age", bins=121)
_CODE_WORDS = "type|typ|code|codes|status|stat|class|category|cat|group|grp|kind|source|reason|disposition|level"

# The first rule whose words occur, whole and in this order, decides. "^" is the beginning of the name, "$" its end.
_RULES: tuple[tuple[str, Guess], ...] = (
    (
        "comment|comments|remark|remarks|notes?|memo|free text|freetext|narrative|verbatim|transcript|bemerkung"
        "|kommentar|notiz|freitext|commentaire|remarque|comentario|observaciones",
        _left_out("its name suggests free text"),
    ),
    (
        "first name|last name|full name|middle name|given name|maiden name|family name|surname|forename|^name$"
        "|firstname|lastname|fullname|username|vorname|nachname|familienname|^nom$|prenom|^nombre$|apellido|apellidos"
        "|address|adresse|direccion|street|strasse|phone|telephone|telefon|telefono|mobile number|fax|e mail|email"
        "|mail|url|website|password|iban|passport|ip address|signature",
        _left_out("its name suggests that it identifies people"),
    ),
    (
        "(person|patient|household|record|case|family|unit|customer|client|account|encounter|visit|order|invoice"
        "|transaction|serial) (nbr|nr|no|num|number|id|key)$|^seqn?$|serial|serialno|^rownames?$|^index$|^(row"
        "|line) (number|id|no)$",
        AN_ID,
    ),
    ("^(log|ln|logged|log10) \\w+|logarithm|(log|ln)$", _LOGARITHM),
    ("^age (?!.*(days|months))(when|at|first|last|told|stopped|started|began|since|of) \\w+", _AGE),
    (
        "feeling|trouble|how often|how much|how long|how many|how healthy|how well|frequency|haufigkeit|agreement"
        "|agree|likert|satisfaction|zufriedenheit|opinion|attitude|general health|self rated",
        _listed("an answer on a scale"),
    ),
    (
        "sex|gender|geschlecht|sexe|sexo|genero",
        _labels(("f", "m", "female", "male", "0", "1", "2"), "sex; delete the spellings that the table does not use"),
    ),
    (
        "latitude|lat|breitengrad",
        _real(-90, 90, "a latitude in degrees"),
    ),
    ("longitude|lng|lon|langengrad", _real(-180, 180, "a longitude in degrees")),
    (
        "(age|alter|edad) (group|grp|gr|band|class|cat|category|range|bin|bracket|klasse|gruppe)|agegr|agegrp|agecat"
        "|ageband|altersgruppe|altersklasse",
        _listed("a band of ages"),
    ),
    ("deciles?", _whole(1, 10, "a decile")),
    (
        "(group|grp|band|class|category|cat|range|bin|bracket|quartile|quintile|percentile|recode|klasse|gruppe)$",
        _listed("bands or codes"),
    ),
    (
        f"(income|inc|salary|wage|price|cost|amount|amt|age|date|year|pay|payment|tax|payer|zip|day"
        f"|month) ({_CODE_WORDS})$",
        _listed("a code"),
    ),
    ("(desc|descr|description|text|txt|label|degree|bezeichnung|libelle)$", _listed("labels or short texts")),
    (
        "(age|alter|edad) .*months|months? old",
        _whole(0, 1200, "an age in months"),
    ),
    ("(age|alter|edad) .*days|days old", _whole(0, 40_000, "an age in days")),
    (
        "birth ?year|year of birth|yob|geburtsjahr|annee de naissance|ano de nacimiento",
        _whole(1900, 2030, "a year of birth", bins=131),
    ),
    (
        "date of birth|birth ?date|birth ?day|dob|geburtsdatum|geburtstag|date de naissance|fecha de nacimiento"
        "|naissance|nacimiento",
        _days(dt.date(1900, 1, 1), "a date of birth"),
    ),
    (
        "datetime|date time|timestamp|time stamp|dttm|dt tm|(created|updated|modified|inserted|received|started|ended"
        "|closed|opened) at",
        Guess(
            {
                "kind": "datetime",
                "lower": dt.datetime(1990, 1, 1),
                "upper": dt.datetime(2030, 12, 31, 23, 59, 59),
                "bins": _FINE,
            },
            "a date with a time, in ISO form (else add `format`)",
        ),
    ),
    (
        "date|dates|datum|fecha|dated|arrived|departed|created|updated|discharged|(admitted|discharged|born|signed"
        "|opened|closed) on|(issue|start|end|due|payment|visit|last|first) d$",
        _days(_FIRST_DAY, "a date"),
    ),
    (
        "day of (the )?week|weekday|week day|dow|wochentag|jour de la semaine|dia de la semana",
        _labels(_WEEKDAYS, "the days of the week, as English short names"),
    ),
    ("day of (the )?month|tag des monats", _whole(1, 31, "a day of a month")),
    ("day of (the )?year", _whole(1, 366, "a day of a year")),
    ("(last|past|previous|next|this|per|each) (day|week|month|year|yr|wk)s? (flag|yn|ind)$", _FLAG),
    (
        "^(is|has|have|had|was|were|did|does|do|can|are|ever|any|will|wants?|ist|hat|tiene|est|took|take|takes|taking"
        "|tried|uses?|used|using|received|receives|attends?|attended|eats?|drinks?|drank|heard|looked|smoked|covered"
        "|served|serves|lives?|moved|shared|owns?|owned|worked|allowed|needs?|wears?|on|with) \\w+|(do|did|does|have"
        "|has|had|are|were|was|told|doctor) (you|doctor|said|told|have|ever)|you (had|have|drink|use|take|smoke|eat)",
        _FLAG,
    ),
    (
        "flag|flags|yn|y n|yes no|indicator|dummy|bool|boolean|ja nein|oui non|flg",
        _FLAG,
    ),
    (
        "hours per week|hours worked|hours week|weekly hours|hrs work|work hours|working hours|wochenstunden"
        "|stunden pro woche",
        _whole(0, 168, "hours in a week"),
    ),
    ("weeks worked|wks work|weeks per year|weeks", _whole(0, 53, "weeks of a year")),
    (
        "^(hour|hr|stunde|heure|hora)$|hour of (the )?day|(start|end|arrival|local) hour",
        _whole(0, 24, "an hour of the day"),
    ),
    ("^(minute|min)$|minute of (the )?hour", _whole(0, 60, "a minute of the hour")),
    ("hours|hrs|stunden|heures|horas", _whole(0, 168, "a number of hours")),
    ("minutes|mins|minuten", _whole(0, 10_080, "a number of minutes")),
    ("seconds|secs|sekunden", _whole(0, 86_400, "a number of seconds")),
    (
        "body mass index|bmi|body mass|imc",
        _real(5, 100, "body mass index", decimals=1),
    ),
    (
        "systolic|sbp|blutdruck systolisch|systolisch|sys bp|rr sys",
        _whole(40, 300, "systolic blood pressure in mmHg"),
    ),
    ("diastolic|dbp|diastolisch|dia bp|rr dia", _whole(0, 200, "diastolic blood pressure in mmHg")),
    ("blood pressure|blutdruck|tension arterielle|presion arterial|mm hg", _whole(0, 300, "blood pressure in mmHg")),
    ("pulse|heart rate|puls|herzfrequenz|frecuencia cardiaca|bpm|hr$", _whole(0, 300, "beats per minute")),
    ("body temperature|body temp|korpertemperatur", _real(30, 45, "body temperature in °C", decimals=1)),
    (
        "(sampling|survey|sample|person|household|instance|final|design|replicate|turnout|population|analysis"
        "|frequency|hh|per|gew) (weight|weights|wgt|wt|wght)|wgt|weighting|gewichtung|hochrechnungsfaktor",
        _real(0, 100_000, "a survey weight", bins=_spread(0, 100_000)),
    ),
    ("weight.* (lb|lbs|pounds)|(lb|lbs|pounds)$", _real(0, 1000, "a body weight in pounds", bins=50)),
    (
        "weight( (kg|kilos?|kilograms?))?$|^weight|gewicht|poids|peso|body ?weight",
        _real(0, 500, "a body weight in kg", bins=100),
    ),
    ("height.* (inch|inches|in)|inches$", _real(0, 120, "a body height in inches", bins=60)),
    (
        "height|korpergrosse|groesse|grosse|taille|altura|estatura|stature",
        _real(0, 250, "a body height in cm", bins=125),
    ),
    ("circumference|length cm|waist|(cm|mm)$", _real(0, 300, "a length in cm", bins=100)),
    ("hba 1 c|glycohemoglobin|a 1 c|hba", _real(2, 25, "glycated haemoglobin in %", decimals=1)),
    (
        "cholesterol|glucose|triglycerides|ldl|hdl|creatinine|sodium|potassium|hemoglobin|haemoglobin|albumin"
        "|bilirubin|platelets|ferritin|kcal|mg dl|mgdl|ug dl|ugdl|ug l|ugl|mmol|gm|mg|ug|ml|kg|grams|energy|protein"
        "|calories",
        _MEASURE,
    ),
    (
        "children|childs?|kids|kinder|kinderzahl|enfants|hijos|ninos|siblings|geschwister|dependents|dependants",
        _whole(0, 20, "a number of children or dependants"),
    ),
    (
        "(household|family|hh|fam|famille|haushalts) (size|persons|members|grosse|groesse)|haushaltsgrosse|(people"
        "|persons) in|taille du menage|number of (people|persons)",
        _whole(0, 30, "a number of people"),
    ),
    (
        "(percent|percentage|pct|perc|prozent|pourcentage|porcentaje|utilization)",
        _real(0, 100, "a percentage from 0 to 100", bins=50),
    ),
    ("share|fraction|proportion|probability|prob|anteil", _real(0, 1, "a share from 0 to 1", bins=50)),
    (
        "interest rate|int rate|apr|zinssatz|tax rate|rate|ratio|quote|taux|tasa",
        _real(-100, 100, "a rate or ratio in %", bins=50),
    ),
    (
        "(balance|bal|profit|bill|net worth|cash flow|capital gains?|capital loss|gain|loss|gewinn|verlust|saldo"
        "|solde|ganancia)",
        _SIGNED_MONEY,
    ),
    (
        "income|inc|incomes|salary|salaries|wage|wages|earning|earnings|earn|pay|amount|amt|amnt|amounts|price|prices"
        "|cost|costs|fee|fees|fare|rent|revenue|revenues|expense|expenses|expenditure|charge|charges|debt|payment"
        "|payments|repayment|installment|instalment|premium|budget|spend|spending|sales|turnover|dividend|dividends"
        "|interest|deposit|benefit|benefits|ben|tax|taxes|gross|pension|assets|wealth|value|mortgage|alimony"
        "|recoveries|recovery|einkommen|gehalt|lohn|preis|betrag|miete|umsatz|kosten|revenu|salaire|prix|montant"
        "|loyer|cout|ingreso|ingresos|salario|sueldo|precio|importe|alquiler",
        _MONEY,
    ),
    (
        "(education|educ|edu|schooling) (num|number|nr|years|yrs|jahre)|(years|yrs) (of )?(education|schooling)",
        _whole(0, 30, "a number of years at school"),
    ),
    (
        "^(n|nb|nr|no|num|number|count|of|total number|anzahl|cantidad|freq)( of)? |^(num|nof|anzahl|nombre de"
        "|numero de)|number of|count|counts|anzahl|cantidad|num$|cnt|frequency count|(number|nb|nr|no) (of )?\\w+$",
        _whole(0, 99, "a count"),
    ),
    (
        "^n \\d+|times|visits|admissions|episodes|occurrences|rooms|bedrooms|bathrooms|zimmer|floors|inquiries",
        _whole(0, 99, "a count"),
    ),
    ("cigarettes|drinks|cups|servings", _whole(0, 99, "a count")),
    (
        "length of stay|los|time in hospital|verweildauer|days in|stay",
        _whole(0, 365, "a number of days"),
    ),
    (
        "days (between|from|to|until|before|after|relative|b|diff|difference)",
        _whole(-10_000, 10_000, "a number of days, perhaps negative"),
    ),
    ("days|tage|jours|dias", _whole(0, 3660, "a number of days")),
    ("(months|mths|monate|mois|meses|mth)", _whole(0, 1200, "a number of months")),
    ("duration|dauer|duree|duracion|elapsed|delay|latency|dur", _whole(0, 10_000, "a length of time")),
    (
        "(years|yrs|jahre|annees|anos|yr) (of|in|at|since|experience|education|schooling|married)|(years|yrs|jahre)$"
        "|tenure years|experience$|(work|job|professional|teaching) experience",
        _whole(0, 99, "a number of years"),
    ),
    ("age|ages|alter|edad", _AGE),
    ("^(yr|yy|fy)$", _whole(1900, 2030, "a year (two digits?)", bins=131)),
    ("^(year|yr|jahr|annee|ano|fy)|(year|yr|jahr|annee|ano|fy)$", _whole(1900, 2030, "a year", bins=131)),
    ("quarter|quartal|trimestre", _whole(1, 4, "a quarter of the year")),
    ("month|monat|mois|mes|mon", _whole(1, 12, "a month as a number; names need `kind: category` with labels")),
    ("week of (the )?year|week number|kalenderwoche|week$", _whole(0, 53, "a week of the year")),
    (
        "population|pop|einwohner|inhabitants|density|densite|area size|square meters|sqm|sqft|distance|miles|km|speed",
        _real(0, _MILLION, "a size or distance", bins=_spread(0, _MILLION)),
    ),
    (
        "urgency|severity|triage|rating|ratings|stars|scale|bewertung|note$|calificacion|nps",
        _whole(0, 10, "a rating from 0 to 10"),
    ),
    ("iq|intelligence quotient", _whole(40, 160, "an intelligence quotient")),
    ("credit score|fico", _whole(300, 850, "a credit score")),
    ("score|scor|punktzahl|punkte|puntuacion|points|scores", _whole(0, 100, "a score from 0 to 100", bins=101)),
    ("poverty", _whole(0, 1000, "income in % of the poverty line")),
    ("(index|idx)$", _real(-1000, 1000, "an index", bins=_spread(-1000, 1000, 0.1))),
    (
        "zip|zip code|zipcode|post ?code|postal code|plz|postleitzahl|code postal|codigo postal",
        _listed("a postcode"),
    ),
    (
        "icd|diag|diagnosis|diagnoses|diagnose|diagnostic|diagnostico|snomed|atc|cpt|hcpcs|drg|ops code",
        _listed("a code of a medical classification"),
    ),
    (
        "country|land|pays|pais|nation|nationality|nationalitat|staatsangehorigkeit|nationalite|nacionalidad"
        "|birthplace|place of birth|citizen|citizenship|nativity",
        _listed("a country (ISO 3166 is a public list)"),
    ),
    (
        "state|region|migration|migrate|mig|county|city|town|village|municipality|district|province|place|area|zone"
        "|territory|neighborhood|neighbourhood|metro|urban|fips|bundesland|kreis|gemeinde|stadt|ort|ville|departement"
        "|commune|ciudad|provincia|municipio|geo|puma|lsoa|ward|location|msa|residence",
        _listed("a place (official lists are public)"),
    ),
    (
        "education|educ|edu|spec|degree|school|schooling|grade|qualification|bildung|schulabschluss|diplome|educacion"
        "|estudios|college",
        _listed("education"),
    ),
    (
        "marital|marriage|married status|familienstand|etat civil|estado civil|civil status|relationship|relation",
        _listed("marital status or relationship"),
    ),
    (
        "race|ethnic|ethnicity|ethnie|hispanic|hisp|raza|etnia|religion|confession|konfession|language|lang|eng"
        "|sprache|langue|idioma|tongue|speak",
        _listed("a group of people"),
    ),
    (
        # Stems of international nonproprietary names, a public list of the WHO.
        r"(?!april)\w*(formin|glitazone|glinide|gliptin|gliflozin|glutide|statin|pril|sartan|olol|azole|cillin|mycin|floxacin"
        r"|dipine|zepam|zolam|triptan|mab|tinib|vir|parin|thiazide|semide|amide|carbose|glitol|profen|setron|caine"
        r"|oxetine)|gl[iy]\w+ide"
        "|insulin|aspirin|heparin|warfarin",
        _listed("a medication"),
    ),
    (
        "occupation|occ|job|prof|unemp|force|profession|beruf|metier|ocupacion|industry|ind|branche|sector|employment"
        "|employer|emp|labor|labour|wkr|worker|activity|position|role|rank|military|branch",
        _listed("work or industry"),
    ),
    (
        "smoker|smoke|smoking|smokes|raucher|fumeur|fumador|diabetic|pregnant|pregnancy|schwanger|alive|dead|sport"
        "|exercise|alcohol|died|deceased|death|verstorben|decede|fallecido|survived|retired|student|veteran|vet"
        "|insured|vaccinated|disabled|disability|blind|default|defaulted|churn|churned|fraud|hospitalized|consent"
        "|voted|registered|active|deleted|approved|passed|absent|loan|difficulty|limitations|asthma|stroke|cancer"
        "|arthritis|hypertension|abuse",
        _FLAG,
    ),
    (
        f"{_CODE_WORDS}|cd|method|mode|outcome|result|results|treatment|therapy|drug|medication|med|product|brand"
        f"|model|color|colour|farbe|species|breed|plan|provider|payer|insurance|ownership|owner|tenure|housing|house"
        f"|home|contact|channel|campaign|station|site"
        "|unit|system|title|team|hospital|clinic|department|abteilung|division|company|organization|organisation"
        "|agency|cause|stage|specialty|speciality|priority|purpose|verification|shift|section|segment|party|currency"
        "|format|version|platform|device|browser|language code|family|subtype|destination|route|vehicle|flight|cabin"
        "|seat|neigh|friend|enroll|account|rec|acc|term|previous|event|action|vote|turnout|answer|question|response"
        "|why|what|when|which|who|where|trust|diet|history|change|side|composition|base|summary|origin|health"
        "|dwelling",
        _listed("a code or a list of labels"),
    ),
)
# Words beside which what a rule says would be wrong: weight loss is neither a body weight nor an amount.
_UNLESS = {
    _FLAG.why: "age|ages|when|what|kind|which|times?|often|how|many|much|number|types?|years?",
    "a body weight in kg": "loss|lose|lost|losing|diet|times|gain|gained|control|program",
    "a body weight in pounds": "loss|lose|lost|losing|diet|times|gain|gained|control|program",
    "a year": "(past|last|this|previous|next|per|each|every|whole|full) (year|yr)|tried",
    _MONEY.why: r"free\w*|\w*reduced\w*",
    _SIGNED_MONEY.why: "weight|hearing|memory|vision|blood|hair|diet",
}
# Families of numbers that have nothing to do with each other: a name with words of two of them decides nothing.
_FAMILIES = {
    _AGE.why: "an age",
    "an age in months": "an age",
    "an age in days": "an age",
    _MONEY.why: "an amount of money",
    _SIGNED_MONEY.why: "an amount of money",
    "a body weight in kg": "a body weight",
    "a body weight in pounds": "a body weight",
    "a body height in cm": "a body height",
    "a body height in inches": "a body height",
    "a number of days": "a number of days",
    "a number of months": "a number of months",
    "a number of hours": "a number of hours",
    "a number of minutes": "a number of minutes",
    "hours in a week": "a number of hours",
    "beats per minute": "a pulse",
    "systolic blood pressure in mmHg": "a blood pressure",
    "diastolic blood pressure in mmHg": "a blood pressure",
    "body mass index": "a body mass index",
}


def _form(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\S)(?:{words})(?!\S)")


_COMPILED = tuple(
    (_form(words), guess, _form(_UNLESS[guess.why]) if guess.why in _UNLESS else None) for words, guess in _RULES
)
# Words that only mean something beside others are no part of a joined word: `candid` is neither "can" nor "did".
_SMALL = frozenset(
    re.findall(
        r"\w+",
        "the and per ever any can did does had has have was were are will you not hat ist est ano mes dia land ort cat"
        " lon lat med ben eng rec acc mig los non what when which who why where how den war use eat told said",
    )
)
# Words that only look as if they were made of others.
_UNIT_OF_TIME = re.compile(r"([a-z]{4,})(days|months)")
_WHOLE = frozenset(("moderate", "weekdays", "workdays", "holidays", "weekend", "weekends", "sometimes"))
_VOCABULARY = frozenset(word for words, _ in _RULES for word in re.findall(r"[a-z]{3,}", words))


def words_of(name: str) -> str:
    """The words of a name, in lower case and without accents; joined words are cut where all parts are known.

    >>> words_of("DateOfBirth"), words_of("FAMSIZE"), words_of("PAY_AMT1"), words_of("Größe")
    ('date of birth', 'fam size', 'pay amt 1', 'grosse')
    """
    folded = unicodedata.normalize("NFKD", name.replace("ß", "ss")[:256])
    plain = "".join(
        character if character.isascii() else " " * (not unicodedata.combining(character)) for character in folded
    )
    found: list[str] = []
    for word in _CAMEL.findall(plain):
        lowered = word.lower()
        unit = _UNIT_OF_TIME.fullmatch(lowered)
        if unit and lowered not in _WHOLE:
            found += [unit[1], unit[2]]
            continue
        known = lowered in _VOCABULARY or lowered in _WHOLE or len(lowered) < 4 or (word.istitle() and word != plain)
        found += [lowered] if known else _cut(lowered, loose=word.isupper()) or [lowered]
    return " ".join(found)


def _cut(word: str, *, loose: bool) -> list[str]:
    """The known words that a longer one is made of (`incwage`).

    In a name in capitals, where words are short for something, one letter at either end may be left over (`RDATE`).
    """
    for start in (0, 1) if loose else (0,):
        best: dict[int, list[str]] = {start: []}
        for end in range(start + 3, len(word) + 1):
            for first in range(max(start, end - 14), end - 2):
                part = word[first:end]
                if first in best and part in _VOCABULARY and (part not in _SMALL or loose):
                    parts = [*best[first], part]
                    if end not in best or len(parts) < len(best[end]):
                        best[end] = parts
        found = best.get(len(word)) or (best.get(len(word) - 1) if loose else None)
        if found:
            return found
    return []


_CODE_LIKE = re.compile(r"[A-Z][A-Z0-9_.]+|[A-Za-z]{1,5}[_.]?\d{1,6}[A-Za-z]?")
CODED = Guess({"kind": "open_category"}, "named like a variable of coded answers; if it is a number, give it bounds")
"""What a name such as Q12 or DSEX suggests where nothing else is known."""


@lru_cache(maxsize=4096)
def _by_words(words: str) -> Guess | None:
    first: Guess | None = None
    for form, guess, unless in _COMPILED:
        if form.search(words) is None or (unless is not None and unless.search(words)):
            continue
        if first is None:
            first = guess
        family, other = _FAMILIES.get(first.why), _FAMILIES.get(guess.why)
        if family is None:
            return first
        if other is not None and other != family and not _within(words, first, guess):
            return Guess({"kind": ""}, f"{family} or {other}?")
    return first


def _within(words: str, first: Guess, second: Guess) -> bool:
    """Whether the second rule speaks because of words that the first has taken into account (`age in days`)."""
    rest = words
    for form, guess, _ in _COMPILED:
        if guess is first:
            rest = form.sub(" ", rest)
    return not any(form.search(rest) for form, guess, _ in _COMPILED if guess is second)


_SAID_FLAG = Guess({"kind": "boolean"}, "yes or no, by its title")
_BY_TITLE: tuple[tuple[str, Guess], ...] = (
    (
        r"= ?1 if\b|\(?\b1 ?= ?(yes|true|ja|oui)\b.{0,3}\b0 ?= ?(no|false|nein|non)\b"
        r"|\b0 ?= ?(no|false|nein|non)\b.{0,3}\b1 ?= ?(yes|true|ja|oui)\b|^1 if\b",
        _SAID_FLAG,
    ),
    (r"^(natural )?(log|ln)\b", replace(_LOGARITHM, why="a logarithm, by its title")),
    (r", (in )?(years|yrs)\)?$|\bin years\b|\byears (of|with|at)\b", _whole(0, 120, "years, by its title", bins=121)),
)
_MEASURED = re.compile(
    r"(?:\bin |\(in |\(|, |\[)(kg|g|mg|kilograms|cm|mm|m|km|miles|lbs?|pounds|inches|mm ?Hg|mg/dL|mmol/L|g/dL|°C|°F"
    r"|kcal|seconds|minutes|hours|days|weeks|months|years|euros?|EUR|dollars|USD|US\$|\$|£|€|GBP|percent|%)[)\]]?\.?$",
    re.IGNORECASE,
)


def measured_in(title: str) -> str:
    """The unit of measurement that a title ends in; empty if it names none.

    >>> measured_in("Weight (kg)"), measured_in("Time to event, days"), measured_in("Years of schooling")
    ('kg', 'days', '')
    """
    found = _MEASURED.search(title.strip()[-80:])
    return found[1] if found else ""


_PART_OF_A_NAME = frozenset(("first", "last", "middle"))
_OF_PEOPLE = frozenset(("name", "first name", "last name", "full name", "surname", "given name", "middle name"))


def _by_title(title: str) -> Guess | None:
    short = title[:1000]
    return next((guess for form, guess in _BY_TITLE if re.search(form, short, re.IGNORECASE)), None)


def guess_of(name: str, storage: str = "", *, title: str = "", beside: Collection[str] = ()) -> Guess | None:
    """What the name (or, failing that, a public title) suggests for a column of that Arrow type.

    Args:
        name: the column's name.
        storage: its Arrow type; empty if the table is a text file, in which everything is text.
        title: what a codebook calls it.
        beside: names of the table's columns; `first` beside `name` is a part of it.
    """
    if storage == "bool":
        return None
    if looks_like_an_id(name) and not re.search(rf"\b({_CODE_WORDS})\b", words_of(name)):
        return AN_ID
    words = words_of(name)
    if words in _PART_OF_A_NAME and any(words_of(other) in _OF_PEOPLE for other in beside):
        return _left_out("together with other columns it identifies people")
    found = _by_title(title) or _by_words(words) or (_by_words(words_of(title)) if title else None)
    if found is None and not storage and _CODE_LIKE.fullmatch(name.strip()):
        return CODED
    return _stored(found, storage)


def _stored(found: Guess | None, storage: str) -> Guess | None:
    """The guess as it suits the storage type; what the type alone suggests where there is none."""
    if storage == "" or (found is not None and not found.kind):
        return found
    if storage in WHOLE_LIMITS:
        return _as_whole(found, storage)
    if re.fullmatch(r"double|float|halffloat|decimal.*", storage):
        return _as_real(found, storage)
    if re.match(r"date|timestamp|time", storage):
        return _as_moment(found, storage)
    if found is None or found.kind in ("integer", "float"):
        return _listed("stored as text")
    return found


def _codes(found: Guess, storage: str) -> Guess:
    """A flag, or a short list that is the same everywhere, where the table holds numbers."""
    if found is _SAID_FLAG:
        return Guess({"kind": "category", "labels": ("0", "1"), "storage": storage}, found.why)
    labels = ("0", "1", "2")
    said = {"kind": "category", "labels": labels, "storage": storage}
    return Guess(said, f"{found.why.partition(';')[0]}, as a code; delete codes that are not used, or list others")


def _as_whole(found: Guess | None, storage: str) -> Guess | None:
    low, high = WHOLE_LIMITS[storage]
    kept = {} if storage == "int64" else {"storage": storage}
    if found is None or found.kind in ("date", "datetime", "time"):
        if high > 255:
            return None
        return _whole(low, high, f"all that {storage} can hold; narrower bounds are better", bins=_FINE, **kept)
    if found.kind in ("boolean", "category"):
        if found.said.get("labels") == _WEEKDAYS:
            return _whole(0, 7, "a day of the week as a number", **kept)
        return _codes(found, storage)
    if found.kind == "open_category":
        return found
    lower, upper = found.said["lower"], found.said["upper"]
    assert isinstance(lower, int | float)
    assert isinstance(upper, int | float)
    if upper <= 1:
        lower, upper = 0, 100
    lower, upper = max(int(lower), low), min(int(upper), high)
    if lower >= upper:
        return _as_whole(None, storage)
    bins = found.said.get("bins")
    more: dict[str, object] = {"bins": bins} if isinstance(bins, int) and upper - lower >= 100 else {}
    more |= {"special": found.said["special"]} if "special" in found.said else {}
    return _whole(lower, upper, found.why, **more, **kept)


def _as_real(found: Guess | None, storage: str) -> Guess | None:
    if found is None or found.kind in ("date", "datetime", "time"):
        return None
    if found.kind in ("boolean", "category"):
        if found.said.get("labels") == _WEEKDAYS:
            return _whole(0, 7, "a day of the week as a number")
        return _codes(found, "int64")
    if found.kind == "integer" and storage == "double":
        return replace(found, said={**found.said, "storage": "double"})
    if found.kind == "integer":
        lower, upper = found.said["lower"], found.said["upper"]
        assert isinstance(lower, int)
        assert isinstance(upper, int)
        found = replace(found, said={**found.said, "kind": "float", "lower": float(lower), "upper": float(upper)})
    return (
        replace(found, said={**found.said, "storage": "float"})
        if storage == "float" and found.kind == "float"
        else found
    )


def _as_moment(found: Guess | None, storage: str) -> Guess | None:
    kept = found.said.get("lower") if found is not None and found.kind in ("date", "datetime") else None
    first = kept if isinstance(kept, dt.date) else dt.date(1900, 1, 1)
    why = (
        found.why.partition(",")[0]
        if found is not None and kept is not None
        else "wide bounds; narrower ones are better"
    )
    if storage.startswith("date"):
        day = first.date() if isinstance(first, dt.datetime) else first
        return Guess({"kind": "date", "lower": day, "upper": _LAST_DAY, "bins": _FINE}, why)
    if storage.startswith("timestamp"):
        zone = dt.UTC if "tz=" in storage else None
        start = dt.datetime(first.year, 1, 1, tzinfo=zone)
        end = dt.datetime(_LAST_DAY.year, 12, 31, 23, 59, 59, tzinfo=zone)
        return Guess({"kind": "datetime", "lower": start, "upper": end, "bins": _FINE}, why)
    return None
