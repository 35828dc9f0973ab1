"""What other packages would write into Python's log while data are read."""
