"""Data in and out of a project: `import` and `export`, in all formats of the room `formats`."""
