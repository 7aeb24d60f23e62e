"""Every error has a code, and every code its texts (K45); no message holds a value (Z30)."""

import ast
import pickle
import re
import string
from pathlib import Path

import pytest

from keel_notebook import errors
from keel_notebook.errors import NOTED, KeelError, UnknownNameError, cases, catalogue
from keel_notebook.front.explain import errors_page, explained, raised_here

PINNED = [
    *("E001", "E002", "E003", "E004", "E005", "E010", "E011", "E012", "E013", "E014", "E015", "E016", "E020"),
    *("E030", "E031", "E032", "E033", "E040", "E050", "E051", "E052", "E053", "E054", "E060", "E061"),
    *("E070", "E071", "E080"),
]
CLASSES = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, KeelError)]
PAGE = Path(__file__).parents[2] / "docs" / "errors.md"


def fields(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_k45_the_catalogue_has_the_pinned_codes():
    assert set(PINNED) <= set(catalogue())


@pytest.mark.parametrize("code", catalogue())
def test_k45_every_code_has_four_texts(code):
    texts = catalogue()[code]
    assert list(texts) == ["title", "what", "why", "next"]
    assert all(text and text == text.strip() and "\n" not in text for text in texts.values())
    assert not fields(texts["title"]), "the title is the same in every case"
    assert texts["why"].endswith(".")
    assert texts["next"].endswith(".")


CASES = [(code, name, texts) for code in catalogue() for name, texts in cases(code).items()]


@pytest.mark.parametrize(("code", "name", "texts"), CASES, ids=lambda it: it if isinstance(it, str) else "")
def test_k45_a_case_says_when_it_is_one_and_gives_the_texts_that_are_others(code, name, texts):
    assert re.fullmatch(r"[a-z_]+", name)
    assert next(iter(texts)) == "when"
    assert set(texts) <= {"when", "what", "why", "next"}
    assert "next" in texts, "the way out is why there is a case"
    assert all(text and text == text.strip() and "\n" not in text for text in texts.values())
    assert all(text.endswith(".") for part, text in texts.items() if part in {"why", "next"})
    assert fields("".join(texts.values())) <= fields("".join(catalogue()[code].values())), "a raise site gives no more"


def test_every_case_is_raised_and_every_case_that_is_raised_is_in_the_catalogue():
    """A case that is worked out (``case=case``) names its words in the same file."""
    named = {
        node.value
        for tree in SOURCES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert {name for _, name, _ in CASES} <= named
    for where, cls, node in MADE:
        for word in node.keywords:
            if word.arg == "case" and isinstance(word.value, ast.Constant):
                assert word.value.value in cases(cls.code), (where, word.value.value)


def test_an_error_that_another_process_told_has_its_own_words():
    told = errors.UnknownPromiseError(promise="p").to_dict()
    found = pickle.loads(pickle.dumps(errors.retold(told)))
    assert type(found) is errors.UnknownPromiseError
    assert found.to_dict() == told
    assert str(found) == "KEEL-E071: no such promise is waiting here: p"


def test_k45_every_subclass_says_which_code_it_is():
    own = {cls.__name__: cls.code for cls in CLASSES if cls is not KeelError}
    assert set(own.values()) <= set(catalogue())
    assert len(set(own.values())) == len(own), "one class per code"
    assert all("code" in vars(cls) for cls in CLASSES)


@pytest.mark.parametrize("cls", CLASSES)
def test_z30_only_facts_that_a_text_names_are_rendered(cls):
    named = set().union(*(fields(text) for text in catalogue()[cls.code].values()))
    told = {name: f"fact-{name}" for name in named}
    hidden = {"value": "CANARY", "payload": b"CANARY", "args": ["CANARY"], "repr": "CANARY", "token": "CANARY"}
    error = cls(**told, **{name: value for name, value in hidden.items() if name not in named})
    error.__cause__ = ValueError("CANARY")
    for shown in (str(error), error.report(), "\n".join(error._render_traceback_())):
        assert "CANARY" not in shown
        assert "{" not in shown
    assert all(f"fact-{name}" in error.report() for name in named)
    assert str(error).startswith(f"KEEL-{cls.code}: ")


@pytest.mark.parametrize("cls", CLASSES)
def test_facts_that_nobody_gave_are_marked_and_break_nothing(cls):
    assert "{" not in cls().report()
    assert str(pickle.loads(pickle.dumps(cls(step="fit")))) == str(cls(step="fit"))


def test_no_text_names_a_field_for_a_value():
    every = set().union(*(fields(text) for texts in catalogue().values() for text in texts.values()))
    assert not every & {"value", "payload", "args", "repr", "token", "content", "result"}


def test_every_code_is_in_the_docs_as_errors_json_has_it():
    assert PAGE.read_text("utf-8") == errors_page(), "python -m keel_notebook.front.explain > docs/errors.md"
    assert re.findall(r"^## KEEL-(E\d{3})", PAGE.read_text("utf-8"), re.MULTILINE) == sorted(catalogue())


def test_the_docs_say_which_codes_are_reserved():
    assert errors_page().count("the code is reserved") == len(catalogue()) - len(raised_here() | NOTED)


@pytest.mark.parametrize("written", ["E031", "e031", "KEEL-E031", "keel-e031", " E031 "])
def test_a_code_may_be_written_in_any_way(written):
    assert explained(written).code == "E031"


@pytest.mark.parametrize("written", ["E999", "", "KEEL-", "?"])
def test_an_unknown_code_lists_the_known_ones(written):
    with pytest.raises(UnknownNameError, match="known: E001, "):
        explained(written)


def test_an_explanation_reads_without_facts():
    found = explained("E032")
    assert found.what == "step STEP is dead: the kernel died DEATHS times in a row while it ran"
    assert "{" not in str(found)


# ---- the raise sites, read as code

SOURCES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(Path(errors.__file__).parent.rglob("*.py"))}
BY_NAME = {cls.__name__: cls for cls in CLASSES}
MADE = [
    (f"{path.name}:{node.lineno}", BY_NAME[node.func.id], node)
    for path, tree in SOURCES.items()
    for node in ast.walk(tree)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BY_NAME
]


def test_k45_every_class_is_raised_somewhere():
    assert {cls for _, cls, _ in MADE} == set(CLASSES) - {KeelError}


def test_k45_every_code_that_is_written_in_the_code_is_in_the_catalogue_and_the_other_way_round():
    """A code of the catalogue is raised, noted on the person's own error, or called reserved in the docs."""
    named = {
        code
        for tree in SOURCES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for code in re.findall(r"(?<![0-9A-Za-z])(?:KEEL-)?(E0\d{2})(?![0-9A-Za-z])", node.value)
    }
    assert named - set(catalogue()) == set()
    reserved = set(re.findall(r"## KEEL-(E\d{3})[^#]*?the code is reserved", PAGE.read_text("utf-8")))
    assert reserved == set(catalogue()) - {cls.code for cls in CLASSES} - NOTED


def test_k45_every_raise_site_gives_the_facts_that_its_text_shows_and_no_other():
    """A fact that is missing is shown as "?"; one that no text shows is lost; nobody gives a value as a fact."""
    wrong = []
    for where, cls, node in MADE:
        given = {word.arg for word in node.keywords if word.arg is not None}
        if issubclass(cls, errors.DamagedError):
            given -= {"step"}  # said with ``what``, where it is known
        texts = {part: text for part, text in catalogue()[cls.code].items() if part not in given & {"why", "next"}}
        shown = set().union(*map(fields, texts.values()))
        whole = any(word.arg in {None, "told"} for word in node.keywords)  # ``**facts``: somebody else gives them
        lost, missing = given - shown - {"why", "next", "case"}, shown - given
        if node.args or lost or (missing and not whole):
            wrong.append((where, cls.__name__, sorted(lost), sorted(missing)))
    assert not wrong
