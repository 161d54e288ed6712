"""Lists files, functions and rooms that ask for a second look in review: `make sizes`. A prompt, not a limit."""

import ast

from architecture.tree import named, parsed, rooms, source_files

FILE_LINES, FUNCTION_LINES = 300, 60  # files aim at 200 lines, functions at 25
ROOM_FILES, ROOM_LINES = 12, 3000


def find_large() -> list[str]:
    """Returns a line for each file, function and room that is larger than it should be without a reason."""
    found: list[str] = []
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in source_files()}
    found += [f"{named(path)}: {count} lines" for path, count in lines.items() if count > FILE_LINES]
    for path in source_files():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > FUNCTION_LINES:
                    found.append(f"{named(path)}:{node.lineno}: {node.name} has {length} lines")
    for room in rooms():
        files = [path for path in lines if room in path.parents and path.name != "__init__.py"]
        total = sum(lines[path] for path in files)
        if len(files) > ROOM_FILES and total > ROOM_LINES:
            found.append(f"{named(room)}: {len(files)} files, {total} lines")
    return found


if __name__ == "__main__":
    print("\n".join(find_large()) or "nothing asks for a second look")
