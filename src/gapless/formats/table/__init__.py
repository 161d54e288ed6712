"""Tables: CSV, Parquet and NPZ files, with what people say of them in `NAME.json` beside `NAME.csv`."""
