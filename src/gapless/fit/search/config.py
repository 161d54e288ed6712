"""Numbers of the search for the structure of a fit, in one place."""

from dataclasses import dataclass

from gapless.fit.slopes import FINE_STEP, MEDIUM_STEP
from gapless.fit.solve import Schedule


@dataclass(frozen=True)
class SearchConfig:
    """How the terms of a fit are searched; set on the tuning twins 100-107 of `benchmarks/identify.py`.

    Later, and by judgement alone: `first_look`, `final`, `polish`, `min_swap_promise`, `min_force_gain`.

    A saving is a share of the held-out cost that noise does not explain [1]; a score is a saving in standard errors.
    """

    max_search_windows: int = 16  # windows on which the first start is searched
    num_starts: int = 3  # starts from which the first solve begins
    max_first_windows: int = 32  # windows of the first solve
    term_windows_s: float = 20.0  # simulated for choosing terms [s]
    first: Schedule = ((MEDIUM_STEP, 8),)  # schedule of first solves; see `solve_least_squares`
    brief: Schedule = ((MEDIUM_STEP, 3),)  # of solves that only compare
    first_look: Schedule = ((MEDIUM_STEP, 1),)  # tells which of some starts is worth a solve
    final: Schedule = ((MEDIUM_STEP, 2), (FINE_STEP, 6))  # of the solve with all terms chosen
    last: Schedule = ((MEDIUM_STEP, 2), (FINE_STEP, 3))  # of solves that begin near their end
    polish: Schedule = ((FINE_STEP, 1),)  # after steps along slopes that were known
    min_correction_saving: float = 0.02  # least saving of a corrected value
    # of a term that the model lacks, a tenth of the error: whatever is added, is extrapolated
    min_term_saving: float = 0.2
    min_lag_saving: float = 0.01  # of a lag: it only changes places with part of the delay
    min_score: float = 3.0  # least score; some dozens of terms are tried
    min_swap_score: float = 2.0  # of an exchange: two are tried, not dozens
    min_promise: float = 0.1  # share of the least saving that a first step must promise, to be followed
    # the same of an exchange, of what it saves on the very windows that it was solved for
    min_swap_promise: float = 0.25
    max_rounds: int = 4  # of choosing terms
    windows_per_block: int = 4  # neighbouring windows whose errors go together
    union_sizes: tuple[int, ...] = (2, 3, 5, 8, 13)  # how many of the best terms are also tried together
    num_solved: int = 2  # terms that are solved for in a round
    max_judged: int = 10  # terms that are judged by real predictions in a round
    # shares of a step that are tried: the linear prediction may reach too far
    step_lengths: tuple[float, ...] = (1.0, 0.4)
    lag_shares: tuple[float, ...] = (0.5,)  # shares of the delay that are exchanged for a lag
    # of the friction, for play: play of a few mm in stiff friction is a small share of it
    play_shares: tuple[float, ...] = (0.5, 0.2, 0.08)
    min_lag_s: float = 1e-3  # a lag that is tried where no delay was found [s]
    min_play: float = 0.01  # play that is tried where no friction was found, as a share of the most that there may be
    far_factors: tuple[float, float] = (0.6, 1.6)  # that all forces are multiplied by at first
    near_factors: tuple[float, float] = (0.87, 1.15)  # and when all terms are chosen
    max_force_rounds: int = 4  # of multiplying forces
    # of the sum of squares, times `error_inflation`: from an end that is lower the fit goes on
    min_force_gain: float = 1.0


SEARCH = SearchConfig()
