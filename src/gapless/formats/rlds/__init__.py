"""RLDS: episodes in TFRecord files, as TensorFlow Datasets lays them out; TensorFlow is not needed."""
