"""The formats in which people record: each read as `Recording` records, and written from them.

A format is a module with a `Format` and an entry in `registry.FORMATS`; `import`, `export` and `new` then take it.
"""
