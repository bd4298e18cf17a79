"""Numbers made readable. This package lays out plain data as one self-contained page; it computes nothing private."""
