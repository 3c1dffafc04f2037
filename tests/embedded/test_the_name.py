"""`lonnymq.embedded` is a package and can be called, after imports in any order."""

import subprocess

import pytest

USES = [
    "from lonnymq import embedded; embedded",
    "import lonnymq.embedded; lonnymq.embedded",
    "import lonnymq.embedded.server; from lonnymq import embedded; embedded",
    "from lonnymq import embedded; import lonnymq.embedded.server; lonnymq.embedded",
    "from lonnymq.embedded import embedded; embedded",
]


@pytest.mark.parametrize("use", USES)
def test_embedded_can_be_called(use, run_python):
    process = run_python(f"{use}(binaries='/nowhere')", stderr=subprocess.STDOUT)
    assert "BinariesNotFound: neither /nowhere nor its bin/ contains" in process.communicate()[0]
