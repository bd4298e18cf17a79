"""`understudy verify`: whether a release folder is whole and consistent, without private data."""

from understudy.cli.console import Debug, Quiet, shell
from understudy.cli.options import ReleaseFolder
from understudy.errors import ReleaseError

__all__ = ["verify"]


def verify(
    release: ReleaseFolder,
    *,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Checks every file of a release: complete, unaltered, and consistent with what its statement claims."""
    with shell(quiet=quiet, debug=debug) as place:
        from understudy.release import Release, verify_release

        problems = verify_release(release)
        if problems:
            raise ReleaseError(problems)
        place.line(f"{release}: nothing wrong was found.")
        place.line(Release.load(release).statement.promise)
        place.note("Not checkable from here: that the noise was drawn honestly, and from which table.")
