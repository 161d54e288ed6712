"""How far fitted parameters may be off, from how much pieces of the logs disagree about them.

With H the sum of the pieces' information H_w and g_w their gradients at the solution, the covariance is
H^-1 (sum g_w g_w^T) H^-1, which stays right when errors within a piece go together (Liang and Zeger, 1986). A fit
follows the pieces that say most, so that their gradients are smaller than the errors in them: each is enlarged by
(1 - H_w H^-1)^(-1/2), which makes the covariance right on average where errors are independent (Bell and McCaffrey,
2002). With few pieces it is still uncertain itself, as much as one from few independent pieces of equal weight: the
quantile of Student's t takes the place of the normal one. Coordinates below are those in which H is the identity.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from gapless.core.interval import normal_quantile
from gapless.core.signal import Array

LEVEL = 0.95  # of the intervals for which Student's t is put into the covariance
MAX_SHARE = 1.0 - 1e-6  # share of the information about one direction that a single piece is taken to have at most
MIN_FREEDOM = 2.0  # with fewer degrees of freedom Student's t has no variance


@dataclass(frozen=True)
class Pieces:
    """What pieces of the logs say about parameters at a solution."""

    information: Array  # (num_pieces, num_parameters, num_parameters) Hessians H_w of the pieces' costs
    gradients: Array  # (num_pieces, num_parameters) gradients g_w of the pieces' costs
    shared: Array  # (num_parameters, num_parameters) what is added to sum g_w g_w^T because pieces are not independent

    @property
    def whole_information(self) -> Array:
        """The information of all pieces, (num_parameters, num_parameters)."""
        return self.information.sum(axis=0)

    def of(self, columns: NDArray[np.intp]) -> "Pieces":
        """Returns what they say about some of the parameters."""
        block = np.ix_(columns, columns)
        return Pieces(self.information[:, columns[:, None], columns], self.gradients[:, columns], self.shared[block])


def clustered_covariance(pieces: Pieces, prior: float) -> Array:
    """Returns the covariance of the parameters, (num_parameters, num_parameters).

    Args:
        pieces: What the pieces say.
        prior: Weight of each parameter's distance from where it was, one reading of standard deviation 1 / prior.
    """
    ridge = prior**2 * np.eye(pieces.gradients.shape[1])
    values, vectors = np.linalg.eigh(pieces.whole_information + ridge)
    root = (vectors / np.sqrt(values)) @ vectors.T  # H^(-1/2)
    shares, axes = np.linalg.eigh(root @ pieces.information @ root)
    shares = np.clip(shares, 0.0, MAX_SHARE)
    along = np.einsum("wia,wi->wa", axes, pieces.gradients @ root)
    enlarged = np.einsum("wia,wa->wi", axes, along / np.sqrt(1.0 - shares))
    covariance = root @ (enlarged.T @ enlarged + root @ (ridge + pieces.shared) @ root) @ root
    wider = stdtrit(_freedom(shares, axes, root), (1 + LEVEL) / 2) / normal_quantile((1 + LEVEL) / 2)
    return covariance * np.outer(wider, wider)


def shared_start_variance(in_pieces: Array, in_windows: Array, variance: float) -> Array:
    """Returns what windows' gradients vary by beyond those of their pieces, (num_parameters, num_parameters).

    A start that follows the readings of a window takes from all of them together, which makes its pieces' residuals
    depend on each other: noise of variance v keeps v (1 - C C^T). The gradient of a window then varies by
    v (J^T J - A^T A) with A = C^T J, and those of its pieces by v (J_p^T J_p - A_p^T A_p) each.

    Args:
        in_pieces: (num_pieces, num_starts, num_parameters) A_p.
        in_windows: (num_windows, num_starts, num_parameters) A.
        variance: That of the noise, v.
    """
    parts, whole = (np.einsum("wdi,wdj->ij", part, part) for part in (in_pieces, in_windows))
    values, vectors = np.linalg.eigh(variance * (parts - whole))
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


def _freedom(shares: Array, axes: Array, root: Array) -> Array:
    """Returns the degrees of freedom of each parameter's variance, (num_parameters,).

    The variance of parameter z^T x is a sum of squares with covariance C = diag(a) - B B^T, where
    a_w = z^T G_w (1 - G_w)^-1 z, row w of B is (1 - G_w)^(-1/2) G_w z, and G_w is the piece's share of the information:
    as uncertain as a chi-squared one of tr(C)^2 / tr(C^2) degrees of freedom (Satterthwaite, 1946).
    """
    along = np.einsum("wia,ik->kwa", axes, root)
    size = np.sum(along**2 * (shares / (1.0 - shares)), axis=2)
    rows = np.einsum("wia,kwa->kwi", axes, along * (shares / np.sqrt(1.0 - shares)))
    squares = np.sum(rows**2, axis=2)
    inner = np.einsum("kwi,kwj->kij", rows, rows)
    second = np.sum(size**2 - 2 * size * squares, axis=1) + np.sum(inner**2, axis=(1, 2))
    return np.maximum(np.sum(size - squares, axis=1) ** 2 / np.maximum(second, 1e-300), MIN_FREEDOM)
