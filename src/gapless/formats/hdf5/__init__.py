"""HDF5 files: demonstrations as robomimic keeps them, episodes of ACT, folders as DROID records them."""
