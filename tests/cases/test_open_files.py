"""A notebook that leaves no open file to keel: recording never costs the result."""


def test_a_step_runs_where_no_file_can_be_opened(book):
    notebook = book("""
import resource
# ---
%%keel_step before
x = 1
# ---
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # three are open in any case
# ---
%%keel_step without
y = x + 1; large = bytes(range(256)) * 20_000
# ---
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
# ---
%%keel_step after
z = y + 1 + len(large) * 0
# ---
print(x, y, z)
""")
    run = notebook.run_all()
    assert (run.error, run.printed[-1]) == ("", "1 2 3\n")
    assert "Too many open files" in "".join(cell["err"] for cell in run.acknowledged)
    assert notebook.shows() == "1 2 3"
