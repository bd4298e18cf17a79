"""Methods of the field of the 2018 challenge: networks, groups of columns, overlapping tables."""
