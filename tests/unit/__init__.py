"""Each room by itself, with numbers worked by hand."""
