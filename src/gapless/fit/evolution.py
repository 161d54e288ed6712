"""The evolution strategy CMA-ES (Hansen, 2016), for costs whose slopes lead nowhere."""

import warnings
from typing import Any


def load_cma_es() -> Any:
    """Returns the class of CMA-ES; silences the warning of `cma` at its import that it cannot plot."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Could not import matplotlib", UserWarning)
        import cma
    return cma.CMAEvolutionStrategy
