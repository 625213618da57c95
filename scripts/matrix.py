#!/usr/bin/env python3
"""Builds and runs the tests of the adapters with several versions of CCCL, compilers and standards.

Each row of the table is one build: the tests of policies, containers, CUB and cuda::mr, on the fake
CUDA where no device is needed, with warnings as errors. CCCL's headers come from PyPI by pip into
build/cccl; nvcc is the installed one in every row, with the row's compiler for the host's code.
Exits with 1 where a row failed.
"""
import argparse
import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"

# The version of CCCL, and where PyPI has it; the installed Toolkit's own has no package.
CCCL = {
    "2.8": "nvidia-cuda-cccl-cu12==12.9.27",
    "installed": None,
    "3.1": "nvidia-cuda-cccl==13.1.115",
    "3.2": "nvidia-cuda-cccl==13.2.75",
    "3.5": "nvidia-cuda-cccl==13.3.5.0.6",
}
COMPILERS = ["g++", "clang++-14"]
STANDARDS = ["17", "20"]
QUICK = [("2.8", "clang++-14", "17"), ("3.5", "g++", "20")]

PROGRAMS = ["test_cuda_mr", "test_cuda_mr_environments", "test_cub_fake_cuda",
            "test_thrust_fake_cuda", "test_thrust_fake_buffers", "test_thrust_cpp"]
NEEDS_NEW_CCCL = ["test_cuda_mr_environments"]


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(command, log):
    """Whether `command` succeeded; what it printed is added to `log`."""
    with open(log, "a", encoding="utf-8") as out:
        return subprocess.run([str(word) for word in command], stdout=out,
                              stderr=subprocess.STDOUT, check=False).returncode == 0


def include_dir(version):
    """The folder that holds CCCL's thrust/ and cub/; None: the Toolkit's. Raises OSError."""
    package = CCCL[version]
    if package is None:
        return None
    place = BUILD / "cccl" / version
    wanted = place / "installed.txt"
    if not wanted.exists() or wanted.read_text(encoding="utf-8") != package:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        say(f"fetching {package}")
        venv = BUILD / "cccl" / "venv"
        log = BUILD / "cccl" / f"{version}.log"
        if not run([sys.executable, "-m", "venv", venv], log) or not run(
                [venv / "bin" / "pip", "install", "--disable-pip-version-check", "--no-deps",
                 "--only-binary", ":all:", "--no-compile", "--target", place, package], log):
            raise OSError(f"pip cannot fetch {package}: see build/cccl/{version}.log")
        wanted.write_text(package, encoding="utf-8")
    found = sorted(place.rglob("thrust/version.h"))
    if not found:
        raise OSError(f"{package} holds no thrust/version.h")
    return found[0].parent.parent


def targets_of(folder):
    listing = subprocess.run(["cmake", "--build", folder, "--target", "help"], check=True,
                             capture_output=True, text=True).stdout
    return [name for name in PROGRAMS if f"{name}:" in listing]


def build_and_run(version, compiler, standard):
    """What became of one row, in a few words, and whether that is well."""
    if shutil.which(compiler) is None:
        return f"no {compiler} here", False
    try:
        headers = include_dir(version)
    except OSError as error:
        return str(error), False
    folder = BUILD / "matrix" / f"{version}-{compiler}-{standard}"
    log = folder.parent / f"{folder.name}.log"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log.write_text("", encoding="utf-8")
    where = log.relative_to(ROOT)
    configure = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None",
                 f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_CUDA_HOST_COMPILER={compiler}",
                 f"-DCMAKE_CXX_STANDARD={standard}", "-DCMAKE_CUDA_ARCHITECTURES=90",
                 "-DPAGESIFT_CHECK_HEADERS=OFF", "-DPAGESIFT_BUILD_EXAMPLES=OFF",
                 "-DPAGESIFT_BUILD_BENCHMARKS=OFF"]
    if headers is not None:
        configure.append(f"-DPAGESIFT_CCCL_INCLUDE_DIR={headers}")
    if not run(configure, log):
        return f"does not configure: {where}", False
    programs = targets_of(folder)
    lacking = set(PROGRAMS).difference(programs, NEEDS_NEW_CCCL)
    if lacking:
        return f"leaves out {', '.join(sorted(lacking))}: {where}", False
    if not run(["cmake", "--build", folder, "--target", *programs], log):
        return f"does not compile: {where}", False
    failed = [name for name in programs if not run([folder / "bin" / name], log)]
    if failed:
        return f"{', '.join(failed)} failed: {where}", False
    return f"{len(programs)} programs passed", True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true",
                        help="two rows alone, the oldest and the newest CCCL")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    arguments = parser.parse_args()
    wanted = QUICK if arguments.quick else list(itertools.product(CCCL, COMPILERS, STANDARDS))
    rows = []
    for version, compiler, standard in wanted:
        say(f"CCCL {version}, {compiler}, C++{standard}")
        text, well = build_and_run(version, compiler, standard)
        rows.append({"cccl": version, "compiler": compiler, "standard": f"C++{standard}",
                     "result": text, "passed": well})
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        for row in rows:
            print(f"{row['cccl']:10} {row['compiler']:11} {row['standard']:6} {row['result']}")
    return 0 if all(row["passed"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
