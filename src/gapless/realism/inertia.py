"""Inertias of bodies as tensors, and of bodies that carry something."""

import numpy as np
from scipy.spatial.transform import Rotation

from gapless.core.signal import Array


def tensor_of(frame: Array, inertia: Array) -> Array:
    """Returns inertia tensors (num_worlds, 3, 3) of inertial frames (num_worlds, 4) and principal inertias."""
    axes = Rotation.from_quat(frame, scalar_first=True).as_matrix()
    return np.einsum("nij,nj,nkj->nik", axes, inertia, axes)


def principal(tensor: Array) -> tuple[Array, Array]:
    """Returns inertial frames (num_worlds, 4), wxyz, and principal inertias (num_worlds, 3) of inertia tensors."""
    values, vectors = np.linalg.eigh(tensor)
    vectors[:, :, 2] *= np.linalg.det(vectors)[:, None]  # right-handed
    return Rotation.from_matrix(vectors).as_quat(scalar_first=True), values


def joined(
    mass: Array, centre: Array, frame: Array, inertia: Array, extra: Array, spot: Array
) -> tuple[Array, Array, Array, Array]:
    """Returns mass, centre, inertial frame and principal inertias of bodies with a point mass added.

    Both parts are moved to the common centre by the parallel axis theorem; what they then add up to is as
    possible, physically, as the body was.

    Args:
        mass: (num_worlds,) [kg].
        centre: (num_worlds, 3) centre of mass in the body's frame [m].
        frame: (num_worlds, 4) inertial frame in the body's frame, wxyz.
        inertia: (num_worlds, 3) principal inertias [kg·m²].
        extra: (num_worlds,) point masses [kg].
        spot: (3,) where they are in the body's frame [m].
    """
    total = mass + extra
    common = (mass[:, None] * centre + extra[:, None] * spot) / total[:, None]
    tensor = tensor_of(frame, inertia)
    for weight, place in ((mass, centre), (extra, np.broadcast_to(spot, centre.shape))):
        arm = place - common
        square = np.sum(arm**2, axis=1)[:, None, None] * np.eye(3)
        tensor += weight[:, None, None] * (square - arm[:, :, None] * arm[:, None, :])
    return total, common, *principal(tensor)
