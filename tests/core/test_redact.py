"""C103: what looks like a credential is not in the source that the journal keeps."""

import pytest

from keel_notebook.core.redact import redacted

KEY = "sk-test-1234567890abcdef"


@pytest.mark.parametrize(
    "source",
    [
        f"api_key = '{KEY}'",
        f'client = OpenAI(api_key="{KEY}")',
        f"headers = {{'Authorization': 'Bearer {KEY}'}}",
        f"!curl -H 'Authorization: Bearer {KEY}' example.test",
        f"!curl -u {KEY} example.test",
        f"# the key is {KEY}\nx = 1",
        f"key = '''{KEY}'''",
        "password = 'hunter2 and more'",
        "cfg = {'password': 'hunter2 and more'}",
        "connect(db_password='hunter2 and more')",
        "con = connect('postgres://me:hunter2@db/x')",
    ],
)
def test_c103_credentials_are_not_kept(source):
    kept = redacted(source)
    assert KEY not in kept
    assert "hunter2" not in kept
    assert len(kept.splitlines()) == len(source.splitlines())


@pytest.mark.parametrize(
    "source",
    [
        "x = 'hello world'",
        "df = pd.read_csv('data/train.csv')",
        "text = '''a\nlong\nstory'''",
        "tokens = tokenizer('some text')",
        "sql = 'select token from words'",
        "s = 'it\\'s'; t = \"a\"",
        "path = '/usr/share/very/long/path/that/means/nothing/special'",
    ],
)
def test_other_text_is_kept_as_it_is(source):
    assert redacted(source) == source
