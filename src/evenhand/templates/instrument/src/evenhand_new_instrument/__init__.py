"""A package for evenhand: the instrument `new_instrument`."""
