from typing import Any

from scipy import linalg as linalg
from scipy import ndimage as ndimage
from scipy import optimize as optimize
from scipy import signal as signal
from scipy import special as special
from scipy import stats as stats
from scipy import interpolate as interpolate
from scipy import spatial as spatial

def __getattr__(name: str) -> Any: ...
