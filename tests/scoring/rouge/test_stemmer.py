"""Words that tell the stemmers apart; test_original.py compares many more where there is perl."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_regattn.scoring.rouge.stemmer import porter, stem

from .texts import CHEAP


def words(pairs):
    return [tuple(word.encode() for word in pair.split(":")) for pair in pairs.split()]


@pytest.mark.parametrize(
    ("word", "expected"),
    words(
        # the examples of the paper, step by step
        "caresses:caress ponies:poni ties:ti caress:caress cats:cat feed:feed agreed:agre "
        "plastered:plaster bled:bled motoring:motor sing:sing conflated:conflat troubled:troubl "
        "sized:size hopping:hop falling:fall hissing:hiss failing:fail filing:file happy:happi "
        "sky:sky relational:relat conditional:condit rational:ration valenci:valenc "
        "digitizer:digit conformabli:conform radicalli:radic differentli:differ vileli:vile "
        "vietnamization:vietnam predication:predic operator:oper feudalism:feudal "
        "decisiveness:decis hopefulness:hope callousness:callous formaliti:formal "
        "sensitiviti:sensit sensibiliti:sensibl triplicate:triplic formative:form formalize:formal "
        "electriciti:electr electrical:electr hopeful:hope goodness:good revival:reviv "
        "allowance:allow inference:infer airliner:airlin gyroscopic:gyroscop adjustable:adjust "
        "defensible:defens irritant:irrit replacement:replac adjustment:adjust dependent:depend "
        "adoption:adopt homologou:homolog communism:commun activate:activ angulariti:angular "
        "homologous:homolog effective:effect bowdlerize:bowdler probate:probat rate:rate "
        "cease:ceas controll:control roll:roll boxed:box snowing:snow playing:plai "
        # what the paper has not: bli and logi
        "possibli:possibl apologi:apolog "
        # one ending after the other, where others take the longest only
        "element:elem argument:argum implement:implem experimental:experi fundamental:fundam "
        "departmented:depart apartmentement:apart internationalization:internat "
        "adoptionent:adoption "
        # y at the start is a consonant, after one a vowel
        "yied:yi yying:yy syzygy:syzygi yearly:yearli "
        "s:s as:a"
    ),
)
def test_rules(word, expected):
    assert porter(word) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    words(
        # irregular ones are not stemmed any further
        "geese:goose was:was were:be went:go children:child better:well best:well "
        "accompanied:accompany abscissae:abscissa "
        # and those of up to three letters not at all
        "ran:ran ate:ate mys:mys "
        "running:run happily:happili 2000s:2000 12345:12345"
    ),
)
def test_irregular_words_come_first(word, expected):
    assert stem(word) == expected


def test_unknown_words_are_no_words():
    assert stem(b"<<unk>>") == b"<<unk>>"


@CHEAP
@given(st.text("aeioulnstymdbgr", max_size=14))
def test_never_longer(word):
    """But for the e that a participle gets; never empty, and the first letter stays."""
    found = porter(word.encode())
    assert len(found) <= len(word)
    assert found[:1] == word[:1].encode()
