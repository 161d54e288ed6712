"""The noise of sensors at rest: what the verb `noise` fits. No model, no simulation.

readings.py reads a log and brings it to even times; stillness.py finds what is not noise; allan.py fits a sum of kinds
of noise to the Allan variances; terms.py turns sizes into numbers; column.py does all of that for one column and says
what its log does not identify.

Everywhere here `values` are (num_samples,) readings of one column at even times, NaN where one is missing, with
`interval_s` between them; a `quantum` is the step in which they come, 0 for none; `first` counts the shortest averaging
times, which were not fitted.
"""
