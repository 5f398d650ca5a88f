"""Programs in Go of the tests, each a file, built once for all checkouts."""

import fcntl
import os
import subprocess
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path

from tests.real_kafka.jars import UnavailableError, cache_folder, tool

SECONDS = 600.0
"""How long a build may take, with modules that are fetched."""


@cache
def built(source: Path, *modules: str) -> Path:
    """Return the program of a source file, which needs these modules. They are given as ``path@version``.

    Raises:
        UnavailableError: if Go is missing, or modules cannot be fetched.
        RuntimeError: if the build fails.
    """
    go = tool("go")
    digest = sha256("\n".join([source.read_text(encoding="utf-8"), *modules]).encode()).hexdigest()[:16]
    program = cache_folder() / f"{source.stem}-{digest}"
    program.parent.mkdir(parents=True, exist_ok=True)
    with (program.parent / "go.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # processes of members may build at the same time
        if not program.exists():
            _build(go, source, modules, program)
    return program


def _build(go: str, source: Path, modules: tuple[str, ...], program: Path) -> None:
    """Build in a folder of its own, where go.mod and go.sum are written anew."""
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        needed = "".join(f"require {module.replace('@', ' ')}\n" for module in modules)
        Path(folder, "go.mod").write_text(f"module {source.stem}\n\n{needed}")
        Path(folder, source.name).write_bytes(source.read_bytes())
        fetched = _run(go, "list", "-mod=mod", "-deps", ".", folder=folder)
        if fetched.returncode != 0:
            raise UnavailableError(f"go cannot fetch modules: {fetched.stderr.strip()[-500:]}")
        done = _run(go, "build", "-mod=mod", "-o", "program", ".", folder=folder)
        if done.returncode != 0:
            raise RuntimeError(f"go cannot build {source.name}: {done.stderr}")
        os.rename(Path(folder, "program"), program)


def _run(*command: str, folder: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{' '.join(command)} took longer than {SECONDS:.0f} s") from None
