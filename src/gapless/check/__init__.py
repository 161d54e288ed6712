"""What is wrong with a project's data: mapping, units, signs, clocks, columns that stand still or do not respond.

`examine_data` (examine.py) runs these checks in this order. The first three need the logs at the control rate
(`Track`) and to which joint each column belongs; the others also predict with the model.

| check | module | finds |
|---|---|---|
| commands are targets | agreement.py | steps, velocities or distances that are mapped to a position servo |
| positions and velocities agree | agreement.py | wrong sign, unit or column of one of them |
| joints follow their servos | agreement.py | wrong sign, unit, column or clock |
| the model can predict the columns | mapping.py | the `MappingHypothesis` (hypotheses.py) that reduces the error most |
| servos move | rows.py | rows in which a servo is stalled or a sensor frozen |
| joints respond to motors | rows.py | rows in which a drive is off or a joint blocked |

If the first check finds something, no other runs; after a fault of the mapping, rows are not judged. A hypothesis is
believed only if no values within the model's tolerance (skill.py: gains, delays, damping, friction) make the data as
mapped predictable, so a model that is far off raises no false alarm.

To add a check of the mapping, write `find_...(blueprint, tracks) -> list[Finding]` and call it in
`find_mapping_faults`; a column could be wrong in a new way: yield another `MappingHypothesis` in
`list_column_hypotheses`. To add a check of rows, write `find_...(blueprint, tracks) -> list[UnusableRows]` and call it
in `examine_data`. Give it two tests: a log with the fault that is named, and logs without it that are not
(tests/unit/check/faults.py puts faults into logs). A text says what looks wrong, why, and what to change.

The verb `check` (verb.py) also asks whether the simulation is converged, and shows what reading the logs found.
"""
