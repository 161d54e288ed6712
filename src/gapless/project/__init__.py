"""A project folder: its `gapless.yaml`, its model, its logs and its owner's code.

Whatever cannot be used raises `ProjectError` (the folder, its model, its code) or `LogError` (a log), with a message of
one line: what was found, what is there, what to do, and the path.
"""
