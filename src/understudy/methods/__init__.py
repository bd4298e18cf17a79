"""Which queries to ask, in which order. A method sees the curator and nothing else.

Once any file of this package is loaded, `understudy.methods` is this module rather than the function of that name, so
the module can be called as well.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.methods.method import Description
    from understudy.options import Catalogue


class _MethodsModule(ModuleType):
    """This module, when it is called: the list of methods."""

    def __call__(self) -> "Catalogue[Description]":
        from understudy.methods.method import methods  # names only; a method is loaded when it is described

        return methods()


sys.modules[__name__].__class__ = _MethodsModule
