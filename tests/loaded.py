"""What processes of `tests/processes.py` find loaded: imported once by the server that they are forked from."""

import understudy.cli.app
import understudy.compare.worker
import understudy.methods.independent
import understudy.methods.laplace
import understudy.release.verify  # noqa: F401
from understudy.codec.table import TableCodec
from understudy.testing import cases

TableCodec.of(cases.small())  # its first kernel makes numba load its own machinery, half a second of it
