"""Numbers made readable. This room lays out plain data as one self-contained page; it computes nothing private."""
