"""What a project folder holds, as one short text: equal texts, equal projects."""

import hashlib

from gapless.project.records import Project
from gapless.project.yaml_file import FILE_NAME


def fingerprint(project: Project) -> str:
    """Returns 16 hex digits over `gapless.yaml`, the model file and the owner's task code."""
    files = [project.directory / FILE_NAME, project.model_path]
    if project.task is not None:
        files.append(project.directory / project.task.partition(":")[0])
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes() if path.is_file() else b"")
        digest.update(b"\0")
    return digest.hexdigest()[:16]
