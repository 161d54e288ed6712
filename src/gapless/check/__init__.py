"""Mistakes in a project's data that a fit would hide: wrong columns, signs, units, clocks, joints that do not respond.

Each is a claim that predictions can test: with the data as mapped the model explains little, with one change to them it
explains much. What a careful builder may have got wrong (gain, drag, delay, zero) is granted to both sides first.
"""
