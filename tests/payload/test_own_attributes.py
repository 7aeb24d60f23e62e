"""Attributes beside a C type's own content: pickle forgets them, keel neither in a digest nor in a payload (C30, D)."""

import pytest

from tests.payload.conftest import make_kernel

MAKERS = {
    "ndarray": "import numpy as np\nclass A(np.ndarray): pass\nx = np.ones(2).view(A)",
    "large ndarray": "import numpy as np\nclass A(np.ndarray): pass\nx = np.ones(200_000).view(A)",
    "defaultdict": "from collections import defaultdict\nclass A(defaultdict): pass\nx = A(list, {1: [2]})",
    "OrderedDict": "from collections import OrderedDict\nclass A(OrderedDict): pass\nx = A(b=1, a=2)",
    "deque": "from collections import deque\nclass A(deque): pass\nx = A([1], 3)",
    "datetime": "from datetime import datetime\nclass A(datetime): pass\nx = A(2020, 1, 1)",
    "timedelta": "from datetime import timedelta\nclass A(timedelta): pass\nx = A(1)",
    "Decimal": "from decimal import Decimal\nclass A(Decimal): pass\nx = A('1.10')",
    "bytearray": "class A(bytearray): pass\nx = A(b'ab')",
    "array": "import array\nclass A(array.array): pass\nx = A('i', [1])",
    "list": "class A(list): pass\nx = A([1])",
    "dict": "class A(dict): pass\nx = A(a=1)",
    "str": "class A(str): pass\nx = A('a')",
    "int": "class A(int): pass\nx = A(3)",
    "tuple": "class A(tuple): pass\nx = A((1,))",
    "set": "class A(set): pass\nx = A((1,))",
    "exception": "class A(ValueError): pass\nx = A('a')",
}


@pytest.mark.parametrize("kind", MAKERS)
def test_an_attribute_counts_and_comes_back(kind):
    kernel = make_kernel()
    kernel.run(MAKERS[kind] + "\nx.unit = 'm'\nx.me = [x]")
    packed = kernel.pack({"x": kernel.space["x"]})
    assert not packed.not_stored
    plain = kernel.digest(kernel.space["x"]).digest
    kernel.run("x.unit = 'ft'")
    assert kernel.digest(kernel.space["x"]).digest != plain
    before = kernel.space["x"]
    kernel.replay(packed)
    back = kernel.space["x"]
    assert (type(back), back.unit) == (type(before), "m")
    assert back.me[0] is back
    assert kernel.digest(back).digest == plain
