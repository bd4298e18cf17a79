"""What hatchling does beyond its configuration: README.md for a package index, and wheels with machine code.

In the source tree the README's links are relative, so that they work in a checkout and on any host. A package index has
no such files, so that every link and picture is given the address of the source (`project.urls` in pyproject.toml).

With UNDERSTUDY_KERNELS=1 a wheel for this Python on x86-64 Linux is built, which brings the machine code of the inner
loops that most runs need. It is made by running the demo from these sources with what is installed in the Python that
builds, so that all dependencies must be there: `make package` does it. Without it the wheel is pure Python and compiles
what it needs when it is first called.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(\]\()(?!https?://|#|mailto:)([^)\s]+)(\))")
PROCESSOR = "x86-64-v3"
FEATURES = ("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf", "sse4.2", "xsave")
"""What processors of that level have: nearly all that were sold since 2015."""
KERNELS = re.compile(r"^(?:from|import) (?:numba|understudy\.compiled)\b", re.MULTILINE)


def absolute(text: str, source: str) -> str:
    """The text with every relative link led to the source.

    >>> absolute("[a](docs/a.md#b) [c](https://example.org)", "https://example.org/s")
    '[a](https://example.org/s/docs/a.md#b) [c](https://example.org)'
    """
    return LINK.sub(rf"\g<1>{source.rstrip('/')}/\g<2>\g<3>", text)


class ReadmeHook(MetadataHookInterface):
    """Gives the package its long description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Sets `readme`, which pyproject.toml names as dynamic."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, metadata["urls"]["Source"])}


class KernelHook(BuildHookInterface):  # type: ignore[type-arg]
    """Gives a wheel machine code, where that was asked for."""

    def dependencies(self) -> list[str]:
        """What compiling needs: all that a run needs."""
        return list(self.metadata.core.dependencies) if wanted() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles, and names the wheel by the Python and the system that it is for."""
        if version == "editable" or not wanted():
            return
        if sys.platform != "linux" or platform.machine() != "x86_64":
            raise RuntimeError("UNDERSTUDY_KERNELS=1 is for x86-64 Linux; build without it for a pure wheel.")
        self._made = tempfile.mkdtemp(prefix="understudy-kernels-")
        compile_kernels(Path(self.root) / "src", self.metadata.version, Path(self._made))
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        # It holds no shared library of its own, so any system on which numba runs will do.
        build_data["tag"] = f"{python}-{python}-manylinux_2_17_x86_64"
        build_data["pure_python"] = False
        build_data["force_include"][self._made] = "understudy/machine_code"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes what was compiled: the wheel has it."""
        if hasattr(self, "_made"):
            shutil.rmtree(self._made)


def wanted() -> bool:
    """Whether a wheel with machine code was asked for."""
    return os.environ.get("UNDERSTUDY_KERNELS") == "1"


def compile_kernels(source: Path, version: str, folder: Path) -> None:
    """Runs the demo from the sources, for that level of processor, and keeps what it compiled."""
    import numba

    package = source / "understudy"
    with tempfile.TemporaryDirectory() as place:
        facts = Path(place, "installed", f"understudy-{version}.dist-info")  # a release lists what is installed
        facts.mkdir(parents=True)
        text = f"Metadata-Version: 2.1\nName: understudy\nVersion: {version}\n"
        (facts / "METADATA").write_text(text, encoding="utf-8")
        # Settings of whoever builds, such as NUMBA_OPT or NUMBA_DISABLE_JIT, must not shape what others run.
        plain = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
        settings = {
            "PYTHONPATH": os.pathsep.join([str(source), str(facts.parent)]),
            "NUMBA_CACHE_DIR": place + "/cache",
            "NUMBA_CPU_NAME": PROCESSOR,
            "NUMBA_CPU_FEATURES": ",".join(f"+{feature}" for feature in FEATURES),
        }
        command = [sys.executable, "-m", "understudy", "demo", "--quiet"]
        subprocess.run(command, check=True, cwd=place, env={**plain, **settings}, stdout=sys.stderr)
        for made in sorted(Path(place, "cache").iterdir()):
            name = made.name.rpartition("_")[0]  # numba adds a hash of the whole path
            shutil.copytree(made, folder if name == package.name else folder / name, dirs_exist_ok=True)
    sources = [path for path in sorted(package.rglob("*.py")) if KERNELS.search(path.read_text(encoding="utf-8"))]
    contents = {
        "numba": numba.__version__,
        "machine": platform.machine(),
        "features": FEATURES,
        "sources": {str(path.relative_to(package)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sources},
    }
    (folder / "contents.json").write_text(json.dumps(contents, indent=1), encoding="utf-8")
