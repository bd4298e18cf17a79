"""What may be shared: the release, its statement, its folder on disk, and the check of such a folder."""

from understudy.release.release import Release
from understudy.release.statement import Statement
from understudy.release.verify import verify_release

__all__ = ["Release", "Statement", "verify_release"]
