"""A package for evenhand: the method `new_method`."""
