"""Release: everything that may be shared about a run, in memory or as a folder.

A release holds public facts and noisy answers only. Drawing rows from it is free; it has no way back to the private
table. Synthetic rows follow from the fitted model, the number of rows and the seed, so they are drawn when asked for
and streamed to disk when saved.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from understudy.codec.table_codec import TableCodec
from understudy.errors import UsageError
from understudy.marginals.transcript import Transcript
from understudy.models.model import Model
from understudy.progress import Progress, silent
from understudy.release.config import RunConfig
from understudy.release.folder import check_free
from understudy.release.forecast import check_bytes, check_frame, check_room
from understudy.release.frames import Frame, to_frame
from understudy.release.rows import Fitted, Where, draw_tables, one_table, stored_rows, write_rows
from understudy.release.statement import Statement
from understudy.schema import Schema

__all__ = ["Release"]

NOTICE = "SYNTHETIC DATA. Rows are drawn from a model, not copied from people."


@dataclass(frozen=True, eq=False)
class Release:
    """A finished run: schema, noisy answers, fitted models, statement, settings and the extract of the ledger.

    Several copies drawn from one model share the only element of `fits`; copies that were measured anew have one each.
    """

    schema: Schema
    fits: tuple[Fitted, ...]
    statement: Statement
    config: RunConfig
    ledger: tuple[str, ...]
    frame_kind: str = "arrow"
    folder: Path | None = None

    @property
    def codec(self) -> TableCodec:
        """The codes of the first copy."""
        return self.fits[0].codec

    @property
    def transcript(self) -> Transcript:
        """The noisy answers of the first copy."""
        return self.fits[0].transcript

    @property
    def model(self) -> Model:
        """The fitted model of the first copy."""
        return self.fits[0].model

    @property
    def table(self) -> Frame:
        """The synthetic rows of the first copy, as the kind of frame the data came in."""
        return self.tables[0]

    @cached_property
    def tables(self) -> tuple[Frame, ...]:
        """The synthetic rows of every copy."""
        return tuple(self._table(copy) for copy in range(1, self.config.copies + 1))

    def fitted(self, copy: int) -> Fitted:
        """Codes, answers and model behind a copy (counted from 1)."""
        if type(copy) is not int or not 1 <= copy <= self.config.copies:
            raise UsageError("copy", f"must be a whole number from 1 to {self.config.copies}, got {copy!r}.")
        return self.fits[copy - 1] if len(self.fits) > 1 else self.fits[0]

    def sample(
        self, rows: int | None = None, *, seed: int | None = None, where: Where | None = None, copy: int = 1
    ) -> Frame:
        """Fresh synthetic rows, free of charge.

        Args:
            rows: how many; as many as the copy holds when not given.
            seed: gives the same rows again; taken from the operating system when not given.
            where: column → value (or list of values) that every row must have, for example {"sex": "F"}.
            copy: whose model to draw from when copies were measured anew.
        """
        fitted = self.fitted(copy)
        wanted = self.config.rows[copy - 1] if rows is None else rows
        pieces = draw_tables(fitted, wanted, seed=_seed(seed), copy=copy, where=where)
        check_frame(self.schema, wanted)
        return to_frame(one_table(fitted.codec, pieces), self.frame_kind)

    def sample_to(
        self,
        path: str | Path,
        rows: int | None = None,
        *,
        seed: int | None = None,
        where: Where | None = None,
        copy: int = 1,
    ) -> None:
        """Writes fresh synthetic rows to a Parquet or CSV file (by suffix) without holding them in memory."""
        fitted = self.fitted(copy)
        wanted = self.config.rows[copy - 1] if rows is None else rows
        pieces = draw_tables(fitted, wanted, seed=_seed(seed), copy=copy, where=where)
        self.check_file(Path(path), wanted)
        write_rows(Path(path), fitted.codec.arrow_schema, pieces, self.marks())

    def check_file(self, path: Path, rows: int) -> None:
        """Raises unless a new file of so many rows can be written at that path."""
        check_free(path)
        check_room(self.schema, [rows], path.absolute().parent, path.suffix)

    def label(self, records: object, *, seed: int | None = None, copy: int = 1, keep: Sequence[str] = ()) -> Frame:
        """The records with their private columns filled in by the model (method `rdt`), free of charge.

        Args:
            records: a frame with the public columns; private ones it holds are replaced.
            keep: other columns of the frame to pass on as they are, for example a record's number.
            seed: gives the same labels again; taken from the operating system when not given.
            copy: whose model to use when copies were measured anew.
        """
        from understudy.release.labelling.records import labelled_frame  # brings the readers of frames and files

        return labelled_frame(self.fitted(copy), records, _seed(seed), keep)

    def label_to(
        self,
        path: str | Path,
        records: str | Path,
        *,
        seed: int | None = None,
        copy: int = 1,
        keep: Sequence[str] = (),
    ) -> None:
        """Writes a file of records with labels to a Parquet or CSV file (by suffix), chunk by chunk."""
        from understudy.release.labelling.records import label_marks, labelled_bytes, labelled_file

        fitted = self.fitted(copy)
        schema, pieces = labelled_file(fitted, records, _seed(seed), keep)
        check_free(Path(path))
        check_bytes(
            "labelled records on disk", labelled_bytes(fitted, records, Path(path)), Path(path).absolute().parent
        )
        write_rows(Path(path), schema, pieces, self.marks() | label_marks(fitted))

    def marks(self) -> dict[str, str]:
        """What a synthetic file says about itself."""
        claim = self.statement.claim
        return {
            "understudy.synthetic": "true",
            "understudy.notice": NOTICE,
            "understudy.run": self.statement.run,
            "understudy.epsilon": "none" if claim is None else repr(claim[0]),
            "understudy.delta": "none" if claim is None else repr(claim[1]),
        }

    def save(self, folder: str | Path, *, progress: Progress = silent) -> None:
        """Writes the release folder: complete, synced and renamed into place, or not at all.

        Raises:
            UsageError: if the folder exists already.
            ResourceError: if its rows would not fit on the disk.
        """
        from understudy.release.store import save_release  # the store needs this type

        check_free(Path(folder))
        check_room(self.schema, self.config.rows, Path(folder).absolute().parent)

        save_release(self, Path(folder), progress)

    @classmethod
    def load(cls, folder: str | Path, *, frame_kind: str = "arrow") -> Self:
        """The release saved in a folder.

        Raises:
            ReleaseError: with all findings, if the folder is incomplete or altered.
        """
        from understudy.release.store import load_release

        loaded = load_release(Path(folder))
        return cls(
            loaded.schema, loaded.fits, loaded.statement, loaded.config, loaded.ledger, frame_kind, loaded.folder
        )

    def _table(self, copy: int) -> Frame:
        codec = self.fitted(copy).codec
        if self.folder is not None:
            path = self.folder / data_name(copy, self.config.copies)
            return to_frame(stored_rows(path, codec, self.config.rows[copy - 1]), self.frame_kind)
        check_frame(self.schema, self.config.rows[copy - 1])
        pieces = draw_tables(self.fitted(copy), self.config.rows[copy - 1], seed=self.config.seed, copy=copy)
        return to_frame(one_table(codec, pieces), self.frame_kind)


def data_name(copy: int, copies: int) -> str:
    """The file of a copy's rows.

    >>> data_name(1, 1), data_name(2, 3)
    ('data.parquet', 'data-2.parquet')
    """
    return "data.parquet" if copies == 1 else f"data-{copy}.parquet"


def _seed(seed: int | None) -> int:
    return secrets.randbits(63) if seed is None else seed
