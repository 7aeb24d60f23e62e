"""Settings that a local module keeps in an object or a class of its own, and that a cell changes (traps 16).

``from settings import cfg; cfg.lr = 0.1`` in a plain cell, and a step calls a function of the module that reads
it: what the cell set is an input, by whatever road it was set. What a step sets comes back with its replay.
"""

import pytest

from tests.cases.test_files import LIBRARIES, step
from tests.cases.test_rewritten_files import Pair
from tests.crash.shells import Zygote

pytestmark = pytest.mark.kernel

MODULE = """
from dataclasses import dataclass, field
class Optimizer:
    def __init__(self): self.lr = 0
@dataclass
class Limits:
    top: int = 0
class Settings:
    level = 0
    def __init__(self):
        self.lr, self.tags, self.optimizer, self.limits = 0, [], Optimizer(), Limits()
        self._asked = 0
    def set(self, **kept): self.__dict__.update(kept)
    @classmethod
    def at(cls, level): cls.level = level
cfg = Settings()
def told():
    cfg._asked += 1
    return cfg.lr, cfg.tags, cfg.optimizer.lr, cfg.limits.top, Settings.level
def configure(n): cfg.lr = n
"""
ROADS = {
    "attribute": "settings.cfg.lr = {n}",
    "of an imported object": "from settings import cfg; cfg.lr = {n}",
    "setattr": "setattr(settings.cfg, 'lr', {n})",
    "its dict": "vars(settings.cfg)['lr'] = {n}",
    "its method": "settings.cfg.set(lr={n})",
    "a function of the module": "settings.configure({n})",
    "an object inside": "settings.cfg.optimizer.lr = {n}",
    "a data class inside": "settings.cfg.limits.top = {n}",
    "a container inside": "settings.cfg.tags.append({n})",
    "a class": "settings.Settings.level = {n}",
    "a class method": "settings.Settings.at({n})",
}
TOP = "import sys; sys.path.insert(0, os.getcwd())\nimport settings\nfrom settings import told"


@pytest.fixture(scope="module")
def zygote():
    process = Zygote(*LIBRARIES)
    yield process
    process.close()


@pytest.fixture
def pair(zygote, tmp_path):
    pair = Pair(zygote, tmp_path)
    for book in (pair.keel, pair.plain):
        (book.folder / "settings.py").write_text(MODULE)
    return pair


@pytest.mark.parametrize("use", ["v = settings.told()", "v = told()"], ids=["by the module", "by the function"])
@pytest.mark.parametrize("road", ROADS)
def test_what_a_plain_cell_sets_in_a_local_modules_settings_is_an_input(pair, road, use):
    for number, executed in ((1, ["use"]), (1, []), (2, ["use"])):
        assert pair.run(TOP, ROADS[road].format(n=number), step("use", use)) == executed


@pytest.mark.parametrize("road", ROADS)
def test_what_a_step_sets_there_comes_back(pair, road):
    for number, executed in ((1, ["set", "use"]), (1, []), (2, ["set", "use"])):
        body = ROADS[road].format(n=number) + "\nv = 0"
        cells = [TOP, step("set", body), step("use", "v = told()"), "print(settings.told())"]
        assert pair.run(*cells) == executed
