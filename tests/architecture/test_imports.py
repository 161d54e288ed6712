import ast
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from architecture.tree import PACKAGE, ROOT, named, parsed

# Who may name the bundled examples; to everyone else they are somebody's project folder.
MAY_IMPORT_EXAMPLES = {"cli", "verbs", "loop", "examples"}

# Records are all that `report` reads; `project` and `data` find them.
MAY_REPORT_IMPORT = {"report", "core", "data", "project"}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("gapless", cache_dir=None)


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_every_contract_of_import_linter_is_kept() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    command = [str(lint), "--no-logo", "--no-cache", "--config", "pyproject.toml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_cli_verbs_and_loop_import_examples(graph: grimp.ImportGraph) -> None:
    examples = {module for module in graph.modules if room(module) == "examples"}
    leaks = sorted(
        f"{importer} -> {module}"
        for module in examples
        for importer in graph.find_modules_that_directly_import(module)
        if room(importer) not in MAY_IMPORT_EXAMPLES
    )
    assert leaks == []


def test_report_reads_records_only(graph: grimp.ImportGraph) -> None:
    reaches = sorted(
        f"{module} -> {imported}"
        for module in graph.modules
        if room(module) == "report"
        for imported in graph.find_modules_directly_imported_by(module)
        if imported != "gapless" and room(imported) not in MAY_REPORT_IMPORT
    )
    assert reaches == []


def test_core_imports_numpy_and_the_standard_library_only() -> None:
    allowed = set(sys.stdlib_module_names) | {"numpy", "gapless"}
    strangers = [
        f"{named(path)}:{line} {name}"
        for path in sorted((PACKAGE / "core").rglob("*.py"))
        for name, line in top_level_imports(parsed(path))
        if name not in allowed
    ]
    assert strangers == []


def top_level_imports(tree: ast.Module) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name.split(".")[0], node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.append((node.module.split(".")[0], node.lineno))
    return found
